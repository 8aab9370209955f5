"""Questions about what happened, answered from quarters of an hour that are added up already.

Rule: always exact. What is folded into quarters is told by an id; younger events, and the cut quarters at both ends of
a period, are added from the events themselves.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage import kept
from memory.storage.database import Database
from memory.storage.tables import chats, sessions, telemetry_events, telemetry_quarters, users

QUARTER_MS = 15 * 60 * 1000
"""Every zone's offset of today is a multiple of it."""
FOLD_ROWS = 500
FOLD_FROM = 500
"""So many young events are worth a write; fewer are added up with every question."""

_FOLDED = "telemetry.folded"
"""kept_values: the last event that is in the quarters."""
_OF_PEOPLE = "chat.turn_completed"
_OF_RECALL = "memory.recall_quality"
_OF_BUDGETS = "budget.reached"
_LABELS = ("toolName", "failure", "fault", "job", "decision")
_FIGURES = {
    "duration_ms": "durationMs",
    "first_token_ms": "firstTokenMs",
    "tokens_in": "tokensIn",
    "tokens_out": "tokensOut",
    "tokens_cache_read": "tokensCacheRead",
    "tokens_cache_write": "tokensCacheWrite",
    "cost_nano_usd": "costNanoUsd",
    "recall_hits": "recallHits",
}
"""Column of the quarters -> key of the events that is added up in it."""

_e = telemetry_events.c
_q = telemetry_quarters.c


class Sums(NamedTuple):
    """Events of a kind, added up."""

    events: int = 0
    successes: int = 0
    first_tokens: int = 0
    duration_ms: int = 0
    first_token_ms: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write: int = 0
    cost_nano_usd: int = 0
    recall_hits: int = 0


_SUMS = Sums._fields


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events to show."""

    since: int
    until: int
    name: str | None = None
    user_id: int | None = None
    chat_id: int | None = None


async def sums(
    connection: AsyncConnection,
    names: Collection[str],
    since: int,
    until: int,
    by: Literal["name", "quarter", "label"],
) -> dict[Any, Sums]:
    """Add up the events of these names in [since, until), by one of their sides. Empty groups are not there."""
    folded = await _folded(connection)
    first, last = _ceil(since), _floor(until)
    # [since, head), then whole quarters, then [tail, until)
    head = min(first, until)
    tail = max(last, head)

    def loose(of: sa.FromClause, start: int, end: int) -> sa.Select[Any]:
        return _loose(of).where(of.c.name.in_(names), of.c.created_at >= start, of.c.created_at < end)

    # with a limit it stays a select of its own: found by id, which is all that makes these few rows few
    young = sa.select(telemetry_events).where(_e.id > folded).limit(2**62).subquery()
    single = sa.union_all(
        loose(telemetry_events, since, head).where(_e.id <= folded),
        loose(telemetry_events, tail, until).where(_e.id <= folded),
        loose(young, since, until),
    ).subquery()
    # each part is added up by itself: what goes through the union is short
    whole = _added(telemetry_quarters, by).where(_q.name.in_(names), _q.quarter >= first, _q.quarter < last)
    both = sa.union_all(whole, _added(single, by)).subquery()
    found = (await connection.execute(_added(both, by))).all()
    return {row[0]: Sums(*row[1:]) for row in found}


class Measured(NamedTuple):
    """Recall as a night measured it on a person's chats."""

    at: int
    questions: int
    recall: float
    """@10."""


async def measured(connection: AsyncConnection, since: int, until: int, user_id: int | None = None) -> list[Measured]:
    """The measurements in [since, until), of one person or of all, oldest first; those without a question are none."""
    query = (
        sa.select(_e.created_at, _e.data["questions"].as_integer(), _e.data["recallAt10"].as_float())
        .where(*_matches(Wanted(since, until, _OF_RECALL, user_id)))
        .order_by(_e.created_at, _e.id)
    )
    return [Measured(*row) for row in (await connection.execute(query)).all() if row[1]]


