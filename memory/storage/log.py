"""The message log: appended to, read by one query, redacted by forget. Everything else is derived from it."""

from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms
from memory.secrets import redact_secrets
from memory.storage import compactions
from memory.storage.making import without_forgotten
from memory.storage.tables import messages
from memory.types import Message, Origin, Utterance

_FIELDS = ("id", "session_id", "role", "speaker", "text", "origin", "blocks", "created_at")
_SHOWN = [messages.c[name] for name in (*_FIELDS, "is_ephemeral", "tool")]
"""What a `Message` is made of: a trace is long, and to be parsed for nothing."""


def durable(session_id: int | sa.BindParameter[int]) -> sa.Select[Any]:
    """What a model, a summary or a title may read of a session: never working output. The only such query."""
    return sa.select(*_SHOWN).where(messages.c.session_id == session_id, ~messages.c.is_ephemeral)


_APPEND = (
    sqlite.insert(messages)
    .on_conflict_do_nothing(index_elements=["inbox_id", "role"], index_where=sa.text("NOT is_ephemeral"))
    .returning(messages.c.id)
)

_SAID = tuple(field.name for field in fields(Utterance))


async def append(
    connection: AsyncConnection, utterance: Utterance, now: int, *, made_for: int | None = None
) -> Message:
    """Store one utterance. The same side of the same inbox row is stored once.

    `made_for` is the inbox row whose work made it, where the utterance names none.
    """
    made_for = utterance.inbox_id if utterance.inbox_id is not None else made_for
    said = without_forgotten(connection, made_for, utterance.text)
    blocks = without_forgotten(connection, made_for, utterance.blocks)
    text = redact_secrets(said)[0]  # keys and card numbers are kept nowhere (pitfall P24)
    values = {name: getattr(utterance, name) for name in _SAID} | {"text": text, "blocks": blocks, "created_at": now}
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
    await compactions.drop_around(connection, message_id)


async def withhold(connection: AsyncConnection, message_id: int) -> None:
    """Keep a message from the model from now on; the person still has it."""
    await connection.execute(messages.update().where(messages.c.id == message_id).values(is_ephemeral=True))
    await compactions.drop_around(connection, message_id)


async def settle_call(connection: AsyncConnection, inbox_id: int, at: int, outcome: str) -> None:
    """Say how a call ended that waited for a tap: in the history its stub is the tool's result."""
    answer = await find(connection, inbox_id, "assistant")
    if answer is None or answer.blocks is None or at >= len(answer.blocks):
        return
    blocks = [block | {"outcome": outcome} if index == at else block for index, block in enumerate(answer.blocks)]
    await connection.execute(messages.update().where(messages.c.id == answer.id).values(blocks=blocks))


async def everything(connection: AsyncConnection, session_id: int) -> list[Message]:
    """All that a person sees of a session, working output too, oldest first. Never for a model."""
    query = sa.select(messages).where(_has_words(session_id)).order_by(messages.c.id)
    return [_message(row) for row in (await connection.execute(query)).mappings()]


async def last_made(connection: AsyncConnection, session_id: int, tool: str) -> Message | None:
    """The newest durable message that is a tool's work itself, not what was said about it."""
    made = messages.c.tool == tool, messages.c.blocks.is_not(None)
    query = durable(session_id).where(*made).order_by(messages.c.id.desc()).limit(1)
    row = (await connection.execute(query)).mappings().first()
    return _message(row) if row else None


async def page(connection: AsyncConnection, session_id: int, *, offset: int, limit: int) -> list[Message]:
    """A page of `everything`, newest first."""
    query = sa.select(messages).where(_has_words(session_id)).order_by(messages.c.id.desc()).offset(offset).limit(limit)
    return [_message(row) for row in (await connection.execute(query)).mappings()]


# built once: every message asks them
_NEVER = 2**62
"""An id that no message reaches."""
_EARLIER = durable(sa.bindparam("of", type_=sa.Integer)).where(messages.c.id < sa.bindparam("before"))
_NEWEST = _EARLIER.order_by(messages.c.id.desc()).limit(sa.bindparam("most", type_=sa.Integer))
_COUNT = _EARLIER.with_only_columns(sa.func.count(), maintain_column_froms=True)
_NEWEST_AND_COUNT = _NEWEST.add_columns(_COUNT.scalar_subquery().label("of_all"))


async def newest(connection: AsyncConnection, session_id: int, limit: int) -> list[Message]:
    """The last `limit` durable messages, oldest first."""
    where = {"of": session_id, "most": limit, "before": _NEVER}
    rows = (await connection.execute(_NEWEST, where)).mappings().all()
    return [_message(row) for row in reversed(rows)]


async def newest_and_count(
    connection: AsyncConnection, session_id: int, limit: int, *, before: int
) -> tuple[list[Message], int]:
    """As `newest` of those before an id, and how many they are in all."""
    where = {"of": session_id, "most": limit, "before": before}
    rows = (await connection.execute(_NEWEST_AND_COUNT, where)).mappings().all()
    return [_message(row) for row in reversed(rows)], rows[0]["of_all"] if rows else 0


_AFTER = _EARLIER.where(messages.c.id > sa.bindparam("after"))
_NEWEST_AFTER = _AFTER.order_by(messages.c.id.desc()).limit(sa.bindparam("most", type_=sa.Integer))
_LAST_TRACE = (
    sa.select(messages.c.memory_trace, messages.c.created_at)
    .where(messages.c.session_id == sa.bindparam("of"), messages.c.role == "assistant", ~messages.c.is_ephemeral)
    .where(messages.c.model.is_not(None))  # what a model said, not a program
    .order_by(messages.c.id.desc())
    .limit(1)
)


async def newest_after(
    connection: AsyncConnection, session_id: int, after: int, limit: int, *, before: int
) -> list[Message]:
    """The last `limit` durable messages between two ids, both left out, oldest first."""
    where = {"of": session_id, "most": limit, "before": before, "after": after}
    rows = (await connection.execute(_NEWEST_AFTER, where)).mappings().all()
    return [_message(row) for row in reversed(rows)]


async def last_trace(connection: AsyncConnection, session_id: int) -> tuple[dict[str, Any], int]:
    """The trace of a session's newest answer and when it was given, in ms; nothing and 0 where there is none."""
    row = (await connection.execute(_LAST_TRACE, {"of": session_id})).first()
    return (row[0] or {}, row[1]) if row else ({}, 0)


async def said_by(connection: AsyncConnection, user_id: int, limit: int) -> list[str]:
    """The last things a person typed, oldest first."""
    query = (
        sa.select(messages.c.text)
        .where(messages.c.user_id == user_id, messages.c.origin == Origin.TYPED, messages.c.redacted_at.is_(None))
        .order_by(messages.c.id.desc())
        .limit(limit)
    )
    return list(reversed((await connection.execute(query)).scalars().all()))


async def since(connection: AsyncConnection, session_id: int, watermark: int) -> list[Message]:
    """The durable messages after a watermark, oldest first."""
    query = durable(session_id).where(messages.c.id > watermark).order_by(messages.c.id)
    return [_message(row) for row in (await connection.execute(query)).mappings()]


def _has_words(session_id: int) -> sa.ColumnElement[bool]:
    """A card of the history is working output without words of its own."""
    return sa.and_(messages.c.session_id == session_id, messages.c.text != "")


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
        is_working=row["is_ephemeral"] and row["tool"] is not None,
    )
