"""The nightly round: what is over leaves the indexes, what lost its words is made anew, near-duplicates become one.

Rule: it can stop anywhere and goes on where it stopped; it asks the model at most as often as its budget says; and it
never ends a row that says something else.
"""

from dataclasses import dataclass, field

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import to_ms
from memory.kinds.observations import losing, store
from memory.kinds.observations.keeping import Budget, Neighbours
from memory.kinds.observations.losing import Lost
from memory.kinds.observations.observation import Observation
from memory.ports import Clock
from memory.storage import kept
from memory.storage.database import Database
from memory.storage.index import lexical
from memory.storage.tables import observation_evidence, observations

CURSOR = "memory.consolidated"
"""kept_values: the last observation that was compared with its neighbours."""
_AT_ONCE = 200
_MOST_ROWS = 2000
"""Rows of one night."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Consolidated:
    """What a round did, in rows."""

    expired: int = 0
    merged: int = 0
    lost: Lost = field(default_factory=Lost)
    calls: int = 0


class Consolidation:
    def __init__(self, database: Database, clock: Clock, neighbours: Neighbours) -> None:
        self._database = database
        self._clock = clock
        self._neighbours = neighbours

    async def run(self, calls: int) -> Consolidated:
        """One round with at most so many calls of a model. Vectors of `lost.vectors` are the caller's to drop."""
        done = Consolidated()
        await self._expire(done)
        await self._check_evidence(done)
        budget = Budget(calls)
        await self._merge(done, budget)
        done.calls = calls - max(budget.calls, 0)
        return done

    async def _expire(self, done: Consolidated) -> None:
        """What is over stays as history and is found no more."""
        now = self._now()
        over = sa.and_(observations.c.valid_to <= now, observations.c.indexed_as.is_not(None))
        async with self._database.write() as connection:
            rows = (await connection.execute(sa.select(observations.c.id, observations.c.owner).where(over))).all()
            for observation_id, owner in rows:
                done.lost.vectors.setdefault(owner, []).append(observation_id)
            ids = [row[0] for row in rows]
            await connection.execute(observations.update().where(observations.c.id.in_(ids)).values(indexed_as=None))
            await lexical.remove(connection, ids, table=lexical.OBSERVATIONS)
        done.expired = len(ids)

    async def _check_evidence(self, done: Consolidated) -> None:
        """Words that were edited away since are no evidence any more."""
        last = 0
        while True:
            async with self._database.write() as connection:
                query = sa.select(observation_evidence.c.observation_id).distinct()
                query = query.where(observation_evidence.c.observation_id > last)
                ids = list(
                    (
                        await connection.execute(query.order_by(observation_evidence.c.observation_id).limit(_AT_ONCE))
                    ).scalars()
                )
                if not ids:
                    return
                lost = await losing.settle(connection, ids, self._now())
            last = ids[-1]
            _add(done.lost, lost)

    async def _merge(self, done: Consolidated, budget: Budget) -> None:
        for observation in await self._since_last_time():
            same = await self._neighbours.same_as(
                observation.content,
                observation.owner,
                observation.user_id,
                self._now(),
                budget,
                but=(observation.id,),
            )
            async with self._database.write() as connection:
                if same:
                    done.merged += await self._make_one(connection, min(*same, observation.id), observation, same, done)
                if budget.calls >= 0 or same:
                    await kept.put(connection, CURSOR, observation.id, self._now())
            if budget.calls < 0:
                return  # the next round begins with the one that could not be asked about

    async def _since_last_time(self) -> list[Observation]:
        async with self._database.search() as connection:
            cursor = await kept.load(connection, CURSOR) or 0
            owners = list((await connection.execute(sa.select(observations.c.owner).distinct())).scalars())
            if not owners:
                return []
            query = sa.select(observations).order_by(observations.c.id).limit(_MOST_ROWS)
            which = sa.and_(observations.c.id > cursor, store.in_force(self._now()))
            return await store.load(connection, owners, which, query)

    async def _make_one(
        self,
        connection: AsyncConnection,
        staying: int,
        observation: Observation,
        same: tuple[int, ...],
        done: Consolidated,
    ) -> int:
        """The oldest stays, with everybody's evidence."""
        leaving = next(each for each in (observation.id, *same) if each != staying)
        which = sa.and_(observations.c.id.in_((staying, leaving)), store.in_force(self._now()))
        rows = {each.id: each for each in await store.load(connection, (observation.owner,), which)}
        if len(rows) != 2:  # noqa: PLR2004 - a pair
            return 0  # one of them was forgotten meanwhile
        await store.move_evidence(connection, leaving, staying, self._now())
        await store.delete(connection, [leaving])
        done.lost.vectors.setdefault(observation.owner, []).append(leaving)
        return 1

    def _now(self) -> int:
        return to_ms(self._clock.now())


def _add(lost: Lost, more: Lost) -> None:
    lost.deleted += more.deleted
    for owner, ids in more.vectors.items():
        lost.vectors.setdefault(owner, []).extend(ids)