async def names_of_people(connection: AsyncConnection, ids: Collection[int]) -> dict[int, str]:
    query = sa.select(users.c.id, users.c.name).where(users.c.id.in_(ids))
    return {row[0]: row[1] for row in (await connection.execute(query)).all()}


async def events(connection: AsyncConnection, wanted: Wanted, offset: int, limit: int) -> list[dict[str, Any]]:
    """One page, newest first."""
    query = (
        sa.select(telemetry_events, sessions.c.chat_id)
        .select_from(telemetry_events.outerjoin(sessions, sessions.c.id == _e.session_id))
        .where(*_matches(wanted))
        .order_by(_e.created_at.desc(), _e.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return [dict(row) for row in (await connection.execute(query)).mappings()]


async def count(connection: AsyncConnection, wanted: Wanted) -> int:
    query = sa.select(sa.func.count()).select_from(telemetry_events).where(*_matches(wanted))
    return int((await connection.execute(query)).scalar_one())


async def since_id(connection: AsyncConnection, after: int, limit: int) -> list[dict[str, Any]]:
    """What was appended after an event, oldest first."""
    query = sa.select(telemetry_events).where(_e.id > after).order_by(_e.id).limit(limit)
    return [dict(row) for row in (await connection.execute(query)).mappings()]


async def last_id(connection: AsyncConnection) -> int:
    return int((await connection.execute(sa.select(sa.func.coalesce(sa.func.max(_e.id), 0)))).scalar_one())


async def last_at(connection: AsyncConnection, name: str) -> int | None:
    """When an event happened last."""
    return (await connection.execute(sa.select(sa.func.max(_e.created_at)).where(_e.name == name))).scalar_one()


async def names_of_chats(connection: AsyncConnection) -> dict[int, str]:
    """Chats for a filter: title, or transport where there is none."""
    query = sa.select(chats.c.id, chats.c.title, chats.c.transport).order_by(chats.c.id)
    return {row[0]: row[1] or row[2] for row in (await connection.execute(query)).all()}


# --- upkeep -----------------------------------------------------------------------------------------


async def behind(connection: AsyncConnection) -> int:
    """How many events are in no quarter yet, at most."""
    return await last_id(connection) - await _folded(connection)


async def fold(connection: AsyncConnection, database: Database, now: int) -> bool:
    """Add the next events to their quarters; False when there are none left. Short: a turn may be waiting."""
    after = await _folded(connection)
    upto = sa.select(_e.id).where(_e.id > after).order_by(_e.id).limit(FOLD_ROWS).subquery()
    last = (await connection.execute(sa.select(sa.func.max(upto.c.id)))).scalar_one()
    if last is None:
        return False
    source = _loose().where(_e.id > after, _e.id <= last).subquery()
    keys = (source.c.name, source.c.quarter, source.c.label)
    added = sa.select(*keys, *(sa.func.sum(source.c[each]) for each in _SUMS)).where(sa.true()).group_by(*keys)
    row = database.insert(telemetry_quarters).from_select(["name", "quarter", "label", *_SUMS], added)
    more = {each: _q[each] + row.excluded[each] for each in _SUMS}
    await connection.execute(row.on_conflict_do_update(index_elements=["name", "quarter", "label"], set_=more))
    await kept.put(connection, _FOLDED, last, now)
    return True


async def prune(connection: AsyncConnection, before: int, limit: int, now: int) -> int:
    """Delete events from before the quarter that holds an instant, at most so many; return how many went."""
    cut = _floor(before)
    oldest = sa.select(_e.id).where(_e.created_at < cut).order_by(_e.created_at).limit(limit)
    gone = (await connection.execute(telemetry_events.delete().where(_e.id.in_(oldest)))).rowcount
    if gone:
        await _unfold(connection, await last_id(connection), now)
    return gone


async def prune_quarters(connection: AsyncConnection, before: int, limit: int) -> int:
    """Delete the sums of the events that `prune` deleted, at most so many; return how many went."""
    keys = sa.tuple_(_q.name, _q.quarter, _q.label)
    old = sa.select(_q.name, _q.quarter, _q.label).where(_q.quarter < _floor(before)).limit(limit)
    return (await connection.execute(telemetry_quarters.delete().where(keys.in_(old)))).rowcount


async def count_before(connection: AsyncConnection, before: int) -> int:
    """How many events `prune` would delete."""
    query = sa.select(sa.func.count()).select_from(telemetry_events).where(_e.created_at < _floor(before))
    return int((await connection.execute(query)).scalar_one())


async def erase(connection: AsyncConnection, which: sa.ColumnElement[bool], now: int) -> int:
    """Delete somebody's events; the quarters are made anew from those that remain."""
    gone = (await connection.execute(telemetry_events.delete().where(which))).rowcount
    await connection.execute(telemetry_quarters.delete())
    await _unfold(connection, 0, now)
    return gone


async def give(connection: AsyncConnection, which: sa.ColumnElement[bool], old: int, new: int, now: int) -> None:
    """Write somebody's events on another person; the quarters are made anew, for they are added up by person."""
    budget = _e.name == _OF_BUDGETS, _e.data["whose"].as_string() == f"user:{old}"
    whose = sa.select(_e.id, _e.data).where(which, *budget)
    for event_id, data in (await connection.execute(whose)).all():
        change = telemetry_events.update().where(_e.id == event_id)
        await connection.execute(change.values(data={**data, "whose": f"user:{new}"}))
    await connection.execute(telemetry_events.update().where(which, _e.user_id == old).values(user_id=new))
    await connection.execute(telemetry_quarters.delete())
    await _unfold(connection, 0, now)


async def _folded(connection: AsyncConnection) -> int:
    return int(await kept.load(connection, _FOLDED) or 0)


async def _unfold(connection: AsyncConnection, last: int, now: int) -> None:
    """SQLite may give the id of a deleted last row again: nothing after `last` counts as folded."""
    if await _folded(connection) > last:
        await kept.put(connection, _FOLDED, last, now)


# --- pieces of SQL -----------------------------------------------------------------------------------


def _loose(of: sa.FromClause = telemetry_events) -> sa.Select[Any]:
    """Events one by one, in the form of quarters."""
    data = of.c.data
    who = sa.case((of.c.name == _OF_PEOPLE, sa.cast(of.c.user_id, sa.Text)))
    label = sa.func.coalesce(who, *(data[key].as_string() for key in _LABELS), "")
    has_first = sa.case((data["firstTokenMs"].as_string().is_not(None), 1), else_=0)
    return sa.select(
        of.c.name,
        (of.c.created_at - of.c.created_at % QUARTER_MS).label("quarter"),
        label.label("label"),
        sa.literal(1).label("events"),
        sa.case((data["success"].as_boolean(), 1), else_=0).label("successes"),
        has_first.label("first_tokens"),
        *(_number(key, data).label(name) for name, key in _FIGURES.items()),
    )


def _added(source: sa.FromClause, by: str) -> sa.Select[Any]:
    added = (sa.cast(sa.func.sum(source.c[each]), sa.BigInteger).label(each) for each in _SUMS)
    return sa.select(source.c[by], *added).group_by(source.c[by])


def _number(key: str, data: Any) -> sa.ColumnElement[int]:
    return sa.func.coalesce(data[key].as_integer(), 0)


def _matches(wanted: Wanted) -> Sequence[sa.ColumnElement[bool]]:
    found = [_e.created_at >= wanted.since, _e.created_at < wanted.until]
    if wanted.name is not None:
        found.append(_e.name == wanted.name)
    if wanted.user_id is not None:
        found.append(_e.user_id == wanted.user_id)
    if wanted.chat_id is not None:
        found.append(_e.session_id.in_(sa.select(sessions.c.id).where(sessions.c.chat_id == wanted.chat_id)))
    return found


def _floor(instant: int) -> int:
    return instant - instant % QUARTER_MS


def _ceil(instant: int) -> int:
    return -(-instant // QUARTER_MS) * QUARTER_MS
