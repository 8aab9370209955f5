"""One turn as it was logged: the answer, what was asked, and what else happened in it. Words only for who may see them.

Rule: figures are everybody's who may look at telemetry; a text or a title comes out only under its scope key.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.scope import seen_by
from memory.storage.tables import chats, messages, sessions, telemetry_events, users


@dataclass(frozen=True, slots=True)
class Turn:
    """An answer and the message that it answers."""

    message_id: int
    owner: str
    """The scope key of its words."""
    session_id: int
    question: str | None
    """None where these words are not for the one who asks."""
    answer: str | None
    model: str
    duration_ms: int | None
    trace: dict[str, Any]


async def event(connection: AsyncConnection, event_id: int) -> dict[str, Any] | None:
    """An event with the names of its person and its chat."""
    e = telemetry_events
    query = (
        sa.select(e, sessions.c.chat_id, users.c.name.label("person"), chats.c.transport, chats.c.title.label("chat"))
        .select_from(
            e.outerjoin(sessions, sessions.c.id == e.c.session_id)
            .outerjoin(users, users.c.id == e.c.user_id)
            .outerjoin(chats, chats.c.id == sessions.c.chat_id)
        )
        .where(e.c.id == event_id)
    )
    row = (await connection.execute(query)).mappings().first()
    return dict(row) if row else None


async def answered(connection: AsyncConnection, session_id: int, inbox_id: int, keys: Collection[str]) -> Turn | None:
    """The answer to an update, as far as it was logged; its words where `keys` (of `scope.shown_to`) show them."""
    mine = messages.c.session_id == session_id, messages.c.inbox_id == inbox_id, ~messages.c.is_ephemeral
    query = sa.select(messages, sessions.c.owner).join(sessions, sessions.c.id == messages.c.session_id).where(*mine)
    rows = {row["role"]: row for row in (await connection.execute(query)).mappings()}
    answer, question = rows.get("assistant"), rows.get("user")
    if answer is None:
        return None
    may_read = answer["owner"] in keys
    return Turn(
        message_id=answer["id"],
        owner=answer["owner"],
        session_id=session_id,
        question=question["text"] if may_read and question else None,
        answer=answer["text"] if may_read else None,
        model=answer["model"] or "",
        duration_ms=answer["duration_ms"],
        trace=answer["memory_trace"] or {},
    )


async def beside(connection: AsyncConnection, session_id: int, since: int, until: int) -> list[dict[str, Any]]:
    """What happened in a session from one instant to another, both included, oldest first."""
    e = telemetry_events.c
    query = sa.select(telemetry_events).where(e.created_at.between(since, until), e.session_id == session_id)
    return [dict(row) for row in (await connection.execute(query.order_by(e.id))).mappings()]


async def titles(
    connection: AsyncConnection, session_ids: Collection[int], keys: Collection[str]
) -> dict[int, tuple[str, int]]:
    """Title and last use (ms) of those sessions that `keys` show."""
    query = sa.select(sessions.c.id, sessions.c.title, sessions.c.last_used_at).where(
        sessions.c.id.in_(session_ids), seen_by(sessions.c.owner, keys)
    )
    return {row[0]: (row[1], row[2]) for row in await connection.execute(query)}


async def names_of_chats(connection: AsyncConnection) -> dict[int, str]:
    """Chats for a filter: transport, and title or who is in it."""
    query = (
        sa.select(chats.c.id, chats.c.transport, chats.c.title, sa.func.min(users.c.name))
        .select_from(chats.outerjoin(sessions, sessions.c.chat_id == chats.c.id).outerjoin(users, _opened))
        .group_by(chats.c.id)
        .order_by(chats.c.id)
    )
    rows = (await connection.execute(query)).all()
    return {row[0]: f"{row[2] or row[3] or row[0]} ({row[1]})" for row in rows}


async def names_of_people(connection: AsyncConnection) -> dict[int, str]:
    """People for a filter."""
    rows = (await connection.execute(sa.select(users.c.id, users.c.name).order_by(users.c.name))).all()
    return {row[0]: row[1] for row in rows}


async def last_of(connection: AsyncConnection, name: str) -> dict[str, Any] | None:
    """The newest event of a name."""
    e = telemetry_events.c
    query = sa.select(telemetry_events).where(e.name == name).order_by(e.created_at.desc(), e.id.desc()).limit(1)
    row = (await connection.execute(query)).mappings().first()
    return dict(row) if row else None


_opened = users.c.id == sessions.c.user_id
