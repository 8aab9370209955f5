"""Rows of facts: every query carries the owners it may see."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms
from memory.language.text import clean
from memory.scope import Audience, Scope, seen_by
from memory.storage.tables import chats, facts
from memory.types import Fact

_IN_FORCE = facts.c.valid_to.is_(None)
_READ = tuple(
    facts.c[name] for name in ("id", "owner", "scope", "text", "speaker", "slot", "source_message_ids", "created_at")
)


async def in_force(connection: AsyncConnection, audience: Audience) -> list[Fact]:
    """The facts that hold for this audience, oldest first."""
    return [_read(*row) for row in (await connection.execute(_all_of(audience))).all()]


@lru_cache(maxsize=1000)
def _all_of(audience: Audience) -> sa.Select[Any]:
    """Built once for each audience: every message asks it."""
    return sa.select(*_READ).where(seen_by(facts.c.owner, audience), _IN_FORCE).order_by(facts.c.id)


async def page(connection: AsyncConnection, audience: Audience, *, offset: int, limit: int) -> list[Fact]:
    query = sa.select(facts).where(seen_by(facts.c.owner, audience), _IN_FORCE).order_by(facts.c.id)
    rows = (await connection.execute(query.offset(offset).limit(limit))).mappings()
    return [_fact(row) for row in rows]


async def count(connection: AsyncConnection, audience: Audience) -> int:
    query = sa.select(sa.func.count()).select_from(facts).where(seen_by(facts.c.owner, audience), _IN_FORCE)
    return int((await connection.execute(query)).scalar_one())


async def by_id(connection: AsyncConnection, audience: Audience, fact_id: int) -> Fact | None:
    """A fact that holds for this audience."""
    query = sa.select(facts).where(seen_by(facts.c.owner, audience), _IN_FORCE, facts.c.id == fact_id)
    row = (await connection.execute(query)).mappings().first()
    return _fact(row) if row else None


async def by_hash(connection: AsyncConnection, audience: Audience, content_hash: str) -> Fact | None:
    query = sa.select(facts).where(facts.c.owner == audience.owner, _IN_FORCE, facts.c.content_hash == content_hash)
    row = (await connection.execute(query)).mappings().first()
    return _fact(row) if row else None


async def in_slot(connection: AsyncConnection, audience: Audience, slot: str) -> list[Fact]:
    """What this person said of a slot, as far as it holds."""
    query = (
        sa.select(facts)
        .where(facts.c.owner == audience.owner, _IN_FORCE, facts.c.slot == slot, facts.c.user_id == audience.user_id)
        .order_by(facts.c.id)
    )
    return [_fact(row) for row in (await connection.execute(query)).mappings()]


async def characters(connection: AsyncConnection, audience: Audience) -> int:
    """How much of the budget this owner's facts take."""
    query = sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(facts.c.text)), 0)).where(
        facts.c.owner == audience.owner, _IN_FORCE
    )
    return int((await connection.execute(query)).scalar_one())


def network_of(audience: Audience) -> sa.ScalarSelect[str]:
    """The transport of the chat that an audience is in; null for none, as on the dashboard."""
    return sa.select(chats.c.transport).where(chats.c.id == audience.chat_id).scalar_subquery()


async def insert(connection: AsyncConnection, values: dict[str, Any]) -> Fact:
    """Add a fact and return it as it was stored."""
    key = (await connection.execute(facts.insert().values(values))).inserted_primary_key
    assert key is not None
    row = (await connection.execute(sa.select(facts).where(facts.c.id == key[0]))).mappings().one()
    return _fact(row)


async def add_evidence(connection: AsyncConnection, fact: Fact, message_ids: Sequence[int]) -> Fact:
    """Note further messages that say the same."""
    both = sorted({*fact.source_message_ids, *message_ids})
    await connection.execute(facts.update().where(facts.c.id == fact.id).values(source_message_ids=both))
    row = (await connection.execute(sa.select(facts).where(facts.c.id == fact.id))).mappings().one()
    return _fact(row)


async def supersede(
    connection: AsyncConnection, audience: Audience, old_ids: Sequence[int], new_id: int, now: int
) -> None:
    """End facts that another one replaces; they stay as history."""
    await connection.execute(
        facts.update()
        .where(facts.c.owner == audience.owner, _IN_FORCE, facts.c.id.in_(old_ids), facts.c.id != new_id)
        .values(valid_to=now, superseded_by=new_id)
    )


async def point_to(connection: AsyncConnection, audience: Audience, old_id: int, new_id: int) -> None:
    """Note what replaced a fact that has ended."""
    await connection.execute(
        facts.update().where(facts.c.owner == audience.owner, facts.c.id == old_id).values(superseded_by=new_id)
    )


async def revive(connection: AsyncConnection, audience: Audience, superseded_by: int) -> None:
    """Let what a fact replaced hold again."""
    rival = facts.alias()
    same = sa.select(rival.c.id).where(
        rival.c.owner == facts.c.owner, rival.c.content_hash == facts.c.content_hash, rival.c.valid_to.is_(None)
    )
    await connection.execute(
        facts.update()
        .where(facts.c.owner == audience.owner, facts.c.superseded_by == superseded_by, ~same.exists())
        .values(valid_to=None, superseded_by=None)
    )


async def delete(connection: AsyncConnection, audience: Audience, fact_id: int) -> None:
    await connection.execute(facts.delete().where(facts.c.owner == audience.owner, facts.c.id == fact_id))


def _fact(row: sa.RowMapping) -> Fact:
    return _read(*(row[column] for column in _READ))


def _read(  # noqa: PLR0913, PLR0917 - a row
    row_id: int,
    owner: str,
    scope: str,
    text: str,
    speaker: str,
    slot: str | None,
    source_message_ids: list[int],
    created_at: int,
) -> Fact:
    text = clean(text)  # on load, too: a row may be older than the rules (pitfall P22)
    return Fact(row_id, owner, Scope(scope), text, speaker, slot, tuple(source_message_ids), from_ms(created_at))
