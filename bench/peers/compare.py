"""Merk, mem0, plain Chroma and BM25 alone: the same texts, the same questions, the same embedder, one after the other.

Everything is measured twice: with the files alone, then in the same stores beside other people's messages. Those are
the same texts with the same vectors for all (sentences of 1,000 kinds, embedded once a kind, each vector moved a
little) and come in many at a time: into Merk as rows, words and vectors of other owners, into plain Chroma through its
collection, into mem0 through its own vector store with the payload that `add(infer=False)` writes.

Rule: everybody gets "speaker: text" and ranks a conversation's own turns; times are from the question to the ranking.
Before each time a few questions are asked that do not count, and Merk holds nothing in memory that it read before. Its
BM25 is asked right after the whole of it, and finds the words of the question remembered.
"""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench import recall
from bench.peers import environment, others
from bench.peers.others import Others
from bench.recall_data import ADVERSARIAL, Asked, Conversation, conversations
from bot.embedders.builtin import UseEmbedder
from memory.recall.evidence import Evidence
from memory.recall.finder import Finder
from memory.recall.shelf import Floats
from memory.storage.database import Database

MOST = 20
WARM_UP = 5
"""Questions before each measurement that do not count."""
_KS = (5, 10, 20)


async def measure(data: Path, beside: int) -> dict[str, object]:
    """All systems on all questions, alone and, where it is not 0, beside so many messages of other people.

    Raises CommandError for a file that is none, or without the peers.
    """
    told = conversations(data)
    python = await environment.ensure()
    asked = [(number, each) for number, conversation in enumerate(told, 1) for each in conversation.questions]
    embedder = UseEmbedder()
    around = await others.make(embedder, beside)
    systems = await _ours(embedder, told, around)
    await embedder.close()
    with tempfile.TemporaryDirectory() as folder:
        job, result_file, vectors = (Path(folder) / name for name in ("job.json", "result.json", "others.npy"))
        np.save(vectors, around.vectors)
        job.write_text(json.dumps(_job(told, asked, around) | {"vectors": str(vectors)}), encoding="utf-8")
        await environment.run_worker(python, job, result_file, Path(folder))
        theirs: dict[str, Any] = json.loads(result_file.read_text(encoding="utf-8"))
    refused = theirs.pop("connections refused")
    systems |= theirs
    alone = _judged(systems, asked)
    result: dict[str, object] = {
        "benchmark": "peers",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "embedder": UseEmbedder.name,
        "questions": sum(each.category != ADVERSARIAL for _, each in asked),
        "messages": sum(len(each.turns) for each in told),
        "connections_refused": refused,
        **alone,
    }
    if beside:
        again = _judged({name: of["beside"] for name, of in systems.items()}, asked)
        result["beside"] = {"messages": len(around), "people": around.people, "how": others.HOW, **again}
    return result


def _judged(systems: Mapping[str, Mapping[str, Any]], asked: Sequence[tuple[int, Asked]]) -> dict[str, Any]:
    measured = {name: figures(of, asked) for name, of in systems.items()}
    return measured | {"merk_over": ratios(measured)}


def _job(told: Sequence[Conversation], asked: Sequence[tuple[int, Asked]], around: Others) -> dict[str, Any]:
    return {
        "texts": [
            {"owner": f"c{number}", "turn": turn.id, "text": f"{turn.speaker}: {turn.text}"}
            for number, conversation in enumerate(told, 1)
            for turn in conversation.turns
        ],
        "others": around.rows(),
        "questions": [{"owner": f"c{number}", "text": each.text} for number, each in asked],
        "warm_up": WARM_UP,
        "most": MOST,
    }


async def _ours(embedder: UseEmbedder, told: Sequence[Conversation], around: Others) -> dict[str, dict[str, Any]]:
    """Merk as shipped, and its BM25 of single messages alone."""
    async with recall.store(embedder) as (database, evidence, _):
        places = [await recall.put(database, number, each) for number, each in enumerate(told, 1)]
        began = time.perf_counter()
        count = await evidence.catch_up()
        per_second = count / (time.perf_counter() - began)
        found = await _asked(database, embedder, told, places)
        found["merk"]["indexed_per_second"] = per_second
        if len(around):
            await others.put(database, embedder, around)
            for name, of in (await _asked(database, embedder, told, places)).items():
                found[name]["beside"] = of
    return found


async def _asked(
    database: Database, embedder: UseEmbedder, told: Sequence[Conversation], places: Sequence[recall.Place]
) -> dict[str, dict[str, Any]]:
    finder = Finder(Evidence(database, embedder))
    first = replace(told[0], questions=told[0].questions[:WARM_UP])
    for each in await recall.answered(finder, embedder, [first], places[:1]):
        await _by_words(finder, told, places, each)
    outcomes = await recall.answered(finder, embedder, told, places)
    plain = [await _by_words(finder, told, places, each) for each in outcomes]
    return {
        "merk": {
            "rankings": [_ranking(each, each.ranked.scores) for each in outcomes],
            "ms": [each.ms for each in outcomes],
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
    lines = [f"{result['questions']} questions, {result['messages']} messages, {result['embedder']}", *_block(result)]
    if "beside" in result:
        of = result["beside"]
        lines += ["", f"the same beside {of['messages']} messages of {of['people']} other people", *_block(of)]
    return "\n".join(lines)


def _block(measured: Mapping[str, Any]) -> list[str]:
    lines = ["system      r@5    r@10   r@20   p50 ms   p99 ms   messages/s   Merk's r@10   times as slow as Merk"]
    for name in ("merk", "mem0", "chroma", "bm25"):
        of = measured[name]
        quality = "".join(f"{of['turn'][f'recall@{k}']:7.3f}" for k in _KS)
        times = f"{of['latency_ms']['p50']:9.1f}{of['latency_ms']['p99']:9.1f}"
        speed = f"{of['indexed_per_second']:13.1f}" if "indexed_per_second" in of else " " * 13
        over = measured["merk_over"].get(name)
        ratio = f"{over['recall@10']:12.2f} x{over['speed']:22.2f} x" if over else ""
        lines.append(f"{name:9}{quality}{times}{speed}{ratio}".rstrip())
    return lines
