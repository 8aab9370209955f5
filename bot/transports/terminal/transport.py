"""The terminal as a transport: what is typed goes through `accept`, what is sent is printed.

Rule: one place, one person, one surface; the surface knows how things look, this file what they mean.
"""
# ruff: noqa: ARG002 - there is one place only, and the port names it in every call

import asyncio
import getpass
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, TextIO, TypeVar
from uuid import uuid4

import structlog

from bot.transports.base import Accept, Fault, Hold, Key, Outgoing, Pace, Part, Presence, Preview, SendError
from bot.transports.terminal.pipe import Pipe
from bot.transports.terminal.screen import Screen
from bot.transports.terminal.surface import NotUnderstoodError, Surface
from bot.transports.terminal.waiting import WaitingLine
from handlers.locales import phrases
from handlers.types import Incoming, Place, Press, Sender
from memory.instants import SystemClock, from_ms, to_ms
from memory.storage.inbox import InboxRow

log = structlog.get_logger(__name__)

NAME = "terminal"
PLACE = Place(NAME, "local")
IDENTITY = f"{NAME}:local"
PACE = Pace(seconds=0.001, burst=100, preview_seconds=0.05)  # nobody limits us; faster pictures cannot be read
STORE_PAUSES = (0.1, 0.5, 2.0)
_LATEST_MS = 253_402_300_799_000  # the end of the year 9999

Wait = Callable[[], Awaitable[None]]
T = TypeVar("T")


