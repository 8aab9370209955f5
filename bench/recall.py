"""How well memory finds what was said: evidence recall on conversations in LoCoMo's format, through the shipped code.

Turns become messages of a group chat in a database of their own, indexed and searched as Merk itself does. No language
model is asked anything. Weights that were fitted are also judged on the one conversation that the fit did not see.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from bench import recall_noted, recall_probe
from bench.recall_data import ADVERSARIAL, Asked, Conversation, conversations
from bot.embedders.builtin import UseEmbedder
from memory.instants import SystemClock, to_ms
from memory.kinds.observations.reading import Reading
from memory.language.words import name_keys, tokens
from memory.ports import Embedder
from memory.recall.evidence import Evidence, Found
from memory.recall.finder import Finder, Ranked
from memory.recall.fitting import FITTED, Sample, fit, whole
from memory.recall.fusion import ACROSS, WEIGHTS, fuse
from memory.recall.question import Question
from memory.recall.shelf import Floats
from memory.recall.views import bm25, occurrences
from memory.scope import Audience
from memory.storage.database import Database
from memory.storage.migrate import migrate
from memory.storage.tables import chats, messages, sessions, users

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", ADVERSARIAL: "adversarial"}
BUDGET_WORDS = 290
_CORES = 2
_OF_KEYS = ("keys", "keyed")
_FITTED = tuple(name for name in FITTED if name not in _OF_KEYS)


@dataclass
class Place:
    """A conversation in the database."""

    owner: str
    turn_of: dict[int, str]
    words_of: dict[int, int]

    @property
    def message_of(self) -> dict[str, int]:
        return {turn: message for message, turn in self.turn_of.items()}


@dataclass
class Outcome:
    """One question as it was answered."""

    conversation: int
    asked: Asked
    question: Question
    held: Found
    vector: Floats
    ranked: Ranked
    turns: list[str]
    """The turn at each place on the shelf."""
    words: list[int]
    ms: float
    gold: list[int] = field(default_factory=list[int])


async def measure(data: Path, probe_file: Path | None = None) -> dict[str, object]:
    """All systems on all questions; the probe, where a file is given. Raises CommandError for a file that is none."""
    began = time.perf_counter()
    told = conversations(data)
    embedder = UseEmbedder()
    async with store(embedder) as (database, evidence, folder):
        places = [await put(database, number, each) for number, each in enumerate(told, 1)]
        indexing = time.perf_counter()
        count = await evidence.catch_up()
        indexing = time.perf_counter() - indexing
        outcomes = await answered(Finder(evidence), embedder, told, places)
        told_of = [(place.owner, each, place.message_of) for place, each in zip(places, told, strict=True)]
        async with recall_noted.reading(database, embedder, folder / "chroma", told_of) as observations:
            noted = await _with_observations(Finder(evidence), outcomes, observations, embedder.floor)
    held_out = _held_out(outcomes)
    noted_held_out = _held_out(noted, FITTED)
    result: dict[str, object] = {
        "benchmark": "recall",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "embedder": embedder.name,
        "questions": sum(each.asked.category != ADVERSARIAL for each in outcomes),
        "messages": count,
        "indexed_per_second": round(count / indexing, 1),
        "merk": _system(outcomes, [each.ranked.scores for each in outcomes]),
        "merk_held_out": _system(outcomes, held_out.scores),
        "merk_with_observations": {
            "observations": "the file's own, made by somebody else's model",
            "count": sum(len(each.noted) for each in told),
            **_system(noted, noted_held_out.scores),
            "as_shipped": _system(noted, [each.ranked.scores for each in noted]),
            "fit": {"all": fit(_samples(noted), FITTED), "held_out": noted_held_out.weights},
        },
        "bm25": _system(outcomes, [plain(each.question, each.held) for each in outcomes]),
        "words": _system(outcomes, [_only(each, "said", "around", "session") for each in outcomes]),
        "meaning": _system(outcomes, [_only(each, "meaning") for each in outcomes]),
        "rrf": _system(outcomes, [_by(each, "rrf") for each in outcomes]),
        "minmax": _system(outcomes, [_by(each, "minmax") for each in outcomes]),
        "fit": {"all": fit(_samples(outcomes), _FITTED), "held_out": held_out.weights, "shipped": dict(WEIGHTS)},
        "across": ACROSS,
        "by_conversation": _by_conversation(outcomes, told),
    }
    if probe_file is not None:
        result["probe"] = await recall_probe.measure(probe_file, embedder)
    await embedder.close()
    result["seconds"] = round(time.perf_counter() - began, 1)
    return result


@asynccontextmanager
async def store(embedder: Embedder) -> AsyncGenerator[tuple[Database, Evidence, Path], None]:
    """An empty database with its evidence in a folder, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "merk.db"
        database = Database.at(path)
        await migrate(database, path, SystemClock())
        yield database, Evidence(database, embedder), path.parent
        await database.close()


