"""The growing answer as people see it: pictures at the transport's pace, dropped rather than late.

Rule: a preview never delays the model and never fails an answer; the final message is the delivery's.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

import structlog

from bot.transports.base import Fault, Pace, Part, Preview, SendError, Transport
from bot.transports.limiter import Limiter
from handlers.types import Incoming
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import outbox
from memory.storage.database import Database
from memory.storage.outbox import Draft

log = structlog.get_logger(__name__)

FIRST_SECONDS = 1.0
"""How long a message that will be edited waits for its first words, and a short answer is sent once."""
TYPING_SECONDS = 4.5  # clients show it for five


class Previewer:
    """Shows one answer while it grows."""

    def __init__(
        self, database: Database, clock: Clock, transport: Transport, limiter: Limiter, incoming: Incoming
    ) -> None:
        self._database = database
        self._clock = clock
        self._transport = transport
        self._limiter = limiter
        self._place = incoming.place
        self._inbox_id = incoming.inbox_ids[0]
        self._style = transport.preview_style(incoming.place)
        self._text = ""
        self._status = ""
        self._grown = asyncio.Event()
        self._row: int | None = None
        self._ref: str | None = None
        self._typing = incoming.is_said
        self._tasks: list[asyncio.Task[None]] = []
        self._drawing: asyncio.Future[None] | None = None

    def grow(self, delta: str) -> None:
        self._text += delta
        self._status = ""
        self._grown.set()

    def show_status(self, line: str) -> None:
        """One line under the text until it grows on."""
        self._status = line
        self._grown.set()

    def _part(self) -> Part | None:
        lines = (self._text.rstrip(), f"_{self._status}_") if self._status else (self._text,)
        return self._transport.render_preview("\n\n".join(line for line in lines if line))

    async def __aenter__(self) -> Self:
        if self._typing:
            self._tasks.append(asyncio.create_task(self._show_typing()))
        if self._style is not Preview.NONE:
            self._tasks.append(asyncio.create_task(self._show()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        if self._drawing is not None:
            await self._drawing

    async def _show_typing(self) -> None:
        while True:
            pace = self._transport.pace(self._place)
            if self._limiter.try_now(self._place.chat, pace):
                with suppress(SendError):
                    await self._transport.show_typing(self._place)
            await asyncio.sleep(TYPING_SECONDS)

    async def _show(self) -> None:
        pace = self._transport.pace(self._place)
        if self._style is Preview.EDIT:  # some clients never show an edit: the first words must be worth reading
            await self._grown.wait()
            await asyncio.sleep(min(FIRST_SECONDS, pace.preview_seconds))
        while True:
            await self._grown.wait()
            self._grown.clear()
            # a call that is cut off half-way may or may not have made a message: let it end
            self._drawing = asyncio.ensure_future(self._picture(pace))
            await asyncio.shield(self._drawing)
            await asyncio.sleep(pace.preview_seconds)

    async def _picture(self, pace: Pace) -> None:
        part = self._part()
        if part is None or await self._is_behind() or not self._limiter.try_now(self._place.chat, pace):
            return
        try:
            if self._style is Preview.DRAFT:
                await self._transport.draft(self._place, self._inbox_id, part)
            elif self._ref is not None:
                await self._transport.edit(self._place, self._ref, part)
            elif self._row is None:
                await self._first_message()
        except SendError as error:
            if error.fault is Fault.LATER:
                self._limiter.block(self._place.chat, error.retry_after)
            log.info("preview.dropped", fault=error.fault)

    async def _is_behind(self) -> bool:
        """A message that stays must not overtake the answers that wait for their turn in this place."""
        if self._style is not Preview.EDIT or self._row is not None:
            return False
        async with self._database.read() as connection:
            return await outbox.is_waiting(connection, self._place.transport, self._place.lane)

    async def _first_message(self) -> None:
        """A message that will become the answer: its row goes first, as with every send."""
        async with self._database.read() as connection:
            known = await outbox.streaming(connection, self._inbox_id)
        if known:  # an interrupted turn left it half written
            self._row, self._ref = known.id, known.refs[0] if known.refs else None
            return
        part = self._part()
        assert part is not None
        place = {"chat": self._place.chat, "thread": self._place.thread}
        draft = Draft(self._place.transport, place, self._place.lane, None, inbox_id=self._inbox_id, status="opening")
        now = to_ms(self._clock.now())
        async with self._database.write() as connection:
            self._row = await outbox.add(connection, draft, now)
        try:
            ref = await self._transport.send(self._place, part, outbox.send_key(self._row, now, 0))
        except SendError as error:
            if error.fault is not Fault.UNKNOWN:  # certainly not there: the answer is a message like any other
                async with self._database.write() as connection:
                    await outbox.remove(connection, self._row)
                self._row = None
            raise
        self._ref = ref
        async with self._database.write() as connection:
            await outbox.change(connection, self._row, status="streaming", refs=(ref,))
