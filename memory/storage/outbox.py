"""What is to be sent, committed before it is sent; a row that was in flight at a crash is never resent blindly."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import outbox, sessions

_WAITING = outbox.c.status.in_(("pending", "doubtful"))


@dataclass(frozen=True, slots=True)
class OutboxRow:
    id: int
    transport: str
    place: dict[str, str]
    lane: str
    event: dict[str, Any] | None
    user_id: int | None
    session_id: int | None
    message_id: int | None
    inbox_id: int | None
    status: str
    attempts: int
    not_before: int
    refs: tuple[str, ...]
    error: str | None
    """Why it was not sent: a transport's fault, never text."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A row to be."""

    transport: str
    place: dict[str, str]
    lane: str
    event: dict[str, Any] | None
    user_id: int | None = None
    session_id: int | None = None
    message_id: int | None = None
    inbox_id: int | None = None
    status: str = "pending"
    refs: tuple[str, ...] = ()


async def add(connection: AsyncConnection, draft: Draft, now: int) -> int:
    result = await connection.execute(
        outbox.insert().values(
            transport=draft.transport,
            place=draft.place,
            lane=draft.lane,
            event=draft.event,
            user_id=draft.user_id,
            session_id=if_there(draft.session_id),
            message_id=draft.message_id,
            inbox_id=draft.inbox_id,
            status=draft.status,
            refs=list(draft.refs),
            created_at=now,
        )
    )
    key = result.inserted_primary_key
    assert key is not None
    return int(key[0])


def if_there(session_id: int | None) -> sa.ScalarSelect[int] | None:
    """A reference that is null for a session that was deleted: the reply to its deletion has none."""
    return None if session_id is None else sa.select(sessions.c.id).where(sessions.c.id == session_id).scalar_subquery()


async def open_rows(connection: AsyncConnection, transport: str) -> list[OutboxRow]:
    """Rows that wait to be sent, in order."""
    query = sa.select(outbox).where(outbox.c.transport == transport, _WAITING).order_by(outbox.c.id)
    return [_row(row) for row in (await connection.execute(query)).mappings()]


# built once: every message asks it
_NEXT = (
    sa.select(outbox)
    .where(outbox.c.transport == sa.bindparam("on_transport"), outbox.c.lane == sa.bindparam("in_lane"), _WAITING)
    .order_by(outbox.c.id)
    .limit(1)
)


async def next_in_lane(connection: AsyncConnection, transport: str, lane: str) -> OutboxRow | None:
    """The oldest row of a place that waits to be sent."""
    row = (await connection.execute(_NEXT, {"on_transport": transport, "in_lane": lane})).mappings().first()
    return _row(row) if row else None


async def by_id(connection: AsyncConnection, row_id: int) -> OutboxRow | None:
    row = (await connection.execute(sa.select(outbox).where(outbox.c.id == row_id))).mappings().first()
    return _row(row) if row else None


async def streaming(connection: AsyncConnection, inbox_id: int) -> OutboxRow | None:
    """The message in which an answer grows; without an id while nobody knows whether its first send arrived."""
    query = sa.select(outbox).where(outbox.c.inbox_id == inbox_id, outbox.c.status.in_(("opening", "streaming")))
    row = (await connection.execute(query)).mappings().first()
    return _row(row) if row else None


async def in_flight(connection: AsyncConnection, transport: str) -> list[OutboxRow]:
    """Rows that were being sent when the process died: nobody knows whether they arrived."""
    query = sa.select(outbox).where(outbox.c.transport == transport, outbox.c.status == "sending")
    return [_row(row) for row in (await connection.execute(query)).mappings()]


async def change(connection: AsyncConnection, row_id: int, **values: Any) -> None:
    if "refs" in values:
        values["refs"] = list(values["refs"])
    await connection.execute(outbox.update().where(outbox.c.id == row_id).values(**values))


async def remove(connection: AsyncConnection, row_id: int) -> None:
    await connection.execute(outbox.delete().where(outbox.c.id == row_id))


async def sent(connection: AsyncConnection, row_id: int, refs: tuple[str, ...], now: int) -> None:
    """All parts arrived: the message ids stay, the words do not."""
    await change(connection, row_id, status="sent", refs=refs, event=sa.null(), error=None, sent_at=now)


async def refs_of_message(connection: AsyncConnection, message_id: int) -> tuple[str, ...]:
    """Where a logged message is shown."""
    query = sa.select(outbox.c.refs).where(outbox.c.message_id == message_id)
    return tuple(ref for refs in (await connection.execute(query)).scalars() for ref in refs)


async def prune(connection: AsyncConnection, before: int) -> int:
    """Drop rows that were settled long ago; of one that shows a logged message only the words of what was not sent."""
    settled = sa.and_(
        outbox.c.status.in_(("sent", "unknown", "failed")),
        sa.func.coalesce(outbox.c.sent_at, outbox.c.created_at) < before,
    )
    result = await connection.execute(outbox.delete().where(settled, outbox.c.message_id.is_(None)))
    await connection.execute(outbox.update().where(settled, outbox.c.status != "sent").values(event=sa.null()))
    return result.rowcount


def _row(row: sa.RowMapping) -> OutboxRow:
    return OutboxRow(
        id=row["id"],
        transport=row["transport"],
        place=row["place"],
        lane=row["lane"],
        event=row["event"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        message_id=row["message_id"],
        inbox_id=row["inbox_id"],
        status=row["status"],
        attempts=row["attempts"],
        not_before=row["not_before"],
        refs=tuple(row["refs"]),
        error=row["error"],
    )
