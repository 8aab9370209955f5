"""Reminders: the table is the truth, whoever wakes us only asks it what is due.

Rule: a ring changes its row only if it still waits for the same instant, in the transaction that posts it; whatever
runs twice rings once.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.scope import seen_by
from memory.storage.outbox import if_there
from memory.storage.tables import reminders
from memory.types import Audience, Reminder

_COLUMNS = [column for column in reminders.c if column.name not in ("session_id", "created_at")]


@dataclass(frozen=True, slots=True)
class Wish:
    """A reminder to be. Instants are milliseconds since the epoch."""

    user_id: int
    session_id: int | None
    owner: str
    place: dict[str, str]
    """transport, chat, thread."""
    text: str
    starts: str
    timezone: str
    rule: str | None
    due_at: int


@dataclass(frozen=True, slots=True)
class Due:
    """A reminder whose time has come."""

    reminder: Reminder
    session_id: int | None
    """Where it was asked for; None where that is gone."""


async def add(connection: AsyncConnection, wish: Wish, now: int) -> tuple[Reminder, bool]:
    """Store it; the same wish that waits already is returned with True, and not added."""
    same = sa.select(*_COLUMNS).where(
        reminders.c.user_id == wish.user_id,
        reminders.c.owner == wish.owner,
        reminders.c.text == wish.text,
        reminders.c.due_at == wish.due_at,
        reminders.c.rule.is_not_distinct_from(wish.rule),
        _waits(),
    )
    known = (await connection.execute(same)).mappings().first()
    if known is not None:
        return Reminder(**known), True
    values = {name: getattr(wish, name) for name in wish.__slots__ if name != "session_id"}
    result = await connection.execute(
        reminders.insert().values(**values, session_id=if_there(wish.session_id), created_at=now)
    )
    key = result.inserted_primary_key
    assert key is not None
    return Reminder(id=int(key[0]), **values), False


async def by_id(connection: AsyncConnection, audience: Audience, reminder_id: int) -> Reminder | None:
    """One that this audience may see, rung or done ones too."""
    query = sa.select(*_COLUMNS).where(reminders.c.id == reminder_id, seen_by(reminders.c.owner, audience))
    row = (await connection.execute(query)).mappings().first()
    return Reminder(**row) if row else None


async def page(connection: AsyncConnection, audience: Audience, *, offset: int, limit: int) -> list[Reminder]:
    """Those that wait, the next one first."""
    query = (
        sa.select(*_COLUMNS)
        .where(seen_by(reminders.c.owner, audience), _waits())
        .order_by(reminders.c.due_at, reminders.c.id)
        .offset(offset)
        .limit(limit)
    )
    return [Reminder(**row) for row in (await connection.execute(query)).mappings()]


async def texts(connection: AsyncConnection, owner: str) -> list[str]:
    """What the reminders of a scope say."""
    return list((await connection.execute(sa.select(reminders.c.text).where(reminders.c.owner == owner))).scalars())


async def count(connection: AsyncConnection, audience: Audience) -> int:
    """How many wait."""
    query = sa.select(sa.func.count()).select_from(reminders).where(seen_by(reminders.c.owner, audience), _waits())
    return int((await connection.execute(query)).scalar_one())


async def due(
    connection: AsyncConnection, now: int, transports: Collection[str], limit: int, after: tuple[int, int] = (-1, -1)
) -> list[Due]:
    """What should have rung on these transports by now, the oldest first; `after` is (due_at, id) of the last seen.

    What is to ring on another transport waits for a program that serves it.
    """
    query = (
        sa.select(*_COLUMNS, reminders.c.session_id)
        .where(
            _waits(),
            reminders.c.due_at <= now,
            sa.or_(reminders.c.due_at > after[0], sa.and_(reminders.c.due_at == after[0], reminders.c.id > after[1])),
            _rings_on(transports),
        )
        .order_by(reminders.c.due_at, reminders.c.id)
        .limit(limit)
    )
    found: list[Due] = []
    for row in (await connection.execute(query)).mappings():
        values = dict(row)
        session_id: int | None = values.pop("session_id")
        found.append(Due(Reminder(**values), session_id))
    return found


async def next_due(connection: AsyncConnection, now: int, transports: Collection[str]) -> int | None:
    """The next instant after now at which something rings on these transports."""
    query = (
        sa.select(reminders.c.due_at)
        .where(_waits(), reminders.c.due_at > now, _rings_on(transports))
        .order_by(reminders.c.due_at)
        .limit(1)
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def ring(connection: AsyncConnection, reminder: Reminder, again_at: int | None) -> bool:
    """Note a ring, and when the next one is; False for a reminder that was changed or has rung meanwhile."""
    values: dict[str, Any] = {"status": "rung"} if again_at is None else {"due_at": again_at}
    result = await connection.execute(
        reminders.update()
        .where(reminders.c.id == reminder.id, _waits(), reminders.c.due_at == reminder.due_at)
        .values(**values)
    )
    return result.rowcount > 0


async def wait_until(connection: AsyncConnection, audience: Audience, reminder_id: int, due_at: int) -> Reminder | None:
    """Let it ring at an instant, the next time; None for one that is gone."""
    return await _change(connection, audience, reminder_id, due_at=due_at, status="waiting")


async def done(connection: AsyncConnection, audience: Audience, reminder_id: int) -> Reminder | None:
    """It never rings again; None for one that is gone."""
    return await _change(connection, audience, reminder_id, status="done")


async def delete(connection: AsyncConnection, audience: Audience, reminder_id: int) -> bool:
    result = await connection.execute(
        reminders.delete().where(reminders.c.id == reminder_id, seen_by(reminders.c.owner, audience))
    )
    return result.rowcount > 0


async def follow_chat(connection: AsyncConnection, transport: str, old: str, new: str) -> None:
    """A chat has a new id on its transport: what waits to ring there rings under the new one."""
    place = reminders.c.place
    query = sa.select(reminders.c.id, place).where(
        place["transport"].as_string() == transport, place["chat"].as_string() == old
    )
    for reminder_id, was in (await connection.execute(query)).all():
        await connection.execute(
            reminders.update().where(reminders.c.id == reminder_id).values(place={**was, "chat": new})
        )


async def prune(connection: AsyncConnection, before: int) -> int:
    """Drop what has rung, or was done with, for the last time before an instant."""
    result = await connection.execute(
        reminders.delete().where(reminders.c.status != "waiting", reminders.c.due_at < before)
    )
    return result.rowcount


async def _change(connection: AsyncConnection, audience: Audience, reminder_id: int, **values: Any) -> Reminder | None:
    await connection.execute(
        reminders.update().where(reminders.c.id == reminder_id, seen_by(reminders.c.owner, audience)).values(**values)
    )
    return await by_id(connection, audience, reminder_id)


def _waits() -> sa.ColumnElement[bool]:
    """Written out, not bound: only so is the partial index taken."""
    return reminders.c.status == sa.literal_column("'waiting'")


def _rings_on(transports: Collection[str]) -> sa.ColumnElement[bool]:
    return reminders.c.place["transport"].as_string().in_(sorted(transports))
