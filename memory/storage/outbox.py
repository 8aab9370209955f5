"""What is to be sent, committed before it is sent; a row that was in flight at a crash is never resent blindly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import outbox, sessions

_WAITING = outbox.c.status.in_(("pending", "doubtful", "wiping"))


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
    created_at: int
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


# built once: every message does it
_ADD = (
    outbox.insert()
    .values(session_id=sa.select(sessions.c.id).where(sessions.c.id == sa.bindparam("of_session")).scalar_subquery())
    .returning(outbox.c.id)
)


async def add(connection: AsyncConnection, draft: Draft, now: int) -> int:
    values = {
        "transport": draft.transport,
        "place": draft.place,
        "lane": draft.lane,
        "event": draft.event,
        "user_id": draft.user_id,
        "of_session": draft.session_id,
        "message_id": draft.message_id,
        "inbox_id": draft.inbox_id,
        "status": draft.status,
        "refs": list(draft.refs),
        "created_at": now,
    }
    return int((await connection.execute(_ADD, values)).scalar_one())


def if_there(session_id: int | None) -> sa.ScalarSelect[int] | None:
    """A reference that is null for a session that was deleted: the reply to its deletion has none."""
    return None if session_id is None else sa.select(sessions.c.id).where(sessions.c.id == session_id).scalar_subquery()


def send_key(row_id: int, created_at: int, part: int) -> str:
    """The same for every try at a part of a row, and never again for another: ids of deleted rows come again."""
    return f"{row_id}-{created_at}-{part}"


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


async def is_waiting(connection: AsyncConnection, transport: str, lane: str) -> bool:
    """Whether something that was said before is still to be shown in a place."""
    still = outbox.c.status.in_(("pending", "doubtful", "sending"))
    query = sa.select(outbox.c.id).where(outbox.c.transport == transport, outbox.c.lane == lane, still).limit(1)
    return (await connection.execute(query)).first() is not None


async def in_flight(connection: AsyncConnection, transport: str) -> list[OutboxRow]:
    """Rows that were being sent when the process died: nobody knows whether they arrived."""
    query = sa.select(outbox).where(outbox.c.transport == transport, outbox.c.status == "sending")
    return [_row(row) for row in (await connection.execute(query)).mappings()]


async def change(connection: AsyncConnection, row_id: int, **values: Any) -> None:
    """Change a row; one that is to be taken out of the chat stays so, whatever becomes of its sending."""
    if "refs" in values:
        values["refs"] = list(values["refs"])
    for name in values.keys() & {"status", "event"}:
        new = values[name]
        new = new if isinstance(new, sa.Null) else sa.literal(new, outbox.c[name].type)
        values[name] = sa.case((outbox.c.status == "wiping", outbox.c[name]), else_=new)
    await connection.execute(outbox.update().where(outbox.c.id == row_id).values(**values))


# built once: every message does it
_BEGIN_SENDING = (
    outbox.update()
    .where(outbox.c.id == sa.bindparam("begun"), outbox.c.status != "wiping")
    .values(status="sending", refs=sa.bindparam("shown_as", type_=outbox.c.refs.type))
)


async def begin_sending(connection: AsyncConnection, row_id: int, refs: tuple[str, ...]) -> bool:
    """Say that the next part is on its way; False for a row that is to be taken out of the chat by now."""
    return (await connection.execute(_BEGIN_SENDING, {"begun": row_id, "shown_as": list(refs)})).rowcount > 0


async def wiping_in_lane(connection: AsyncConnection, transport: str, lane: str) -> list[OutboxRow]:
    """What is to be taken out of a place."""
    query = sa.select(outbox).where(outbox.c.transport == transport, outbox.c.lane == lane, outbox.c.status == "wiping")
    return [_row(row) for row in (await connection.execute(query)).mappings()]


async def wiped(connection: AsyncConnection, row_ids: Sequence[int], now: int) -> None:
    """They are out of the chat. The rows stay for a while: an id that came again would be taken for a repeat."""
    gone: dict[str, Any] = {"status": "sent", "refs": [], "event": sa.null(), "sent_at": now}
    await connection.execute(outbox.update().where(outbox.c.id.in_(row_ids)).values(gone))


async def remove(connection: AsyncConnection, row_id: int) -> None:
    await connection.execute(outbox.delete().where(outbox.c.id == row_id))


# built once: every message does it
_SENT = (
    outbox.update()
    .where(outbox.c.id == sa.bindparam("of"))
    .values(
        status=sa.case((outbox.c.status == "wiping", outbox.c.status), else_="sent"),
        event=sa.case((outbox.c.status == "wiping", outbox.c.event), else_=sa.null()),
        refs=sa.bindparam("shown_as", type_=outbox.c.refs.type),
        error=None,
        sent_at=sa.bindparam("at"),
    )
)


async def sent(connection: AsyncConnection, row_id: int, refs: tuple[str, ...], now: int) -> None:
    """All parts arrived: the message ids stay, the words do not; one that is to be taken out again keeps its stub."""
    await connection.execute(_SENT, {"of": row_id, "shown_as": list(refs), "at": now})


async def prune(connection: AsyncConnection, before: int) -> int:
    """Drop rows that were settled long ago; of one that shows a logged message only the words of what was not sent."""
    settled = _is_old(before)
    result = await connection.execute(outbox.delete().where(settled, outbox.c.message_id.is_(None)))
    await connection.execute(outbox.update().where(settled, outbox.c.status != "sent").values(event=sa.null()))
    return result.rowcount


async def count_before(connection: AsyncConnection, before: int) -> int:
    """How many rows `prune` would drop."""
    query = sa.select(sa.func.count()).select_from(outbox).where(_is_old(before), outbox.c.message_id.is_(None))
    return int((await connection.execute(query)).scalar_one())


def _is_old(before: int) -> sa.ColumnElement[bool]:
    return sa.and_(
        outbox.c.status.in_(("sent", "unknown", "failed")),
        sa.func.coalesce(outbox.c.sent_at, outbox.c.created_at) < before,
    )


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
        created_at=row["created_at"],
        error=row["error"],
    )
