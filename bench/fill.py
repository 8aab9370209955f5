"""A store as months of use leave it: messages, summaries, facts, words and vectors of several people, in bulk.

Rule: rows, words and vectors are what Merk itself would have written. One thing is shortened: a sentence is embedded
without its day, once for all its kind, and each vector is moved a little, so that 100,000 messages take a minute.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import TypeVar

import numpy as np
import sqlalchemy as sa

from memory.kinds.summaries.indexing import rebuild_words
from memory.kinds.summaries.store import with_views
from memory.ports import Embedder, Vector, VectorRow
from memory.storage.database import Database
from memory.storage.index import message_vectors, message_words
from memory.storage.index.chroma_shards import Shards, shard_of
from memory.storage.index.vectors import Indexed
from memory.storage.tables import chats, evidence, facts, identities, learning, messages, sessions, summaries, users
from memory.storage.tables import message_vectors as vector_rows

HOW = "ten people; vectors: the embedder's of 1,000 kinds of sentence, each moved a little"
PER_SESSION = 40
PEOPLE = 10
FACTS = 30
NOUNS = ("garden", "ferry", "invoice", "recipe", "violin", "camera", "passport", "holiday", "dentist", "bicycle")
VERBS = ("paint", "repair", "sell", "plan", "forget", "move", "order", "clean", "lend", "water")
_NOW = 1_760_000_000_000
_ROWS = 1000
_VECTORS = 4000
_MOVED = 0.01
"""Standard deviation of each of the 512 numbers of a vector of length one: two sentences of a kind are 0.95 alike."""

T = TypeVar("T")


async def fill(
    database: Database, directory: Path, embedder: Embedder, size: int, chance: random.Random, every: int = 2
) -> None:
    """Write `size` messages and all that is derived from them; `directory` is where the vectors go.

    One session in `every` is the measured person's, number 1.
    """
    count = max(PEOPLE, size // PER_SESSION)
    await insert(database, users, (_person(number) for number in range(1, PEOPLE + 1)))
    await insert(database, identities, (_identity(number) for number in range(1, PEOPLE + 1)))
    await insert(database, chats, (_chat(number) for number in range(1, PEOPLE + 1)))
    await insert(database, sessions, (_session(number, count, every) for number in range(1, count + 1)))
    await insert(database, messages, (_message(number, count, every, chance) for number in range(size)))
    await insert(database, summaries, (_summary(number, every, embedder, chance) for number in range(1, count + 1)))
    await insert(database, learning, (_learned(number) for number in range(1, count + 1)))
    await insert(database, facts, (_fact(number, chance) for number in range(FACTS)))
    async with database.write() as connection:
        await rebuild_words(connection)
    async with database.read() as connection:
        indexed = await with_views(connection, sa.true())
    kinds = await _embedded(embedder)
    noise = np.random.default_rng(2)
    await write_evidence(database, embedder, lambda _, text: _moved(kinds[_kind_of(text)], noise))
    await asyncio.to_thread(_write_vectors, directory, embedder, indexed, kinds)


def _owner_of(session: int, every: int) -> int:
    """The measured person, or one of the others, who take turns."""
    return 1 if session % every == 0 else 2 + (session - session // every) % (PEOPLE - 1)


async def insert(database: Database, table: sa.Table, rows: Iterable[Mapping[str, object]]) -> None:
    for batch in _batches(rows, _ROWS):
        async with database.write() as connection:
            await connection.execute(table.insert(), batch)


def _batches(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    waiting = iter(rows)
    while batch := list(islice(waiting, size)):
        yield batch


# --- vectors ----------------------------------------------------------------------------------------


async def _embedded(embedder: Embedder) -> dict[str, Vector]:
    """A vector for each kind of sentence."""
    kinds = [_kind(*words) for words in product(VERBS, NOUNS, NOUNS)]
    return dict(zip(kinds, await embedder.embed_documents(kinds), strict=True))


def _write_vectors(directory: Path, embedder: Embedder, indexed: Sequence[Indexed], kinds: dict[str, Vector]) -> None:
    noise = np.random.default_rng(1)
    by_shard: dict[int, list[Indexed]] = defaultdict(list)
    for row in indexed:
        by_shard[shard_of(row.owner)].append(row)
    shards = Shards(directory, name=embedder.name, dimension=embedder.dimension)
    shards.open(is_trusted=True)
    for number, of_shard in by_shard.items():
        rows = (
            VectorRow(f"{row.row_id}.{view}", row.owner, _moved(kinds[_kind_of(text)], noise))
            for row in of_shard
            for view, text in enumerate(row.views)
        )
        for batch in _batches(rows, _VECTORS):
            shards.upsert(number, batch)
    shards.close()


async def sentences(embedder: Embedder, count: int, chance: random.Random) -> list[tuple[str, Vector]]:
    """So many, each with its vector."""
    kinds = await _embedded(embedder)
    noise = np.random.default_rng(3)
    texts = [_sentence(chance) for _ in range(count)]
    return [(text, _moved(kinds[_kind_of(text)], noise)) for text in texts]


async def write_evidence(database: Database, embedder: Embedder, vector_of: Callable[[int, str], Vector]) -> None:
    """Index all that wait: words by the shipped code in larger transactions, vectors as they are given for each."""
    while True:
        async with database.write() as connection:
            if not await message_words.index_waiting(connection, _ROWS):
                break
    model = f"{embedder.name}:{embedder.dimension}"
    last = 0
    while True:
        async with database.write() as connection:
            query = (
                sa.select(evidence.c.message_id, evidence.c.owner, messages.c.text)
                .join(messages, messages.c.id == evidence.c.message_id)
                .where(evidence.c.message_id > last, evidence.c.indexed_as.is_(None))
                .order_by(evidence.c.message_id)
                .limit(_ROWS)
            )
            rows = (await connection.execute(query)).all()
            if not rows:
                return
            packed = [message_vectors.pack(vector_of(row[0], row[2])) for row in rows]
            values = [
                {"message_id": row[0], "model": model, "part": 0, "owner": row[1], "vector": vector}
                for row, vector in zip(rows, packed, strict=True)
            ]
            await connection.execute(vector_rows.insert(), values)
            done = evidence.c.message_id.between(last + 1, rows[-1][0])
            await connection.execute(evidence.update().where(done).values(indexed_as=model))
            last = rows[-1][0]


def _moved(vector: Vector, noise: np.random.Generator) -> Vector:
    moved = vector + noise.normal(0, _MOVED, vector.shape).astype(np.float32)
    return (moved / np.linalg.norm(moved)).astype(np.float32)


# --- rows -------------------------------------------------------------------------------------------


def _person(number: int) -> dict[str, object]:
    return {"id": number, "name": f"Person {41 + number}", "role": "member", "created_at": _NOW}


def _identity(number: int) -> dict[str, object]:
    return {"key": f"fake:{41 + number}", "user_id": number, "created_at": _NOW}


def _chat(number: int) -> dict[str, object]:
    return {"id": number, "transport": "fake", "external_id": str(41 + number), "kind": "ai", "created_at": _NOW}


def _session(number: int, count: int, every: int) -> dict[str, object]:
    person = _owner_of(number, every)
    return {
        "id": number,
        "chat_id": person,
        "thread": "",
        "user_id": person,
        "owner": f"u{person}",
        "title": f"Chat {number}",
        "is_current": all(_owner_of(later, every) != person for later in range(number + 1, count + 1)),
        "created_at": _NOW,
        "last_used_at": _NOW + number,
    }


def _message(number: int, count: int, every: int, chance: random.Random) -> dict[str, object]:
    session = min(number // PER_SESSION + 1, count)
    is_users = number % 2 == 0
    person = _owner_of(session, every)
    return {
        "session_id": session,
        "user_id": person if is_users else None,
        "role": "user" if is_users else "assistant",
        "speaker": f"Person {41 + person}" if is_users else "Merk",
        "text": _sentence(chance),
        "created_at": _NOW + number,
    }


def _summary(number: int, every: int, embedder: Embedder, chance: random.Random) -> dict[str, object]:
    return {
        "session_id": number,
        "owner": f"u{_owner_of(number, every)}",
        "text": f"{_sentence(chance)} {_sentence(chance)}",
        "generated_by_model": "bench",
        "watermark": number * PER_SESSION,
        "indexed_as": f"{embedder.name}:{embedder.dimension}",
        "created_at": _NOW,
        "updated_at": _NOW,
    }


def _learned(number: int) -> dict[str, object]:
    return {"kind": "summaries", "session_id": number, "watermark": number * PER_SESSION}


def _fact(number: int, chance: random.Random) -> dict[str, object]:
    return {
        "owner": "u1",
        "scope": "private",
        "user_id": 1,
        "speaker": "Person 42",
        "text": f"{_sentence(chance)} ({number})",
        "content_hash": str(number),
        "valid_from": _NOW,
        "created_at": _NOW,
    }


def _sentence(chance: random.Random) -> str:
    kind = _kind(chance.choice(VERBS), chance.choice(NOUNS), chance.choice(NOUNS))
    return f"{kind} on day {chance.randint(1, 400)}."


def _kind(verb: str, what: str, where: str) -> str:
    return f"We wanted to {verb} the {what} near the {where}"


def _kind_of(sentence: str) -> str:
    return sentence.partition(" on day ")[0]
