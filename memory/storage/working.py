"""Working output and the session state that owns it: shown to people, closed as one, never read by a model's history.

Rule: a session has working rows only while its state is there; `wipe` ends both in one transaction and leaves the
outbox rows of what was shown behind, so that the messages are taken out of the chat after any crash.
"""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import chats, confirmations, messages, outbox, session_states, sessions
from memory.types import SessionState


@dataclass(frozen=True, slots=True)
class Shown:
    """One piece of working output."""

    text: str
    kind: str
    """What the tool calls it: version, diff, preview, listing."""
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Idle:
    """Work that nobody touched for long, and where it is shown."""

    state: SessionState
    transport: str
    chat: str
    thread: str


# built once: every message asks it
_LOAD = sa.select(session_states).where(session_states.c.session_id == sa.bindparam("of"))


async def load(connection: AsyncConnection, session_id: int) -> SessionState | None:
    row = (await connection.execute(_LOAD, {"of": session_id})).mappings().first()
    return SessionState(**row) if row else None


async def put(connection: AsyncConnection, state: SessionState) -> None:
    """Store where the work stands; nothing happens for a session that is gone."""
    values: dict[str, Any] = asdict(state)
    there = sa.select(sessions.c.id).where(sessions.c.id == state.session_id)
    if (await connection.execute(there)).first() is None:
        return
    row = sqlite.insert(session_states).values(values)
    await connection.execute(row.on_conflict_do_update(index_elements=["session_id"], set_=values))


async def shown(connection: AsyncConnection, session_id: int, *, limit: int = 100) -> list[Shown]:
    """The working output of a session, newest first."""
    query = (
        sa.select(messages.c.text, messages.c.blocks)
        .where(_working(session_id), messages.c.blocks.is_not(None))
        .order_by(messages.c.id.desc())
        .limit(limit)
    )
    return [shown_of(text, blocks) for text, blocks in (await connection.execute(query)).all()]


async def count(connection: AsyncConnection, session_id: int) -> int:
    query = sa.select(sa.func.count()).select_from(messages).where(_working(session_id))
    return int((await connection.execute(query)).scalar_one())


async def shows(connection: AsyncConnection, session_id: int, ref: str) -> bool:
    """Whether a message of the chat is working output of the session."""
    query = (
        sa.select(outbox.c.refs)
        .join(messages, messages.c.id == outbox.c.message_id)
        .where(_working(session_id), outbox.c.status == "sent")
    )
    return any(ref in refs for refs in (await connection.execute(query)).scalars())


async def wipe(connection: AsyncConnection, session_id: int, stub: str) -> int:
    """End the open work: its rows, its state, its buttons; return how many rows went.

    What was shown, or is on its way, stays in the outbox as `wiping` until it is out of the chat; `stub` then takes
    the place of what cannot be deleted any more.
    """
    await connection.execute(
        outbox.update()
        .where(_shows_work(session_id))
        .values(
            status="wiping",
            event={"kind": "wipe", "text": stub},
            message_id=None,
            session_id=None,
            inbox_id=None,
            attempts=0,
            not_before=0,
        )
    )
    await connection.execute(
        confirmations.update()
        .where(confirmations.c.session_id == session_id, confirmations.c.is_working)
        .values(
            data={},
            claimed_by=sa.func.coalesce(confirmations.c.claimed_by, 0),
            claimed_action=sa.func.coalesce(confirmations.c.claimed_action, "close_work"),
        )
    )
    gone = await connection.execute(messages.delete().where(_working(session_id)))
    await connection.execute(session_states.delete().where(session_states.c.session_id == session_id))
    return gone.rowcount


async def wipe_told(
    connection: AsyncConnection, owners: Collection[str], told: Collection[int], tells: Callable[[str], bool], stub: str
) -> None:
    """End the open work of these owners that says what was forgotten, in a row that held it or in its name.

    What is left of such a text is worth nothing, and what was shown of it would stay in the chat.
    """
    query = (sa.select(session_states).join(sessions, sessions.c.id == session_states.c.session_id)).where(
        sessions.c.owner.in_(owners)
    )
    for state in (await connection.execute(query)).mappings().all():
        rows = set((await connection.execute(sa.select(messages.c.id).where(_working(state["session_id"])))).scalars())
        said = (state["title"], state["step"], *(each for each in state["data"].values() if isinstance(each, str)))
        if not rows.isdisjoint(told) or any(tells(each) for each in said):
            await wipe(connection, state["session_id"], stub)


async def idle_since(connection: AsyncConnection, before: int) -> list[Idle]:
    """Work that was last touched before an instant."""
    query = (
        sa.select(session_states, chats.c.transport, chats.c.external_id, sessions.c.thread)
        .join(sessions, sessions.c.id == session_states.c.session_id)
        .join(chats, chats.c.id == sessions.c.chat_id)
        .where(session_states.c.touched_at < before)
    )
    names = [field.name for field in fields(SessionState)]
    return [
        Idle(SessionState(**{name: row[name] for name in names}), row["transport"], row["external_id"], row["thread"])
        for row in (await connection.execute(query)).mappings()
    ]


def _shows_work(session_id: int) -> sa.ColumnElement[bool]:
    """The outbox rows of working output, and those that took the place of one: in the chat they are one message."""
    working = sa.select(messages.c.id).where(_working(session_id))
    first = outbox.alias()
    shown_as = sa.select(first.c.lane + sa.cast(first.c.refs, sa.Text)).where(
        first.c.message_id.in_(working), sa.cast(first.c.refs, sa.Text) != "[]"
    )
    in_its_place = sa.and_(
        outbox.c.session_id == session_id, (outbox.c.lane + sa.cast(outbox.c.refs, sa.Text)).in_(shown_as)
    )
    return sa.or_(outbox.c.message_id.in_(working), in_its_place)


def _working(session_id: int) -> sa.ColumnElement[bool]:
    return sa.and_(messages.c.session_id == session_id, messages.c.is_ephemeral, messages.c.tool.is_not(None))


def shown_of(text: str, blocks: list[dict[str, Any]]) -> Shown:
    """What a working row's text and blocks say."""
    data = blocks[0]
    return Shown(text, data["kind"], {key: value for key, value in data.items() if key != "kind"})
