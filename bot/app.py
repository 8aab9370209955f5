"""The composition root: makes every part and hands each what it needs. Nothing else knows them all."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from bot import pulse
from bot.config import Settings
from bot.errors import CommandError
from bot.providers import Chosen
from bot.schedule import Schedule
from bot.transports.base import Fault, SendError, Transport
from bot.transports.delivery import Delivery
from bot.transports.intake import Intake
from bot.transports.limiter import Limiter
from handlers.access import Policy
from handlers.buttons import buttons
from handlers.buttons.answers import offer
from handlers.commands import awaited, commands
from handlers.dispatcher import Dispatcher
from handlers.edits import edited
from handlers.running import Running
from handlers.tools import tools
from handlers.turn import Turn, TurnSettings
from handlers.types import Command, Place
from memory.instants import SystemClock, to_ms
from memory.memory import Memory
from memory.ports import Clock, Embedder
from memory.storage import confirmations, inbox, outbox
from memory.storage.backups import remove_old_backups
from memory.storage.chroma import ChromaIndex
from memory.storage.database import Database
from memory.storage.migrate import SchemaError, migrate
from memory.types import MemorySettings

log = structlog.get_logger(__name__)

INBOX_DAYS = 14  # update ids are recognised for so long; a transport may start them anew after a quiet week
OUTBOX_DAYS = 14
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
        await migrate(database, path, clock)
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
        model=chosen.model,
        settings=MemorySettings(
            window=section.window,
            window_max=section.window_max,
            recall_sessions=section.recall_sessions,
            facts_budget=section.facts_budget,
        ),
    )


class _Threads:
    """Opens threads on the transport of a place, at the pace of its chat. Whatever fails, there is just no thread."""

    def __init__(self, transports: dict[str, Transport], limiter: Limiter) -> None:
        self._transports = transports
        self._limiter = limiter

    async def open_thread(self, place: Place, title: str) -> str | None:
        transport = self._transports[place.transport]
        for attempt in range(THREAD_TRIES):
            await self._limiter.wait(place.chat, transport.pace(place))
            try:
                return await transport.open_thread(place, title)
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
        running = Running()
        section = settings.memory
        turn = Turn(
            database,
            self._clock,
            memory,
            model=chosen.model,
            tools=tools(memory),
            running=running,
            settings=TurnSettings(settings.tenant.name, settings.tenant.timezone, section.window, section.window_max),
        )
        threads = _Threads(self._transports, self.delivery.limiter)
        self.commands: list[Command] = commands(database, self._clock, memory, running, threads)
        self._dispatcher = Dispatcher(
            database,
            self._clock,
            Policy(frozenset(settings.access.owners), settings.access.admit, frozenset(settings.access.allow)),
            default_language=settings.tenant.language,
            commands=self.commands,
            buttons=buttons(database, self._clock, memory, turn),
            awaited=awaited(database, memory),
            message=turn,
            edited=edited(database),
        )
        self._intakes = {name: self._intake(transport) for name, transport in self._transports.items()}
        self._schedule = Schedule(settings.tenant.timezone)
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
        )

    async def start(self) -> None:
        """Finish what a crash left, then begin to receive."""
        stopping = asyncio.Event()
        self._background("open", self.memory.open())
        self._background("learn", self.memory.learn_forever(stopping))
        await self.delivery.recover()
        self._background("deliver", self.delivery.run())
        for name, intake in self._intakes.items():
            await intake.recover()
            await self._transports[name].start(intake.accept)
        await self._note_pulse()
        self._schedule.every(pulse.SECONDS, self._note_pulse)
        self._schedule.every(60, self._sweep)
        self._schedule.nightly("03:30", self._tidy)
        self._schedule.start()

    async def stop(self) -> None:
        """Stop receiving, give what is on its way a moment, leave the rest to the next start."""
        self._schedule.stop()
        for transport in self._transports.values():
            await transport.stop_receiving()
        for intake in self._intakes.values():
            await intake.close()
        await self.delivery.drain(5)
        await self._stack.aclose()
        for transport in self._transports.values():
            await transport.close()

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
        async def run() -> None:
            try:
                await work
            except Exception:
                log.exception("app.background_failed", part=name)

        task = asyncio.create_task(run(), name=name)

        async def end() -> None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        self._stack.push_async_callback(end)

    async def _note_pulse(self) -> None:
        """For `merk doctor` beside us: health is the age of the last contact, not a living process."""
        await pulse.note_pulse(self._database, self._clock, self._transports.values())

    async def _sweep(self) -> None:
        self.memory.wake()

    async def _tidy(self) -> None:
        now = self._clock.now()
        async with self._database.write() as connection:
            await confirmations.expire(connection, to_ms(now))
            await outbox.prune(connection, to_ms(now - timedelta(days=OUTBOX_DAYS)))
            for name in self._transports:
                await inbox.prune(connection, name, to_ms(now - timedelta(days=INBOX_DAYS)))
        await asyncio.to_thread(remove_old_backups, database_path(self.settings), now)
