"""What transports received, committed before it is acknowledged: nothing is lost, nothing is taken twice."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import inbox


@dataclass(frozen=True, slots=True)
class InboxRow:
    id: int
    transport: str
    external_id: str
    payload: dict[str, Any]
    attempts: int


async def add(
    connection: AsyncConnection, transport: str, external_id: str, payload: dict[str, Any], now: int
) -> int | None:
    """Store an update whose work begins at once; None when it was seen before."""
    values = {"transport": transport, "external_id": external_id, "payload": payload, "received_at": now}
    return (await connection.execute(_ADD, values | {"status": "running", "attempts": 1})).scalar_one_or_none()


_ADD = sqlite.insert(inbox).on_conflict_do_nothing(index_elements=["transport", "external_id"]).returning(inbox.c.id)


async def open_rows(connection: AsyncConnection, transport: str) -> list[InboxRow]:
    """What was received and not finished, in order."""
    query = sa.select(inbox).where(inbox.c.transport == transport, inbox.c.status != "done").order_by(inbox.c.id)
    return [
        InboxRow(row["id"], row["transport"], row["external_id"], row["payload"], row["attempts"])
        for row in (await connection.execute(query)).mappings()
    ]


async def begin(connection: AsyncConnection, ids: tuple[int, ...]) -> int:
    """Note that work on rows of an earlier life begins anew; return how often it has begun."""
    await connection.execute(
        inbox.update().where(inbox.c.id.in_(ids)).values(status="running", attempts=inbox.c.attempts + 1)
    )
    query = sa.select(sa.func.max(inbox.c.attempts)).where(inbox.c.id.in_(ids))
    return int((await connection.execute(query)).scalar_one() or 0)


_FINISH = (
    inbox.update()
    .where(inbox.c.id == sa.bindparam("finished"))
    .values(status="done", payload=sa.null(), done_at=sa.bindparam("at"))
)


async def finish(connection: AsyncConnection, ids: tuple[int, ...], now: int) -> None:
    """Done: the row stays to recognise the update again, its text does not."""
    for row_id in ids:  # hardly ever more than one
        await connection.execute(_FINISH, {"finished": row_id, "at": now})


async def prune(connection: AsyncConnection, done_before: int) -> int:
    """Drop finished rows: a transport may start its ids anew after a quiet week."""
    return (await connection.execute(inbox.delete().where(_is_old(done_before)))).rowcount


async def count_before(connection: AsyncConnection, done_before: int) -> int:
    """How many rows `prune` would drop."""
    query = sa.select(sa.func.count()).select_from(inbox).where(_is_old(done_before))
    return int((await connection.execute(query)).scalar_one())


def _is_old(done_before: int) -> sa.ColumnElement[bool]:
    return sa.and_(inbox.c.status == "done", inbox.c.done_at < done_before)