class TerminalTransport:
    """Implements the port `Transport`. `left` is set when the person is gone."""

    name: str = NAME
    resends_safely: bool = True

    def __init__(
        self,
        *,
        json: bool,
        is_tty: bool,
        language: str,
        history: Sequence[str] = (),
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        """`history` is what the person said lately, oldest first: kept in memory only."""
        self.left = asyncio.Event()
        self._language = language
        self._say = phrases(language)
        self._person = _login_name()
        self._accept: Accept | None = None
        self._settled: Wait = _at_once
        self._delivered: Wait = _at_once
        self._passing_on = asyncio.Lock()
        self._cards: dict[str, tuple[tuple[Key, ...], ...]] = {}
        self._wiped: set[str] = set()
        self._last_key = ""
        self._unsettled = 0
        self._is_stopping = False
        self._typed: dict[str, tuple[str, bool]] = {}
        self._waiting = WaitingLine()
        self._tasks: set[asyncio.Task[None]] = set()
        stdin, stdout = stdin or sys.stdin, stdout or sys.stdout
        self._surface: Surface = (
            Screen(stdin, stdout, self._say, history, self._interrupt)
            if is_tty and not json and stdin and stdout and _is_steerable(stdout)
            else Pipe(stdin, stdout, self._say, as_json=json)
        )

    # --- receiving ------------------------------------------------------------------------------------

    async def start(self, accept: Accept) -> None:
        self._accept = accept

    async def run(self, *, settled: Wait, command_names: Sequence[str] = (), delivered: Wait | None = None) -> None:
        """Take in what is typed, until the person leaves, the input ends or `stop_receiving` is called.

        `settled` returns when all is answered and delivered; `delivered` when nothing waits to be sent, so that a
        message that waited in line is shown below the whole answer before it.
        """
        self._settled, self._delivered = settled, delivered or _at_once
        try:
            with self._surface.opened(command_names):
                await self._settle()  # what an earlier run left is answered first
                while await self._take_next():
                    pass
            async with self._passing_on:  # what was typed before leaving is stored
                pass
        finally:
            self.left.set()
            await _end(*self._tasks)

    async def stop_receiving(self) -> None:
        self.left.set()
        async with self._passing_on:  # a commit under way comes to its end
            pass

    async def close(self) -> None:
        await _end(*self._tasks)

    async def _take_next(self) -> bool:
        """False when there is nothing more to take."""
        try:
            typed = await self._unless_left(self._surface.read())
        except NotUnderstoodError as error:
            await self._tell(str(error))
            return True
        if typed is None:
            return False
        ref, key = self._button(typed.number)
        if key is not None:
            await self._work(
                self._pass_on({"press": {"token": key.token, "card": ref}}, f"[{typed.number}] {key.label}")
            )
        elif typed.text.strip():
            await self._work(self._pass_on({"text": typed.text}, typed.text))
        elif typed.number is not None:
            await self._tell(self._say("terminal-no-button", number=typed.number))
        return True

    def _button(self, number: int | None) -> tuple[str, Key | None]:
        """The button that a number presses: of the newest card that is still open."""
        if number is None or not self._cards:
            return "", None
        ref, rows = list(self._cards.items())[-1]
        keys = [key for row in rows for key in row]
        return ref, keys[number - 1] if 1 <= number <= len(keys) else None

    async def _pass_on(self, said: dict[str, Any], echo: str) -> None:
        """One thing after the other, each with its echo above its answer."""
        ref = str(uuid4())
        # what may have to wait behind an answer is shown when its turn comes; commands and presses may overtake it
        may_wait = self._unsettled > 0 and not echo.startswith("/") and "press" not in said
        async with self._passing_on:
            if not may_wait:
                await self._try_to_show(self._surface.echo(echo))
            self._typed[ref] = (echo, not may_wait)
            await self._store(ref, said)
            await asyncio.sleep(0)  # the intake says in a task of its own that something waits
            if self._typed.pop(ref, None) and may_wait:
                await self._try_to_show(self._surface.echo(echo))
        await self._settle()

    async def _stop_answer(self) -> None:
        async with self._passing_on:
            await self._store(str(uuid4()), {"text": "/stop"})

    async def _store(self, ref: str, said: dict[str, Any]) -> None:
        """Hand it over, again and again if need be: there is no network that would repeat it."""
        assert self._accept is not None, "start() comes before run()"
        payload = {"at": to_ms(SystemClock().now()), **said}
        for pause in chain(STORE_PAUSES, repeat(STORE_PAUSES[-1])):
            if self.left.is_set():
                return
            try:
                await self._accept(ref, payload)
            except Exception as error:  # noqa: BLE001 - whatever a store raises, what was typed is not dropped
                log.error("terminal.not_stored", error=type(error).__name__)  # noqa: TRY400 - its text may quote it
                if pause == STORE_PAUSES[0]:
                    await self._tell(self._say("terminal-not-stored"))
            else:
                return
            await asyncio.sleep(pause)

    async def _settle(self) -> None:
        """Wait for the answer; before a screen, in the background."""
        if self._surface.takes_turns:
            await self._unless_left(self._settled())
        else:
            self._unsettled += 1
            self._spawn(self._rest_when_settled())

    async def _rest_when_settled(self) -> None:
        try:
            await self._settled()
            self._is_stopping = False
            self._surface.rest()
        finally:
            self._unsettled -= 1

    def _interrupt(self) -> bool:
        """Stop the running answer; False when there is none, or it is being stopped already."""
        if not self._unsettled or self._is_stopping:
            return False
        self._is_stopping = True
        self._spawn(self._stop_answer())
        return True

    async def _work(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it; before a screen in the background, so that the prompt never hangs."""
        if self._surface.takes_turns:
            await work
        else:
            self._spawn(work)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            try:
                await work
            except Exception:
                log.exception("terminal.background_failed")  # a store that fails; the prompt must stay

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _unless_left(self, work: Awaitable[T]) -> T | None:
        """The outcome; None when the person leaves first."""
        task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self.left.wait())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() and not self.left.is_set() else None
        finally:
            await _end(task, leaving)

    async def _tell(self, sentence: str) -> None:
        await self._try_to_show(self._surface.show(str(uuid4()), Outgoing("notice", sentence)))

    def parse(self, row: InboxRow) -> Incoming | None:
        text, press = "", None
        match row.payload:
            case {"at": int(at), "press": {"token": str(token), "card": str(card)}} if 0 <= at <= _LATEST_MS:
                press = Press(token, card)
            case {"at": int(at), "text": str(text)} if 0 <= at <= _LATEST_MS:
                pass
            case _:
                return None
        return Incoming(
            inbox_ids=(row.id,),
            place=PLACE,
            sender=Sender(IDENTITY, self._person, self._language),
            sent_at=from_ms(at),
            text=text,
            ref=row.external_id,
            press=press,
        )

    def moved(self, row: InboxRow) -> tuple[str, str] | None:
        return None

    def members(self, row: InboxRow) -> Presence | None:
        return None

    def hold(self, incoming: Incoming) -> Hold | None:
        return None

    def last_contact(self) -> float | None:
        return None if self._accept is None else 0.0

    @property
    def problem(self) -> str | None:
        return None

    # --- sending --------------------------------------------------------------------------------------

    def pace(self, place: Place) -> Pace:
        return PACE

    def preview_style(self, place: Place) -> Preview:
        return Preview.NONE if self._surface.takes_turns else Preview.DRAFT

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return (Part(outgoing.text, outgoing, outgoing.keys, outgoing.file),)

    def render_preview(self, text: str) -> Part | None:
        return Part(text) if text.strip() else None

    async def send(self, place: Place, part: Part, key: str) -> str:
        if key != self._last_key:  # a place's sends are in order: a repeat follows its first attempt
            outgoing = _outgoing(part)
            if outgoing.kind == "text":
                await self._begin_text()
            await self._show(key, outgoing)
            self._last_key = key
        return key

    async def _begin_text(self) -> None:
        self._is_stopping = False  # it has ended, and the next one may be stopped
        waited = self._waiting.answered_by_next_text()
        if waited is not None:
            await self._end_waiting(waited)

    async def edit(self, place: Place, ref: str, part: Part) -> None:
        if ref in self._wiped:
            raise SendError(Fault.NO_MESSAGE, "wiped")
        self._cards.pop(ref, None)
        await self._show(ref, replace(_outgoing(part), replaces=ref))

    async def delete(self, place: Place, refs: tuple[str, ...]) -> tuple[str, ...]:
        self._wiped.update(refs)
        for ref in refs:
            self._cards.pop(ref, None)
        self._offer()
        with self._showing():
            await self._surface.wipe(refs)
        return ()

    async def draft(self, place: Place, draft_id: int, part: Part) -> None:
        if self._waiting.holds_back(draft_id):
            return
        with self._showing():
            await self._surface.grow(draft_id, part.plain)

    async def show_typing(self, place: Place) -> None:
        self._surface.show_typing()

    async def acknowledge(self, incoming: Incoming, toast: str) -> None:
        if toast:
            await self._tell(toast)

    async def mark_waiting(self, incoming: Incoming, *, waiting: bool) -> None:
        ref = incoming.ref
        if waiting and ref in self._typed:
            words, is_echoed = self._typed.pop(ref)
            self._waiting.join(ref, words, incoming.inbox_ids[0], is_echoed=is_echoed)
            self._surface.line_up(self._waiting.words())
        elif not waiting and ref in self._waiting:
            self._waiting.call(ref)
            await self._delivered()  # the answer before it ends first
            await self._end_waiting(ref)

    async def _end_waiting(self, ref: str) -> None:
        if ref in self._waiting:
            words = self._waiting.leave(ref)
            self._surface.rest()
            self._surface.line_up(self._waiting.words())
            if words is not None:
                await self._try_to_show(self._surface.echo(words))

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        return None

    async def _show(self, ref: str, outgoing: Outgoing) -> None:
        with self._showing():
            await self._surface.show(ref, outgoing)
        if outgoing.keys:
            self._cards[ref] = outgoing.keys
        self._offer()

    def _offer(self) -> None:
        self._surface.offer(list(self._cards.values())[-1] if self._cards else ())

    async def _try_to_show(self, work: Awaitable[None]) -> None:
        with suppress(SendError), self._showing():
            await work

    @contextmanager
    def _showing(self) -> Generator[None]:
        """Where nothing can be written, nobody is there any more."""
        try:
            yield
        except OSError as error:
            self.left.set()
            raise SendError(Fault.NO_CHAT, str(error)) from error


def _outgoing(part: Part) -> Outgoing:
    if isinstance(part.body, Outgoing):
        return part.body
    return Outgoing("card" if part.keys or part.file else "text", part.plain, part.keys, file=part.file)


def _is_steerable(stdout: TextIO) -> bool:
    return stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry
        return "local"


async def _at_once() -> None: ...


async def _end(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
