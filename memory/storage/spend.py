"""What models cost, call by call: tokens as billed, and nano US dollars (1e-9) where a price is known."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.ports import Account, Billed, Purpose
from memory.storage.tables import spend, users


@dataclass(frozen=True, slots=True)
class Charge:
    """One line of the bill, with its price."""

    account: Account
    billed: Billed
    nano_usd: int | None
    """None: no price is known for this model."""
    is_estimate: bool = False
    """The call broke off before its bill came: the tokens are guessed."""


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of several charges. `name` is what they have in common: a purpose, a model, a person, or "" for all."""

    name: str
    nano_usd: int
    """Of the calls with a known price."""
    tokens: int
    """In and out, caches too."""
    unpriced_tokens: int
    """Those of them that no price is known for."""


# built once: every answer does it
_ADD = spend.insert().values(
    user_id=sa.select(users.c.id).where(users.c.id == sa.bindparam("of_user")).scalar_subquery()
)


async def add(connection: AsyncConnection, charges: Sequence[Charge], now: int) -> None:
    """Put them on the bill; on nobody's in particular where the person became another one, or went, meanwhile."""
    for charge in charges:
        usage = charge.billed.usage
        values = {
            "of_user": charge.account.user_id,
            "session_id": charge.account.session_id,
            "purpose": charge.account.purpose,
            "model": charge.billed.model,
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "cache_write_1h": usage.cache_write_1h,
            "is_estimate": charge.is_estimate,
            "nano_usd": charge.nano_usd,
            "created_at": now,
        }
        await connection.execute(_ADD, values)


async def spent(
    connection: AsyncConnection, purposes: Collection[Purpose], *, since: int, user_id: int | None = None
) -> int:
    """Nano US dollars for these purposes since an instant; of one person, or of everybody."""
    query = sa.select(sa.func.coalesce(sa.func.sum(spend.c.nano_usd), 0)).where(
        spend.c.created_at >= since, spend.c.purpose.in_(purposes)
    )
    if user_id is not None:
        query = query.where(spend.c.user_id == user_id)
    return int((await connection.execute(query)).scalar_one())


async def total(connection: AsyncConnection, *, since: int, user_id: int | None = None) -> Total:
    """All of it since an instant; of one person, or of everybody."""
    [found] = await _totals(connection, sa.literal(""), since, user_id) or [Total("", 0, 0, 0)]
    return found


async def by_purpose(connection: AsyncConnection, *, since: int, user_id: int | None = None) -> list[Total]:
    """The dearest first."""
    return await _totals(connection, spend.c.purpose, since, user_id)


async def by_model(connection: AsyncConnection, *, since: int, user_id: int | None = None) -> list[Total]:
    """The dearest first."""
    return await _totals(connection, spend.c.model, since, user_id)


async def by_person(connection: AsyncConnection, *, since: int) -> list[Total]:
    """The dearest first; "" is what was for nobody in particular, or for somebody who was erased."""
    return await _totals(connection, sa.func.coalesce(users.c.name, ""), since, None, apart=spend.c.user_id)


async def _totals(
    connection: AsyncConnection,
    name: sa.ColumnElement[Any],
    since: int,
    user_id: int | None,
    apart: sa.ColumnElement[Any] | None = None,
) -> list[Total]:
    """`apart` keeps apart what has the same name."""
    tokens = spend.c.input + spend.c.output + spend.c.cache_read + spend.c.cache_write
    unpriced = sa.case((spend.c.nano_usd.is_(None), tokens), else_=0)
    money = sa.func.coalesce(sa.func.sum(spend.c.nano_usd), 0)
    query = (
        sa.select(name, money, sa.func.sum(tokens), sa.func.sum(unpriced))
        .select_from(spend.outerjoin(users, users.c.id == spend.c.user_id))
        .where(spend.c.created_at >= since)
        .group_by(name if apart is None else apart)
        .order_by(money.desc(), sa.func.sum(tokens).desc())
    )
    if user_id is not None:
        query = query.where(spend.c.user_id == user_id)
    rows = (await connection.execute(query)).all()
    return [Total(str(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows if row[2] is not None]
