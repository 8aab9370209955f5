"""What goes when its time is up: once a day, in small steps, and nothing that is not set to go.

Rule: each step is a short transaction, so that no turn waits for it. Derived data follows as it does after a forget.
"""

import asyncio
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import reach, telemetry
from memory.forgetting import Doomed, Forgetting
from memory.instants import to_ms
from memory.kinds.observations import losing
from memory.kinds.summaries import store as summary_store
from memory.ports import Clock
from memory.storage import compactions, erasure, inbox, kept, outbox
from memory.storage import telemetry as events
from memory.storage.backups import backups_of, remove_old_backups
from memory.storage.database import Database
from memory.storage.index import lexical
from memory.storage.tables import hook_events, messages, observations, session_states, sessions, summaries

ROWS = 250
"""Of a step."""
PAUSE_SECONDS = 0.01
"""Between two steps: whoever waits for the database gets it."""

_RAN = "retention.ran"
"""kept_values: the tenant's day on which it ran last."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ages:
    """After how many days what goes; None keeps it for ever."""

    telemetry: int | None = 90
    messages: int | None = None
    working_output: int | None = None
    summaries: int | None = None
    inbox: int | None = 14
    outbox: int | None = 14
    hooks: int | None = 90
    """Ids of events, by which one that is sent again is known. A signature is good for minutes, so that no signed
    request outlives the id by which it would be known."""
    backups: int = 7


@dataclass(slots=True)
class Counts:
    """Rows that went, or would go."""

    telemetry: int = 0
    messages: int = 0
    observations: int = 0
    """Those of which no evidence was left when the messages went."""
    working_output: int = 0
    summaries: int = 0
    inbox: int = 0
    outbox: int = 0
    hooks: int = 0
    backups: int = 0

    @property
    def lines(self) -> list[tuple[str, int]]:
        return [(each.name.replace("_", " "), getattr(self, each.name)) for each in fields(self)]


def is_due(now: datetime, timezone: str, at: str, ran_on: str | None) -> bool:
    """Whether today's run is still to come: the day is the tenant's, `at` is HH:MM on its clock.

    A day on which the clock never shows `at`, or shows it twice, has one run like any other.
    """
    local = now.astimezone(ZoneInfo(timezone))
    return local.strftime("%H:%M") >= at and (ran_on is None or ran_on < local.date().isoformat())


class Retention:
    """Deletes what is too old."""

    def __init__(self, database: Database, clock: Clock, forgetting: Forgetting, ages: Ages) -> None:
        self._database = database
        self._clock = clock
        self._forgetting = forgetting
        self._ages = ages

    async def is_due(self, timezone: str, at: str) -> bool:
        """Whether today's run is still to come, also after a restart."""
        async with self._database.read() as connection:
            ran_on = await kept.load(connection, _RAN)
        return is_due(self._clock.now(), timezone, at, ran_on)

    async def run(self, timezone: str) -> Counts:
        """Delete all that is too old now; what went is an event. It was today's run, by the clock of `timezone`."""
        counts, began = Counts(), self._clock.now()
        counts.telemetry = await self._telemetry()
        counts.working_output = await self._working_output()
        await self._messages(counts)
        counts.summaries = await self._summaries()
        await self._traffic(counts)
        counts.backups = await self._backups()
        await self._drop_empty_sessions()
        if counts.working_output:
            await self._database.flush_deleted()
        async with self._database.write() as connection:
            await telemetry.record(connection, telemetry.RetentionRan(**asdict(counts)), self._now())
            await kept.put(connection, _RAN, began.astimezone(ZoneInfo(timezone)).date().isoformat(), self._now())
        log.info("retention.ran", **asdict(counts))
        return counts

    async def count(self) -> Counts:
        """What a run would delete now."""
        counts = Counts()
        async with self._database.search() as connection:
            for name, which in self._which().items():
                query = sa.select(sa.func.count()).select_from(which.table).where(which.is_old)
                setattr(counts, name, int((await connection.execute(query)).scalar_one()))
            if (old := self._which().get("messages")) is not None:
                which = losing.only_resting_on(old.is_old)
                query = sa.select(sa.func.count()).select_from(observations).where(which)
                counts.observations = int((await connection.execute(query)).scalar_one())
            if (before := self._before(self._ages.telemetry)) is not None:
                counts.telemetry = await events.count_before(connection, before)
            if (before := self._before(self._ages.inbox)) is not None:
                counts.inbox = await inbox.count_before(connection, before)
            if (before := self._before(self._ages.outbox)) is not None:
                counts.outbox = await outbox.count_before(connection, before)
        if path := erasure.file_of(self._database):
            today = self._clock.now().date()
            counts.backups = sum(copy.goes_on <= today for copy in backups_of(path, self._ages.backups))
        return counts

    # --- steps --------------------------------------------------------------------------------------

    async def _telemetry(self) -> int:
        before = self._before(self._ages.telemetry)
        gone = 0
        while before is not None:
            async with self._database.write() as connection:
                step = await events.prune(connection, before, ROWS, self._now())
            gone += step
            if step < ROWS:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        step = ROWS
        while before is not None and step == ROWS:
            async with self._database.write() as connection:
                step = await events.prune_quarters(connection, before, ROWS)
            await asyncio.sleep(PAUSE_SECONDS)
        return gone

    async def _working_output(self) -> int:
        which = self._which().get("working_output")
        gone = 0
        while which is not None:
            async with self._database.write() as connection:
                ids = await _ids(connection, sa.select(messages.c.id).where(which.is_old).limit(ROWS))
                await connection.execute(messages.delete().where(messages.c.id.in_(ids)))
            gone += len(ids)
            if len(ids) < ROWS:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        return gone

    async def _messages(self, counts: Counts) -> None:
        which = self._which().get("messages")
        if which is None:
            return
        async with self._database.search() as connection:
            query = (
                sa.select(sessions.c.id, sessions.c.owner)
                .join(messages, messages.c.session_id == sessions.c.id)
                .where(which.is_old)
                .distinct()
            )
            touched = [(row[0], row[1]) for row in (await connection.execute(query)).all()]
        for session_id, owner in touched:
            await self._messages_of(session_id, owner, which.is_old, counts)

    async def _messages_of(self, session_id: int, owner: str, is_old: sa.ColumnElement[bool], counts: Counts) -> None:
        """Delete a session's old messages; its views, and what was noticed there, are made anew from what remains."""
        ids = [0]
        query = sa.select(messages.c.id).where(messages.c.session_id == session_id, is_old).limit(ROWS)
        while ids:
            async with self._database.write() as connection:
                ids = await _ids(connection, query)
                await losing.keep_ones_own(connection, ids)
                doomed = Doomed()
                await self._forgetting.lose(connection, doomed, await losing.withdraw(connection, ids, self._now()))
                await connection.execute(messages.delete().where(messages.c.id.in_(ids)))
                await reach.unlink_sources(connection, {owner}, ids)
                await compactions.drop(connection, [session_id])
                if not ids:
                    await summary_store.index_words(connection, session_id)
                    of_session = summaries.c.session_id == session_id
                    await connection.execute(summaries.update().where(of_session).values(indexed_as=None))
                    await self._forgetting.outdate(connection, [owner])
            counts.messages += len(ids)
            counts.observations += doomed.receipt.observations
            await asyncio.sleep(PAUSE_SECONDS)

    async def _summaries(self) -> int:
        which = self._which().get("summaries")
        gone = 0
        while which is not None:
            async with self._database.write() as connection:
                query = sa.select(summaries.c.session_id, summaries.c.owner).where(which.is_old).limit(ROWS)
                owner_of = {row[0]: row[1] for row in (await connection.execute(query)).all()}
                # the watermark of learning stays: what went is not made again
                await connection.execute(summaries.delete().where(summaries.c.session_id.in_(list(owner_of))))
                await lexical.remove(connection, list(owner_of))
                if owner_of:
                    await self._forgetting.outdate(connection, sorted(set(owner_of.values())))
            gone += len(owner_of)
            if len(owner_of) < ROWS:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        return gone

    async def _traffic(self, counts: Counts) -> None:
        if (before := self._before(self._ages.inbox)) is not None:
            async with self._database.write() as connection:
                counts.inbox = await inbox.prune(connection, before)
        if (before := self._before(self._ages.outbox)) is not None:
            async with self._database.write() as connection:
                counts.outbox = await outbox.prune(connection, before)
        counts.hooks = await self._hooks()

    async def _hooks(self) -> int:
        which = self._which().get("hooks")
        key = sa.tuple_(hook_events.c.hook, hook_events.c.event_id)
        gone, step = 0, ROWS
        while which is not None and step == ROWS:
            oldest = sa.select(hook_events.c.hook, hook_events.c.event_id).where(which.is_old).limit(ROWS)
            async with self._database.write() as connection:
                step = (await connection.execute(hook_events.delete().where(key.in_(oldest)))).rowcount
            gone += step
            await asyncio.sleep(PAUSE_SECONDS)
        return gone

    async def _backups(self) -> int:
        path = erasure.file_of(self._database)
        if path is None:
            return 0
        return len(await asyncio.to_thread(remove_old_backups, path, self._clock.now(), self._ages.backups))

    async def _drop_empty_sessions(self) -> None:
        """Of a session from which everything went, nothing is left to show; the current one of a place stays."""
        if self._ages.messages is None:
            return
        has_messages = sa.select(messages.c.id).where(messages.c.session_id == sessions.c.id).exists()
        has_summary = sa.select(summaries.c.session_id).where(summaries.c.session_id == sessions.c.id).exists()
        is_old = sessions.c.last_used_at < self._before(self._ages.messages)
        empty = sa.and_(~sessions.c.is_current, is_old, ~has_messages, ~has_summary)
        async with self._database.write() as connection:
            await connection.execute(sessions.delete().where(empty))

    # --- what is old --------------------------------------------------------------------------------

    def _which(self) -> dict[str, "_Old"]:
        """Rows that are picked by their age alone; what is kept for ever is not there."""
        found: dict[str, _Old] = {}
        if (before := self._before(self._ages.messages)) is not None:
            found["messages"] = _Old(messages, sa.and_(~messages.c.is_ephemeral, messages.c.created_at < before))
        if (before := self._before(self._ages.working_output)) is not None:
            # the output of work that is open goes with the work
            is_open = sa.select(session_states.c.session_id)
            is_old = sa.and_(messages.c.created_at < before, messages.c.session_id.not_in(is_open))
            found["working_output"] = _Old(messages, sa.and_(messages.c.is_ephemeral, is_old))
        if (before := self._before(self._ages.summaries)) is not None:
            found["summaries"] = _Old(summaries, summaries.c.updated_at < before)
        if (before := self._before(self._ages.hooks)) is not None:
            found["hooks"] = _Old(hook_events, hook_events.c.received_at < before)
        return found

    def _before(self, days: int | None) -> int | None:
        return None if days is None else to_ms(self._clock.now() - timedelta(days=days))

    def _now(self) -> int:
        return to_ms(self._clock.now())


@dataclass(frozen=True, slots=True)
class _Old:
    table: sa.Table
    is_old: sa.ColumnElement[bool]


async def _ids(connection: AsyncConnection, query: sa.Select[Any]) -> list[int]:
    return [int(each) for each in (await connection.execute(query)).scalars()]
