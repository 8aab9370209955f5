"""Buttons wait here: with owner, session and expiry, over restarts; each card is settled once."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.outbox import if_there
from memory.storage.tables import confirmations


@dataclass(frozen=True, slots=True)
class Pending:
    """One button of a card."""

    token: str
    action: str
    data: dict[str, Any]
    user_id: int
    session_id: int | None
    card: str
    claimed_by: int | None
    expires_at: int
    claimed_action: str | None = None
    """What was chosen on the card."""
    is_working: bool = False
    """Of working output: it ends with the work."""


async def add(connection: AsyncConnection, pending: Pending, now: int) -> None:
    await connection.execute(
        confirmations.insert().values(
            token=pending.token,
            action=pending.action,
            data=pending.data,
            user_id=pending.user_id,
            session_id=if_there(pending.session_id),
            card=pending.card,
            created_at=now,
            expires_at=pending.expires_at,
            is_working=pending.is_working,
        )
    )


async def find(connection: AsyncConnection, token: str) -> Pending | None:
    row = (await connection.execute(sa.select(confirmations).where(confirmations.c.token == token))).mappings().first()
    if row is None:
        return None
    return Pending(
        token=row["token"],
        action=row["action"],
        data=row["data"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        card=row["card"],
        claimed_by=row["claimed_by"],
        expires_at=row["expires_at"],
        claimed_action=row["claimed_action"],
        is_working=row["is_working"],
    )


async def claim(connection: AsyncConnection, pending: Pending, inbox_id: int) -> bool:
    """Settle a card by one of its buttons. Only the first press wins; the same press may resume after a crash."""
    result = await connection.execute(
        confirmations.update()
        .where(
            confirmations.c.card == pending.card,
            sa.or_(confirmations.c.claimed_by.is_(None), confirmations.c.claimed_by == inbox_id),
        )
        .values(claimed_by=inbox_id, claimed_action=pending.action)
    )
    return result.rowcount > 0


async def waits_with(connection: AsyncConnection, user_id: int, action: str, **carried: str) -> bool:
    """Whether a person has a button of an action in front of them that carries these values."""
    mine = confirmations.c.user_id == user_id, confirmations.c.action == action, confirmations.c.claimed_by.is_(None)
    waiting = (await connection.execute(sa.select(confirmations.c.data).where(*mine))).scalars()
    return any(carried.items() <= data.items() for data in waiting)


async def take_expired(connection: AsyncConnection, action: str, now: int) -> list[dict[str, Any]]:
    """Remove the buttons of an action that nobody pressed in time; return what they carried."""
    gone = confirmations.c.action == action, confirmations.c.claimed_by.is_(None), confirmations.c.expires_at < now
    carried = list((await connection.execute(sa.select(confirmations.c.data).where(*gone))).scalars())
    await connection.execute(confirmations.delete().where(*gone))
    return carried


async def expire(connection: AsyncConnection, now: int) -> int:
    result = await connection.execute(confirmations.delete().where(confirmations.c.expires_at < now))
    return result.rowcount
