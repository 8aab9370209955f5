"""Recall as the log grows: time, memory and disk with messages of 200 people, half a year of chats each.

Rule: rows and words are made by the shipped code; vectors are the embedder's of 1,000 kinds of sentence, each moved a
little, because a million sentences would take an hour to embed. How fast it really embeds is measured beside it.
"""

import asyncio
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from bench.fill import HOW, NOUNS, VERBS
from bot.embedders.builtin import UseEmbedder
from memory.instants import SystemClock
from memory.ports import Vector
from memory.recall.evidence import Evidence
from memory.recall.finder import Finder
from memory.storage.database import Database
from memory.storage.index import message_vectors, message_words
from memory.storage.migrate import migrate
from memory.storage.tables import chats, evidence, messages, sessions, users

PEOPLE = 200
PER_SESSION = 40
QUESTIONS = 400
_ROWS = 2000
_NOW = 1_760_000_000_000
_NEW = 400
"""Messages that are added at the end, to see how fast they are indexed."""


@dataclass(frozen=True)
class Figures:
    messages: int
    p50_ms: float
    p99_ms: float
    first_p50_ms: float
    """A person's first question after a start, when nothing of theirs is held in memory."""
    indexed_per_second: float
    resident_mb: float
    disk_mb: float


async def measure(sizes: Sequence[int]) -> dict[str, Any]:
    """One store a size."""
    found = [await _at_size(size) for size in sizes]
    return {
        "benchmark": "growth",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "store": f"{PEOPLE} people; {HOW.partition('; ')[2]}",
        "growth": [asdict(each) for each in found],
    }


async def _at_size(size: int) -> Figures:
    chance = random.Random(size)
    embedder = UseEmbedder()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "merk.db"
        database = Database.at(path)
        await migrate(database, path, SystemClock())
        await _fill(database, size, chance)
        await _index(database, embedder, size)
        held = Evidence(database, embedder)
        times, first = await _ask(Finder(held), embedder, chance)
        speed = await _keep_up(database, held, size, chance)
        disk = sum(each.stat().st_size for each in Path(folder).iterdir()) / 1e6
        await database.close()
    await embedder.close()
    return Figures(
        size,
        round(float(np.quantile(times, 0.5)), 2),
        round(float(np.quantile(times, 0.99)), 2),
        round(float(np.median(first)), 2),
        round(speed, 1),
        round(_resident_mb(), 1),
        round(disk, 1),
    )


