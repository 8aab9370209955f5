"""Merk, mem0, plain Chroma and BM25 alone: the same texts, the same questions, the same embedder, one after the other.

Rule: everybody gets "speaker: text" and ranks a conversation's own turns; times are from the question to the ranking.
"""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench import recall
from bench.peers import environment
from bench.recall_data import ADVERSARIAL, Asked, Conversation, conversations
from bot.embedders.builtin import UseEmbedder
from memory.recall.finder import Finder
from memory.recall.shelf import Floats

MOST = 20
_KS = (5, 10, 20)


async def measure(data: Path) -> dict[str, object]:
    """All systems on all questions. Raises CommandError for a file that is none, or without the peers."""
    told = conversations(data)
    python = await environment.ensure()
    asked = [(number, each) for number, conversation in enumerate(told, 1) for each in conversation.questions]
    systems = await _ours(told)
    with tempfile.TemporaryDirectory() as folder:
        job, result = Path(folder) / "job.json", Path(folder) / "result.json"
        job.write_text(json.dumps(_job(told, asked)), encoding="utf-8")
        await environment.run_worker(python, job, result, Path(folder))
        theirs: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    refused = theirs.pop("connections refused")
    measured = {name: figures(of, asked) for name, of in (systems | theirs).items()}
    return {
        "benchmark": "peers",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "embedder": UseEmbedder.name,
        "questions": sum(each.category != ADVERSARIAL for _, each in asked),
        "messages": sum(len(each.turns) for each in told),
        "connections_refused": refused,
        **measured,
        "merk_over": ratios(measured),
    }


def _job(told: Sequence[Conversation], asked: Sequence[tuple[int, Asked]]) -> dict[str, Any]:
    return {
        "texts": [
            {"owner": f"c{number}", "turn": turn.id, "text": f"{turn.speaker}: {turn.text}"}
            for number, conversation in enumerate(told, 1)
            for turn in conversation.turns
        ],
        "questions": [{"owner": f"c{number}", "text": each.text} for number, each in asked],
        "most": MOST,
    }


async def _ours(told: Sequence[Conversation]) -> dict[str, dict[str, Any]]:
    """Merk as shipped, and its BM25 of single messages alone."""
    embedder = UseEmbedder()
    async with recall.store(embedder) as (database, evidence, _):
        places = [await recall.put(database, number, each) for number, each in enumerate(told, 1)]
        began = time.perf_counter()
        count = await evidence.catch_up()
        indexing = time.perf_counter() - began
        finder = Finder(evidence)
        outcomes = await recall.answered(finder, embedder, told, places)
        plain = [await _by_words(finder, told, places, each) for each in outcomes]
    await embedder.close()
    per_second = count / indexing
    return {
        "merk": {
            "rankings": [_ranking(each, each.ranked.scores) for each in outcomes],
            "ms": [each.ms for each in outcomes],
            "indexed_per_second": per_second,
        },
        "bm25": {"rankings": [ranking for ranking, _ in plain], "ms": [ms for _, ms in plain]},
    }


async def _by_words(
    finder: Finder, told: Sequence[Conversation], places: Sequence[recall.Place], outcome: recall.Outcome
) -> tuple[list[str], float]:
    today = told[outcome.conversation].turns[-1].at.date()
    began = time.perf_counter()
    question, found = await finder.words([places[outcome.conversation].owner], outcome.asked.text, today)
    ranking = _ranking(outcome, recall.plain(question, found))
    return ranking, (time.perf_counter() - began) * 1000


def _ranking(outcome: recall.Outcome, scores: Floats) -> list[str]:
    order = np.lexsort((-outcome.ranked.shelf.ids, -scores))[:MOST]
    return [outcome.turns[at] for at in order.tolist()]


def figures(system: Mapping[str, Any], asked: Sequence[tuple[int, Asked]]) -> dict[str, Any]:
    """Recall over categories 1 to 4, and the times of all questions."""
    rows = [
        {f"recall@{k}": len(each.gold & set(ranking[:k])) / len(each.gold) for k in _KS}
        for ranking, (_, each) in zip(system["rankings"], asked, strict=True)
        if each.category != ADVERSARIAL
    ]
    found: dict[str, Any] = {
        "turn": {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]},
        "latency_ms": {
            "p50": round(float(np.median(system["ms"])), 2),
            "p99": round(float(np.quantile(system["ms"], 0.99)), 2),
        },
    }
    if "indexed_per_second" in system:
        found["indexed_per_second"] = round(system["indexed_per_second"], 1)
    return found | {name: system[name] for name in ("version",) if name in system}


def ratios(measured: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Merk's recall@10 over each one's, and how many times as long each one takes."""
    ours = measured["merk"]
    return {
        name: {
            "recall@10": round(ours["turn"]["recall@10"] / max(of["turn"]["recall@10"], 1e-9), 3),
            "speed": round(of["latency_ms"]["p50"] / ours["latency_ms"]["p50"], 2),
        }
        for name, of in measured.items()
        if name != "merk"
    }


def table(result: Mapping[str, Any]) -> str:
    """The figures for people."""
    lines = [
        f"{result['questions']} questions, {result['messages']} messages, {result['embedder']}",
        "system      r@5    r@10   r@20   p50 ms   p99 ms   messages/s   Merk's r@10   times as slow as Merk",
    ]
    for name in ("merk", "mem0", "chroma", "bm25"):
        of = result[name]
        quality = "".join(f"{of['turn'][f'recall@{k}']:7.3f}" for k in _KS)
        times = f"{of['latency_ms']['p50']:9.1f}{of['latency_ms']['p99']:9.1f}{of.get('indexed_per_second', 0.0):13.1f}"
        ratios = result["merk_over"].get(name)
        beside = f"{ratios['recall@10']:12.2f} x{ratios['speed']:22.2f} x" if ratios else ""
        lines.append(f"{name:9}{quality}{times}{beside}")
    return "\n".join(lines)
