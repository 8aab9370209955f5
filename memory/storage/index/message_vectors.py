"""The vectors of messages: compact rows beside the log, read a whole owner at a time and compared exactly.

Rule: a vector is one scale and an int8 a dimension; the cosine of two that were packed is within 0.01 of the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.ports import Vector
from memory.storage.tables import evidence, message_vectors, messages

_FULL = 127.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message without vectors of the embedder."""

    message_id: int
    owner: str
    is_person: bool
    text: str


def pack(vector: Vector) -> bytes:
    """A vector of length one as bytes."""
    scale = np.float32(np.abs(vector).max() / _FULL or 1.0)
    return scale.tobytes() + np.rint(vector / scale).astype(np.int8).tobytes()


async def waiting(connection: AsyncConnection, model: str, most: int) -> list[Waiting]:
    """Messages that have no vectors of this model: first those without any, then another model's; oldest first."""
    query = (
        sa.select(evidence.c.message_id, evidence.c.owner, evidence.c.speaker, messages.c.text)
        .join(messages, messages.c.id == evidence.c.message_id)
        .order_by(evidence.c.indexed_as, evidence.c.message_id)
        .limit(most)
    )
    found: list[Waiting] = []
    for which in _behind(model):  # one by one: each is read in the order of the index, however many there are
        rows = (await connection.execute(query.where(which))).all() if not found else ()
        found = found or [Waiting(row[0], row[1], row[2] != 0, row[3]) for row in rows]
    return found


async def made_by(connection: AsyncConnection) -> dict[str | None, int]:
    """How many messages have their vectors of which model; None: of none yet."""
    query = sa.select(evidence.c.indexed_as, sa.func.count()).group_by(evidence.c.indexed_as)
    return {row[0]: int(row[1]) for row in (await connection.execute(query)).all()}


async def drop_others(connection: AsyncConnection, model: str, after: int, most: int) -> int | None:
    """Remove the vectors of other models of up to so many messages after one; return the last one, None at the end."""
    of_others = message_vectors.c.model != model
    query = (
        sa.select(message_vectors.c.message_id)
        .distinct()
        .where(message_vectors.c.message_id > after, of_others)
        .order_by(message_vectors.c.message_id)
        .limit(most)
    )
    ids = list((await connection.execute(query)).scalars())
    if not ids:
        return None
    await connection.execute(message_vectors.delete().where(message_vectors.c.message_id.in_(ids), of_others))
    return int(ids[-1])


async def behind(connection: AsyncConnection, model: str) -> int:
    """How many messages have no vectors of this model yet."""
    query = sa.select(sa.func.count()).select_from(evidence).where(sa.or_(*_behind(model)))
    return int((await connection.execute(query)).scalar_one())


async def put(connection: AsyncConnection, model: str, made: Sequence[tuple[Waiting, Sequence[Vector]]]) -> None:
    """Store the vectors of messages whose words are still the ones that were embedded."""
    ids = [row.message_id for row, _ in made]
    query = (
        sa.select(evidence.c.message_id, messages.c.text)
        .join(messages, messages.c.id == evidence.c.message_id)
        .where(evidence.c.message_id.in_(ids))
    )
    texts = {row[0]: row[1] for row in (await connection.execute(query)).all()}
    current = [(row, vectors) for row, vectors in made if texts.get(row.message_id) == row.text]
    rows = [
        {"message_id": row.message_id, "model": model, "part": part, "owner": row.owner, "vector": pack(vector)}
        for row, vectors in current
        for part, vector in enumerate(vectors)
    ]
    of_these = message_vectors.c.message_id.in_([row.message_id for row, _ in current])
    await connection.execute(message_vectors.delete().where(of_these, message_vectors.c.model == model))
    if rows:
        await connection.execute(message_vectors.insert(), rows)
    done = evidence.c.message_id.in_([row.message_id for row, _ in current])
    await connection.execute(evidence.update().where(done).values(indexed_as=model))


_OF_OWNERS = (
    sa.select(message_vectors.c.message_id, message_vectors.c.vector)
    .where(
        message_vectors.c.owner.in_(sa.bindparam("of", expanding=True)),
        message_vectors.c.model == sa.bindparam("made_by"),
        message_vectors.c.message_id > sa.bindparam("after"),
    )
    .order_by(message_vectors.c.message_id)
)


async def of_owners(
    connection: AsyncConnection, owners: Sequence[str], model: str, after: int, dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int8]]:
    """The owners' vectors after a message: whose they are, their scales, and the numbers."""
    rows = (await connection.execute(_OF_OWNERS, {"of": owners, "made_by": model, "after": after})).all()
    raw = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.int8).reshape(len(rows), dimension + 4)
    scales = np.ascontiguousarray(raw[:, :4]).view(np.float32).reshape(len(rows))
    return np.array([row[0] for row in rows], dtype=np.int64), scales, np.ascontiguousarray(raw[:, 4:])


def _behind(model: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Without vectors, or with another model's: each of the three is found by the index."""
    as_what = evidence.c.indexed_as
    return as_what.is_(None), as_what < model, as_what > model
