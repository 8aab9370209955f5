"""Facts told in one language and asked for in another, among distractors: through the shipped code.

Each fact is a message of its own session, in the language in which it was told.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench import recall
from bench.recall_data import Conversation, Turn, probe
from memory.ports import Embedder
from memory.recall.finder import Finder, asks, is_evidence
from memory.recall.fusion import fuse

_TODAY = date(2026, 1, 1)
_RANKS = (1, 3, 5)


async def measure(path: Path, embedder: Embedder) -> dict[str, Any]:
    """Recall@1, 3 and 5 of Merk, of its words and of its meaning alone. Raises CommandError as `recall_data.probe`."""
    told = probe(path)
    facts = told["facts"]
    plain = [(each["id"], each["fact"][each["stored_in"]]) for each in facts]
    noise = [(f"{language}{at}", text) for language, of in told["distractors"].items() for at, text in enumerate(of)]
    return {
        "mixed": await _pool(plain, told, embedder),
        "crowded": await _pool(plain + noise, told, embedder),
        "questions": len(facts) * len(told["languages"]),
    }


async def _pool(texts: Sequence[tuple[Any, str]], told: dict[str, Any], embedder: Embedder) -> dict[str, Any]:
    at = datetime(2025, 6, 1, tzinfo=UTC)
    turns = [Turn(str(name), number, "Ada", text, at) for number, (name, text) in enumerate(texts)]
    rows: list[dict[str, Any]] = []
    async with recall.store(embedder) as (database, evidence, _):
        place = await recall.put(database, 1, Conversation("probe", turns, [], []))
        await evidence.catch_up()
        finder = Finder(evidence)
        for fact in told["facts"]:
            for language in told["languages"]:
                text = fact["question"][language]
                (question, found), vector = await asyncio.gather(
                    finder.words([place.owner], text, _TODAY), embedder.embed_query(text)
                )
                ranked = await finder.rank(question, found, vector, asker=100)
                systems = {
                    "merk": ranked.scores,
                    "words": fuse({name: ranked.views[name] for name in ("said", "around", "session")}),
                    "meaning": ranked.views["meaning"],
                }
                ids = [place.turn_of[each] for each in ranked.shelf.ids.tolist()]
                gold = ids.index(str(fact["id"]))
                row: dict[str, Any] = {"same": language == fact["stored_in"]}
                for name, scores in systems.items():
                    row[name] = int((scores > scores[gold]).sum()) + 1
                    if scores[gold] <= 0:
                        row[name] = len(scores)
                row["asks"] = asks(text)
                row["kept"] = asks(text) and is_evidence(ranked.line(gold), embedder.floor)
                row["passed"] = row["asks"] and any(
                    is_evidence(ranked.line(int(each)), embedder.floor) for each in ranked.best(3)
                )
                rows.append(row)
    return {
        **{
            name: {
                group: _recall([row[name] for row in rows if row["same"] in choose])
                for group, choose in _GROUPS.items()
            }
            for name in ("merk", "words", "meaning")
        },
        "not_silenced": round(float(np.mean([row["passed"] for row in rows])), 4),
        "gold_above_floor": round(float(np.mean([row["kept"] for row in rows])), 4),
    }


_GROUPS: dict[str, tuple[bool, ...]] = {
    "all": (True, False),
    "same": (True,),
    "other": (False,),
}


def _recall(ranks: Sequence[int]) -> dict[str, float]:
    return {f"recall@{k}": round(float(np.mean([rank <= k for rank in ranks])), 3) for k in _RANKS}


def lines(result: dict[str, Any]) -> list[str]:
    """The figures for people."""
    found = [f"probe, {result['questions']} questions: recall@1 / 3 / 5"]
    for pool in ("mixed", "crowded"):
        for system in ("merk", "words", "meaning"):
            groups = [
                f"{group} " + "/".join(f"{value:.2f}" for value in of.values())
                for group, of in result[pool][system].items()
            ]
            found.append(f"  {pool:8}{system:8}" + "  ".join(groups))
        found.append(f"  {pool:8}not silenced {result[pool]['not_silenced']:.3f}")
    return found
