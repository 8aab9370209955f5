"""The composition root: makes every part and hands each what it needs. Nothing else knows them all."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from bot import pulse
from bot.config import Settings
from bot.errors import CommandError
from bot.jobs import membership
from bot.jobs.digest import Digests
from bot.jobs.idle_work import close_idle_work
from bot.jobs.measuring import RecallMeasuring
from bot.jobs.membership import Membership
from bot.jobs.ringing import Ringing
from bot.jobs.watch import Watch
from bot.metering import make_budget, meter
from bot.providers import Chosen, embedder_of
from bot.schedule import Schedule
from bot.transports.base import Fault, SendError, Transport
from bot.transports.delivery import Delivery
from bot.transports.intake import Intake
from bot.transports.limiter import Limiter
from handlers.access import Policy
from handlers.answering.past import Past
from handlers.answering.spending import Pace, Spending
from handlers.buttons import approvals, buttons
from handlers.buttons.answers import offer
from handlers.commands import awaited, commands
from handlers.commands.dashboard import Dashboard
from handlers.commands.link import at_the_door
from handlers.dispatcher import Dispatcher
from handlers.edits import edited, taken_back
from handlers.locales import phrases
from handlers.remembering.own_events import OwnEvents
from handlers.reminding.reminders import Reminders
from handlers.running import Running
from handlers.tools import tools
from handlers.turn import Turn, TurnSettings
from handlers.types import Command, Place
from handlers.work.works import Works
from handlers.work.writer import Writer
from memory.instants import SystemClock, to_ms
from memory.memory import Memory
from memory.ports import Clock, Embedder
from memory.retention import Ages
from memory.scope import group_key
from memory.storage import confirmations, link_codes, reminders, telemetry, tokens
from memory.storage.database import Database
from memory.storage.index.chroma import ChromaIndex
from memory.storage.migrate import SchemaError, migrate
from memory.types import MemorySettings

log = structlog.get_logger(__name__)

THREAD_TRIES = 3
THREAD_PAUSE_SECONDS = 1.0
THREAD_PATIENCE_SECONDS = 10.0  # a longer silence that a transport asks for is not waited out for a thread


def database_path(settings: Settings) -> Path:
    return settings.tenant.data_dir / "merk.db"


async def open_database(settings: Settings, clock: Clock) -> Database:
    """Bring the schema up to date and open it."""
    path = database_path(settings)
    database = Database.at(path)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        await migrate(database, path, clock, backups_days=settings.retention.backups_days)
    except SchemaError as error:
        await database.close()
        raise CommandError(str(error)) from error
    return database


def make_memory(settings: Settings, clock: Clock, database: Database, chosen: Chosen, embedder: Embedder) -> Memory:
    vectors = ChromaIndex(settings.tenant.data_dir / "chroma", name=embedder.name, dimension=embedder.dimension)
    section = settings.memory
    return Memory(
        database,
        clock,
        vectors=vectors,
        embedder=embedder,
        model=meter(settings, clock, database, chosen.model),
        former=partial(embedder_of, settings),
        settings=MemorySettings(
            window=section.window,
            window_max=section.window_max,
            recall_sessions=section.recall_sessions,
            facts_budget=section.facts_budget,
            fusion=section.fusion,
            refit=section.refit,
            backups_days=settings.retention.backups_days,
            timezone=settings.tenant.timezone,
        ),
    )


def ages(settings: Settings) -> Ages:
    """After how many days what goes."""
    section = settings.retention
    return Ages(
        telemetry=settings.telemetry.retention_days,
        messages=section.messages_days,
        working_output=section.working_output_days,
        summaries=section.summaries_days,
        inbox=section.inbox_days,
        outbox=section.outbox_days,
        hooks=section.hooks_days,
        backups=section.backups_days,
    )


class _Threads:
    """Opens threads on the transport of a place, at the pace of its chat. Whatever fails, there is just no thread."""

    def __init__(self, transports: dict[str, Transport], limiter: Limiter) -> None:
        self._transports = transports
        self._limiter = limiter

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        transport = self._transports[place.transport]
        for attempt in range(THREAD_TRIES):
            await self._limiter.wait(place.chat, transport.pace(place))
            try:
                return await transport.open_thread(place, title, root)
            except SendError as error:
                # after UNKNOWN an empty thread may stay behind: better than a second one
                log.warning("threads.not_opened", fault=error.fault, retry_after=error.retry_after)
                if error.fault is Fault.LATER:
                    self._limiter.block(place.chat, error.retry_after)
                if error.fault not in (Fault.LATER, Fault.UNSENT) or error.retry_after > THREAD_PATIENCE_SECONDS:
                    return None
            if attempt + 1 < THREAD_TRIES:
                await asyncio.sleep(THREAD_PAUSE_SECONDS)
        return None


class App:
    """A running Merk: transports, their intakes, one delivery, learning and the clock."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        memory: Memory,
        chosen: Chosen,
        transports: Sequence[Transport],
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self.memory = memory
        self._clock = clock or SystemClock()
        self._database = database
        self._transports = {transport.name: transport for transport in transports}
        self.delivery = Delivery(database, self._clock, self._transports, Limiter(), offer(database))
        self._watch = Watch(database, self._clock)
        self._retention = memory.retention(ages(settings))
        self._schedule = Schedule(settings.tenant.timezone, self._clock)
        self.ringing = Ringing(database, self._clock, self._schedule, self.delivery, self._transports)
        self.digests = Digests(database, self._clock, memory, self.delivery, self._transports)
        nightly = settings.tenant.timezone, settings.telemetry.cleanup
        self.measuring = RecallMeasuring(database, self._clock, memory, *nightly)
        self.membership = Membership(database, self._clock, transports)
        running = Running()
        section = settings.memory
        self._own = OwnEvents(memory.observations)
        works = Works(
            database,
            self._clock,
            settings.tenant.name,
            settings.tenant.timezone,
            section.ephemeral_ttl,
            events=self._own,
        )
        kept = Reminders(works, self.ringing.plan)
        model = meter(settings, self._clock, database, chosen.model)
        pace = Pace(self._clock, settings.budget.messages_per_minute)
        spending = Spending(database, make_budget(settings, self._clock, database), pace)
        advisor = model if chosen.has_advisor else None
        can_do = tools(memory, works, kept, advisor=advisor, most_advice=settings.model.advisor_calls)
        compact_from = settings.model.anthropic.compact_from
        self.past = Past(
            database,
            self._clock,
            memory,
            model,
            kept=section.window,
            most=section.window_max,
            compact_from=compact_from,
        )
        turn = Turn(
            database,
            self._clock,
            memory,
            model=model,
            tools=can_do,
            works=works,
            running=running,
            spending=spending,
            past=self.past,
            settings=TurnSettings(
                settings.tenant.name,
                settings.tenant.timezone,
                trivial_to_small=settings.model.trivial_to_small,
            ),
        )
        writer = Writer(works, model, running)
        threads = _Threads(self._transports, self.delivery.limiter)
        self.commands: list[Command] = commands(
            memory,
            works,
            kept,
            writer=writer,
            running=running,
            threads=threads,
            model=model,
            spending=spending,
            web=Dashboard(settings.web.address, settings.web.is_local) if settings.web.enabled else Dashboard(),
        )
        self._dispatcher = Dispatcher(
            database,
            self._clock,
            Policy(frozenset(settings.access.owners), settings.access.admit, frozenset(settings.access.allow)),
            default_language=settings.tenant.language,
            commands=self.commands,
            buttons=buttons(memory, works, kept, can_do, turn=turn, writer=writer, model=model, spending=spending),
            awaited=awaited(database, memory, works),
            message=turn,
            edited=edited(database),
            taken_back=taken_back(memory),
            at_the_door=at_the_door(memory.linking),
        )
        self._intakes = {name: self._intake(transport) for name, transport in self._transports.items()}
        self._stack = AsyncExitStack()

    def _intake(self, transport: Transport) -> Intake:
        return Intake(
            self._database,
            self._clock,
            transport,
            self.delivery,
            handle=self._dispatcher.handle,
            is_urgent=self._dispatcher.is_urgent,
            finished=self.memory.wake,
            joined=partial(self._note_joined, transport.name),
        )

    def _note_joined(self, transport: str, chat: int, row: int, count: int) -> None:
        said = phrases(self.settings.tenant.language)("event-joined", count=count)
        self._own.note(group_key(chat), f"joined:{transport}:{row}", said)

    async def start(self) -> None:
        """Finish what a crash left, then begin to receive."""
        stopping = asyncio.Event()
        self._background("open", self.memory.open())
        self._background("learn", self.memory.learn_forever(stopping))
        await self.delivery.recover()
        self._background("deliver", self.delivery.run())
        await self.membership.start()
        for name, intake in self._intakes.items():
            await intake.recover()
            await self._transports[name].start(intake.accept)
        await self._note_pulse()
        self._schedule.every(pulse.SECONDS, self._watch.job("pulse", self._note_pulse))
        self._schedule.every(60, self._watch.job("sweep", self.sweep))
        self._schedule.every(60, self._watch.job("ring", self.ringing.ring), at_once=True)
        self._schedule.every(membership.SECONDS, self._watch.job("membership", self.membership.refresh), at_once=True)
        self._schedule.every(60, self._watch.job("retention", self.retain))
        self._schedule.every(60, self._watch.job("recall_quality", self.measuring.run))
        self._schedule.every(60, self._watch.job("digests", self.digests.send))
        self._schedule.start()

    async def stop(self) -> None:
        """Stop receiving, give what is on its way a moment, leave the rest to the next start."""
        self._schedule.stop()
        for transport in self._transports.values():
            await transport.stop_receiving()
        for intake in self._intakes.values():
            await intake.close()
        await self._own.flush()
        await self.past.close()
        await self.delivery.drain(5)
        await self._stack.aclose()
        for transport in self._transports.values():
            await transport.close()

    @property
    def database(self) -> Database:
        return self._database

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def transports(self) -> Mapping[str, Transport]:
        return self._transports

    def transport(self, name: str) -> Transport:
        return self._transports[name]

    async def settled(self) -> None:
        """Return when everything received is answered and sent."""
        while not await self._is_settled():  # noqa: ASYNC110 - rows in a database set no event
            await asyncio.sleep(0.01)

    async def delivered(self) -> None:
        """Return when what is answered is sent."""
        while not await self.delivery.idle():  # noqa: ASYNC110 - rows in a database set no event
            await asyncio.sleep(0.01)

    async def _is_settled(self) -> bool:
        return all(intake.is_idle() for intake in self._intakes.values()) and await self.delivery.idle()

    def _background(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._watch.over(name, work), name=name)

        async def end() -> None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        self._stack.push_async_callback(end)

    async def _note_pulse(self) -> None:
        """For `merk doctor` beside us: health is the age of the last contact, not a living process."""
        await pulse.note_pulse(self._database, self._clock, self._transports.values())

    async def sweep(self) -> None:
        """What is to be looked at every minute."""
        await self._own.flush()
        self.memory.wake()
        if await close_idle_work(self._database, self._clock, self._is_busy):
            self.delivery.wake()
        await self._fold()

    async def _fold(self) -> None:
        """Add up what happened since, in short steps."""
        async with self._database.search() as connection:
            is_worth_it = await telemetry.behind(connection) >= telemetry.FOLD_FROM
        while is_worth_it:
            async with self._database.write() as connection:
                is_worth_it = await telemetry.fold(connection, self._database, to_ms(self._clock.now()))
            await asyncio.sleep(0.01)

    def _is_busy(self, place: Place) -> bool:
        intake = self._intakes.get(place.transport)
        return intake is None or intake.is_busy(place.lane)

    async def retain(self) -> None:
        """Once a day, when its hour has come: what is over goes."""
        section = self.settings.telemetry
        if await self._retention.is_due(self.settings.tenant.timezone, section.cleanup):
            await self.tidy()
            self.memory.wake()

    async def tidy(self) -> None:
        """What is to be done once a day."""
        now = self._clock.now()
        await approvals.expire(self._database, to_ms(now))
        rung_before = now - timedelta(days=self.settings.retention.outbox_days)
        async with self._database.write() as connection:
            await confirmations.expire(connection, to_ms(now))
            await tokens.expire(connection, to_ms(now))
            await link_codes.expire(connection, to_ms(now))
            await reminders.prune(connection, to_ms(rung_before))
        await self._retention.run(self.settings.tenant.timezone)
        await self.memory.consolidate()