async def put(database: Database, number: int, told: Conversation) -> Place:
    """A conversation as sessions of the group chat `number`."""
    place = Place(f"c{number}", {}, {})
    speakers = {name: number * 100 + at for at, name in enumerate(dict.fromkeys(turn.speaker for turn in told.turns))}
    numbers = sorted({turn.session for turn in told.turns})
    first = number * 1_000_000
    rows: list[dict[str, Any]] = []
    for at, turn in enumerate(told.turns, first):
        place.turn_of[at], place.words_of[at] = turn.id, len(turn.text.split())
        rows.append(
            {
                "id": at,
                "session_id": first + turn.session,
                "user_id": speakers[turn.speaker],
                "role": "user",
                "speaker": turn.speaker,
                "text": turn.text,
                "created_at": to_ms(turn.at) + at - first,
            }
        )
    common = {"created_at": 0}
    async with database.write() as connection:
        chat = {"id": number, "transport": "bench", "external_id": str(number), "kind": "user"}
        await connection.execute(chats.insert(), chat | common)
        people = [{"id": id, "name": name, "role": "member"} | common for name, id in speakers.items()]
        await connection.execute(users.insert(), people)
        owned = {"chat_id": number, "user_id": people[0]["id"], "owner": place.owner, "is_current": False}
        held = [owned | common | {"id": first + each, "thread": str(each), "last_used_at": 0} for each in numbers]
        await connection.execute(sessions.insert(), held)
        await connection.execute(messages.insert(), rows)
    return place


async def answered(
    finder: Finder,
    embedder: Embedder,
    told: Sequence[Conversation],
    places: Sequence[Place],
) -> list[Outcome]:
    """Every question as Merk answers it."""
    found: list[Outcome] = []
    for number, (conversation, place) in enumerate(zip(told, places, strict=True)):
        today = conversation.turns[-1].at.date()
        for asked in conversation.questions:
            began = time.perf_counter()
            (question, held), vector = await asyncio.gather(
                finder.words([place.owner], asked.text, today), embedder.embed_query(asked.text)
            )
            ranked = await finder.rank(question, held, vector, asker=0)
            took = (time.perf_counter() - began) * 1000
            ids = ranked.shelf.ids.tolist()
            turns = [place.turn_of[each] for each in ids]
            words = [place.words_of[each] for each in ids]
            outcome = Outcome(number, asked, question, held, vector, ranked, turns, words, took)
            outcome.gold = [at for at, turn in enumerate(turns) if turn in asked.gold]
            found.append(outcome)
    return found


async def _with_observations(
    finder: Finder, outcomes: Sequence[Outcome], observations: Reading, floor: float
) -> list[Outcome]:
    """The same questions with observations as further keys; looking them up is added to the time."""
    found: list[Outcome] = []
    for each in outcomes:
        here = Audience(0, each.conversation + 1, is_private=False)
        began = time.perf_counter()
        heard = await observations.hear(here, each.asked.text, session_id=0)
        sought = None if heard is None else await observations.seek(heard, each.vector)
        took = (time.perf_counter() - began) * 1000
        leads = sought.leads if sought else ()
        ranked = await finder.rank(each.question, each.held, each.vector, asker=0, leads=leads, floor=floor)
        found.append(replace(each, ranked=ranked, ms=each.ms + took))
    return found


def plain(question: Question, found: Found) -> Floats:
    """BM25 of "speaker: text", each message by itself."""
    shelf = found.shelf
    said = occurrences(shelf, found.hits)
    for at, word in enumerate(question.words):
        for person, name in found.names.items():
            if any(not name_keys(word).isdisjoint(name_keys(token)) for token in tokens(name)):
                said[at] += shelf.speakers == person
    return bm25(said, shelf.words + 1)[0]


def _only(outcome: Outcome, *names: str) -> Floats:
    views = outcome.ranked.views
    return fuse({name: views[name] for name in names if name in views})


def _by(outcome: Outcome, method: Any) -> Floats:
    views = outcome.ranked.views
    return fuse({name: views[name] for name in ("said", "around", "session", "meaning")}, method=method)


# --- weights ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _HeldOut:
    scores: list[Floats]
    weights: list[dict[str, float]]


def _samples(outcomes: Sequence[Outcome], without: int | None = None) -> list[Sample]:
    return [
        Sample(whole(each.ranked.views), each.gold)
        for each in outcomes
        if each.conversation != without and each.asked.category != ADVERSARIAL and each.gold
    ]