async def _fill(database: Database, size: int, chance: random.Random) -> None:
    common = {"created_at": _NOW}
    async with database.write() as connection:
        await connection.execute(
            users.insert(), [{"id": n, "name": f"Person {n}", "role": "member"} | common for n in range(1, PEOPLE + 1)]
        )
        await connection.execute(
            chats.insert(),
            [
                {"id": n, "transport": "bench", "external_id": str(n), "kind": "ai"} | common
                for n in range(1, PEOPLE + 1)
            ],
        )
    count = -(-size // PER_SESSION)
    for start in range(0, count, _ROWS):
        rows = [
            {
                "id": n + 1,
                "chat_id": n % PEOPLE + 1,
                "thread": str(n),
                "user_id": n % PEOPLE + 1,
                "owner": f"u{n % PEOPLE + 1}",
            }
            | {"is_current": False, "last_used_at": _NOW}
            | common
            for n in range(start, min(start + _ROWS, count))
        ]
        async with database.write() as connection:
            await connection.execute(sessions.insert(), rows)
    for start in range(0, size, _ROWS):
        rows = [_message(n, chance) for n in range(start, min(start + _ROWS, size))]
        async with database.write() as connection:
            await connection.execute(messages.insert(), rows)


def _message(number: int, chance: random.Random) -> dict[str, Any]:
    session = number // PER_SESSION
    person = session % PEOPLE + 1
    is_persons = number % 2 == 0
    return {
        "session_id": session + 1,
        "user_id": person if is_persons else None,
        "role": "user" if is_persons else "assistant",
        "speaker": f"Person {person}" if is_persons else "Merk",
        "text": (
            f"{_kind(chance)} on day {chance.randint(1, 400)}, "
            f"with {chance.choice(NOUNS)} number {chance.randint(1, 5000)}."
        ),
        "created_at": _NOW + number * 1000,
    }


def _kind(chance: random.Random) -> str:
    return f"We wanted to {chance.choice(VERBS)} the {chance.choice(NOUNS)} near the {chance.choice(NOUNS)}"


async def _index(database: Database, embedder: UseEmbedder, size: int) -> None:
    """Words by the shipped code, in larger transactions; vectors that were moved a little."""
    while True:
        async with database.write() as connection:
            if not await message_words.index_waiting(connection, _ROWS):
                break
    kinds = np.stack(
        await embedder.embed_documents(
            [f"{verb} the {what} near the {where}" for verb in VERBS for what in NOUNS for where in NOUNS]
        )
    )
    noise = np.random.default_rng(size)
    name = f"{embedder.name}:{embedder.dimension}"
    for start in range(0, size, _ROWS):
        async with database.write() as connection:
            query = sa.select(evidence.c.message_id, evidence.c.owner).where(
                evidence.c.message_id > start, evidence.c.message_id <= start + _ROWS
            )
            rows = (await connection.execute(query)).all()
            vectors = kinds[noise.integers(0, len(kinds), len(rows))] + noise.normal(
                0, 0.01, (len(rows), kinds.shape[1])
            ).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            await connection.execute(
                message_vectors.message_vectors.insert(),
                [
                    {
                        "message_id": row[0],
                        "model": name,
                        "part": 0,
                        "owner": row[1],
                        "vector": message_vectors.pack(_as(vector)),
                    }
                    for row, vector in zip(rows, vectors, strict=True)
                ],
            )
            await connection.execute(
                evidence.update()
                .where(evidence.c.message_id > start, evidence.c.message_id <= start + _ROWS)
                .values(indexed_as=name)
            )


def _as(vector: Any) -> Vector:
    return vector.astype(np.float32)


async def _ask(finder: Finder, embedder: UseEmbedder, chance: random.Random) -> tuple[list[float], list[float]]:
    """Milliseconds of questions, each of a person at random: all but their first, and their first."""
    await embedder.embed_query("warm")
    seen: set[int] = set()
    times: list[float] = []
    first: list[float] = []
    for _ in range(QUESTIONS):
        person = chance.randint(1, PEOPLE)
        text = f"When did we {chance.choice(VERBS)} the {chance.choice(NOUNS)} with number {chance.randint(1, 5000)}?"
        began = time.perf_counter()
        (question, found), vector = await asyncio.gather(
            finder.words([f"u{person}"], text, date(2025, 12, 1)), embedder.embed_query(text)
        )
        await finder.rank(question, found, vector, asker=person)
        (times if person in seen else first).append((time.perf_counter() - began) * 1000)
        seen.add(person)
    return times, first


async def _keep_up(database: Database, held: Evidence, size: int, chance: random.Random) -> float:
    """How many new messages are indexed and embedded a second."""
    rows = [_message(size + n, chance) | {"session_id": 1} for n in range(_NEW)]
    async with database.write() as connection:
        await connection.execute(messages.insert(), rows)
    began = time.perf_counter()
    done = await held.catch_up()
    return done / (time.perf_counter() - began)


def _resident_mb() -> float:
    status = Path("/proc/self/status").read_text()
    found = next((line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")), None)
    return int(found) / 1024 if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    lines = ["messages   p50 ms   p99 ms  first ms  indexed/s  resident MB  disk MB"]
    lines += [
        f"{row['messages']:>8} {row['p50_ms']:>8} {row['p99_ms']:>8} {row['first_p50_ms']:>9} "
        f"{row['indexed_per_second']:>10} {row['resident_mb']:>12} {row['disk_mb']:>8}"
        for row in result["growth"]
    ]
    return "\n".join(lines)
