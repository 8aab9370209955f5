"""The message log: appended to, read by one query, redacted by forget. Everything else is derived from it."""

from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms
from memory.secrets import redact_secrets
from memory.storage.making import without_forgotten
from memory.storage.tables import messages
from memory.types import Message, Origin, Utterance


def durable(session_id: int) -> sa.Select[Any]:
    """What a model, a summary or a title may read of a session: never working output. The only such query."""
    return sa.select(messages).where(messages.c.session_id == session_id, ~messages.c.is_ephemeral)


_APPEND = (
    sqlite.insert(messages)
    .on_conflict_do_nothing(index_elements=["inbox_id", "role"], index_where=sa.text("NOT is_ephemeral"))
    .returning(messages.c.id)
)


async def append(connection: AsyncConnection, utterance: Utterance, now: int) -> Message:
    """Store one utterance. The same side of the same inbox row is stored once."""
    said = without_forgotten(connection, utterance.inbox_id, utterance.text)
    blocks = without_forgotten(connection, utterance.inbox_id, utterance.blocks)
    text = redact_secrets(said)[0]  # keys and card numbers are kept nowhere (pitfall P24)
    values = asdict(utterance) | {"text": text, "blocks": blocks, "created_at": now}
    stored = await connection.execute(_APPEND, values)
    row_id = stored.scalar_one_or_none()
    if row_id is None:
        assert utterance.inbox_id is not None
        known = await find(connection, utterance.inbox_id, utterance.role)
        assert known is not None
        return known
    return Message(
        id=row_id,
        session_id=utterance.session_id,
        role=utterance.role,
        speaker=utterance.speaker,
        text=text,
        origin=utterance.origin,
        blocks=blocks,
        created_at=from_ms(now),
    )


async def find(connection: AsyncConnection, inbox_id: int, role: str) -> Message | None:
    """The durable message of one side that an inbox row led to, if it was recorded."""
    query = sa.select(messages).where(
        messages.c.inbox_id == inbox_id, messages.c.role == role, ~messages.c.is_ephemeral
    )
    row = (await connection.execute(query)).mappings().first()
    return _message(row) if row else None


async def by_id(connection: AsyncConnection, message_id: int) -> Message | None:
    row = (await connection.execute(sa.select(messages).where(messages.c.id == message_id))).mappings().first()
    return _message(row) if row else None


async def amend(connection: AsyncConnection, message_id: int, text: str) -> None:
    """The person edited what they said: the log holds what they say now."""
    await connection.execute(messages.update().where(messages.c.id == message_id).values(text=redact_secrets(text)[0]))


async def withhold(connection: AsyncConnection, message_id: int) -> None:
    """Keep a message from the model from now on; the person still has it."""
    await connection.execute(messages.update().where(messages.c.id == message_id).values(is_ephemeral=True))


async def newest(
    connection: AsyncConnection, session_id: int, limit: int, *, before: int | None = None
) -> list[Message]:
    """The last `limit` durable messages, oldest first; `before` leaves out that id and what follows."""
    query = durable(session_id).order_by(messages.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(messages.c.id < before)
    rows = (await connection.execute(query)).mappings().all()
    return [_message(row) for row in reversed(rows)]


async def said_by(connection: AsyncConnection, user_id: int, limit: int) -> list[str]:
    """The last things a person typed, oldest first."""
    query = (
        sa.select(messages.c.text)
        .where(messages.c.user_id == user_id, messages.c.origin == Origin.TYPED, messages.c.redacted_at.is_(None))
        .order_by(messages.c.id.desc())
        .limit(limit)
    )
    return list(reversed((await connection.execute(query)).scalars().all()))


async def count(connection: AsyncConnection, session_id: int, *, before: int | None = None) -> int:
    """How many durable messages a session has (before an id)."""
    query = sa.select(sa.func.count()).select_from(durable(session_id).subquery())
    if before is not None:
        query = sa.select(sa.func.count()).select_from(durable(session_id).where(messages.c.id < before).subquery())
    return int((await connection.execute(query)).scalar_one())


async def since(connection: AsyncConnection, session_id: int, watermark: int) -> list[Message]:
    """The durable messages after a watermark, oldest first."""
    query = durable(session_id).where(messages.c.id > watermark).order_by(messages.c.id)
    return [_message(row) for row in (await connection.execute(query)).mappings()]


def _message(row: sa.RowMapping) -> Message:
    return Message(
        id=row["id"],
        session_id=row["session_id"],
        role=row["role"],
        speaker=row["speaker"],
        text=row["text"],
        origin=Origin(row["origin"]),
        blocks=row["blocks"],
        created_at=from_ms(row["created_at"]),
    )