def _held_out(outcomes: Sequence[Outcome], names: Sequence[str] = _FITTED) -> _HeldOut:
    """Each conversation ranked with weights that were fitted on the others."""
    numbers = sorted({each.conversation for each in outcomes})
    if len(numbers) < 2:
        return _HeldOut([each.ranked.scores for each in outcomes], [])
    with ThreadPoolExecutor(_CORES) as pool:
        fitted = pool.map(fit, [_samples(outcomes, number) for number in numbers], repeat(names))
        weights = {number: dict(WEIGHTS) | found for number, found in zip(numbers, fitted, strict=True)}
    return _HeldOut(
        [fuse(each.ranked.views, weights=weights[each.conversation]) for each in outcomes], list(weights.values())
    )


# --- figures ------------------------------------------------------------------------------------------


def _system(outcomes: Sequence[Outcome], scores: Sequence[Floats]) -> dict[str, Any]:
    """The figures of one system, for categories 1 to 4 and for each by itself."""
    rows = [_figures(each, of) for each, of in zip(outcomes, scores, strict=True)]
    main = [row for row, each in zip(rows, outcomes, strict=True) if each.asked.category != ADVERSARIAL]
    times = [each.ms for each in outcomes]
    return {
        **_means(main),
        "by_category": {
            name: {"questions": len(of), **_means(of)}
            for number, name in CATEGORIES.items()
            if (of := [row for row, each in zip(rows, outcomes, strict=True) if each.asked.category == number])
        },
        "latency_ms": {"p50": round(float(np.median(times)), 2), "p99": round(float(np.quantile(times, 0.99)), 2)},
    }


def _figures(outcome: Outcome, scores: Floats) -> dict[str, float]:
    shelf = outcome.ranked.shelf
    order = np.lexsort((-shelf.ids, -scores)).tolist()
    gold = set(outcome.gold)
    ranked = list(dict.fromkeys(shelf.runs[order].tolist()))
    wanted = {int(shelf.runs[at]) for at in gold}
    lengths = np.cumsum(np.array([outcome.words[at] for at in order], dtype=np.int64))
    return {
        **{f"recall@{k}": len(gold & set(order[:k])) / max(len(gold), 1) for k in (5, 10, 20)},
        "mrr": next((1 / rank for rank, at in enumerate(order, 1) if at in gold), 0.0),
        f"recall@{BUDGET_WORDS}words": len(gold & set(order[: int((lengths <= BUDGET_WORDS).sum())]))
        / max(len(gold), 1),
        "words@10": float(lengths[min(9, len(lengths) - 1)]),
        **{f"session recall@{k}": len(wanted & set(ranked[:k])) / max(len(wanted), 1) for k in (1, 3, 5)},
    }


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    means = {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]} if rows else {}
    session = {name.removeprefix("session "): value for name, value in means.items() if name.startswith("session ")}
    return {
        "turn": {name: value for name, value in means.items() if not name.startswith("session ")},
        "session": session,
    }


def _by_conversation(outcomes: Sequence[Outcome], told: Sequence[Conversation]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for number, conversation in enumerate(told):
        of = [each for each in outcomes if each.conversation == number and each.asked.category != ADVERSARIAL]
        rows = [_figures(each, each.ranked.scores) for each in of]
        means = _means(rows)
        found[conversation.name] = {
            "recall@10": means["turn"]["recall@10"],
            "session recall@5": means["session"]["recall@5"],
        }
    return found


def table(result: Mapping[str, Any]) -> str:
    """The figures for people."""
    lines = [
        f"{result['questions']} questions, {result['messages']} messages, {result['embedder']}, {result['seconds']} s",
        "system           r@5    r@10   r@20   290w   S@1    S@3    S@5    mrr    adv@10  p50 ms",
    ]
    for name in ("merk", "merk_held_out", "merk_with_observations", "bm25", "words", "meaning", "rrf", "minmax"):
        of = result[name]
        turn, session = of["turn"], of["session"]
        figures = [turn["recall@5"], turn["recall@10"], turn["recall@20"], turn[f"recall@{BUDGET_WORDS}words"]]
        figures += [session["recall@1"], session["recall@3"], session["recall@5"], turn["mrr"]]
        figures.append(of["by_category"].get("adversarial", {}).get("turn", {}).get("recall@10", 0.0))
        row = "".join(f"{value:7.3f}" for value in figures)
        lines.append(f"{name.replace('_with_observations', ' + noticed'):15}{row}{of['latency_ms']['p50']:8.1f}")
    for name, value in result["merk"]["by_category"].items():
        turn, session = value["turn"], value["session"]
        lines.append(f"  {name:13}{turn['recall@10']:.3f} at 10, sessions {session['recall@5']:.3f} at 5")
    if "probe" in result:
        lines += recall_probe.lines(result["probe"])
    return "\n".join(lines)
