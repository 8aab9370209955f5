"""The one engine for every send: outbox rows in the order of their place, each message of a row once.

A row says `sending` before the call and keeps the message's id after it. An answer that was `sending` when the process
died is resent only where the transport recognises repeats; elsewhere the person is offered it by a card. What is no
answer is sent again: a second card or notice harms nobody.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.transports.base import Fault, Outgoing, Part, SendError, Transport
from bot.transports.limiter import Limiter
from bot.transports.posting import Context, post, unpack
from handlers.types import Card, Place
from memory import telemetry
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import outbox, sessions
from memory.storage.database import Database
from memory.storage.outbox import OutboxRow
from memory.telemetry import TransportFault

log = structlog.get_logger(__name__)

Offer = Callable[[OutboxRow], Awaitable[Card]]
"""What to say to a person whose answer did not arrive, or may not have; words are the handlers' business.

The row's `error` says why: `unknown` (it may have), `no_thread` and `thread_closed` (it waits) come with a button;
after any other reason the row has failed, and a button would have nothing to show.
"""

LOST_THREAD_TRIES = 3  # one such error is no proof that a thread is gone (pitfall P37)
LOOK_SECONDS = 5  # another process (`merk approve`) may have left a row
PATIENCE_SECONDS = (1, 2, 5, 10, 15, 30)
LONGEST_WAIT_SECONDS = 300  # kept with a row; what is further away was written before the clock was set back
LOOK_AGAIN_SECONDS = 60
MOST_STUMBLES = 3
BROKEN = "broken"
"""The `error` of a row that this program could not send for a fault of its own."""


class _Withdrawn(Exception):  # noqa: N818 - it is no error
    """The row is to be taken out of the chat by now: there is nothing left to send."""


class Delivery:
    """Sends what the outbox holds, place by place."""

    def __init__(
        self, database: Database, clock: Clock, transports: Mapping[str, Transport], limiter: Limiter, offer: Offer
    ) -> None:
        self._database = database
        self._clock = clock
        self._transports = transports
        self.limiter = limiter
        self._offer = offer
        self._work = asyncio.Event()
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._stumbles: Counter[int] = Counter()
        """Failures that no transport reports, row by row."""
        self._renewed: set[str] = set()
        """Lanes that got new rows while they may have been on their way out."""
        self._taken: set[str] = set()
        """Lanes whose next row is being written by somebody who begins it at once."""
        self._closing = False
        self._running = False

    def wake(self, place: Place | None = None) -> None:
        """There are new rows; begin at once with those of a place."""
        if place is None or not self._running:
            self._work.set()
        elif self._is_busy(place.lane):
            self._renewed.add(place.lane)
        else:
            self._start_lane(place.transport, place.lane)

    @asynccontextmanager
    async def begun_at_once(self, place: Place) -> AsyncGenerator[Callable[[AsyncConnection], Awaitable[None]]]:
        """What is given is to be called at the end of the transaction that writes a reply: where nothing waits in its
        place, its first row is on its way with that, and an answer is a commit sooner. It is sent, with whatever else
        waits there, when the transaction is through.
        """
        is_served = self._running and not self._closing and place.transport in self._transports
        is_free = is_served and not self._is_busy(place.lane)
        begun: OutboxRow | None = None

        async def begin(connection: AsyncConnection) -> None:
            nonlocal begun
            begun = await self._begin(connection, place) if is_free else None

        if is_free:
            self._taken.add(place.lane)
        try:
            yield begin
        except BaseException:
            begun = None  # it was not written
            raise
        finally:
            if is_free:
                self._taken.discard(place.lane)
            if begun is None:
                self.wake(place)
            else:
                self._start_lane(place.transport, place.lane, begun)

    async def _begin(self, connection: AsyncConnection, place: Place) -> OutboxRow | None:
        """The first row of a place, said to be on its way; None where it is to be looked at first, or has to wait."""
        row = await outbox.next_in_lane(connection, place.transport, place.lane)
        if row is None or row.status != "pending" or row.refs or self._wait(row) > 0:
            return None
        if row.event is None or row.event["replaces"]:
            return None
        if not self.limiter.try_now(place.chat, self._transports[place.transport].pace(place), reserve=0):
            return None
        await outbox.begin_sending(connection, row.id, ())
        return replace(row, status="sending")

    def _is_busy(self, lane: str) -> bool:
        return lane in self._lanes or lane in self._taken

    async def recover(self) -> None:
        """Settle what a crash left in flight. Once, before anything is sent."""
        for transport in self._transports.values():
            await self._doubt(transport, await self._in_flight(transport.name))

    async def run(self) -> None:
        """Send until cancelled."""
        self._running = True
        while True:
            self._work.clear()
            await self._start_lanes()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):  # wait_for of 3.11 may swallow a cancellation
                    await self._work.wait()

    async def drain(self, seconds: float) -> None:
        """Give what is on its way a little time before the end."""
        self._closing = True
        if self._lanes:
            await asyncio.wait(self._lanes.values(), timeout=seconds)
        for task in list(self._lanes.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def idle(self) -> bool:
        """True when nothing waits to be sent."""
        async with self._database.read() as connection:
            for name in self._transports:
                if await outbox.open_rows(connection, name):
                    return False
        return not self._lanes

    async def _start_lanes(self) -> None:
        if self._closing:
            return
        async with self._database.read() as connection:
            rows = [row for name in self._transports for row in await outbox.open_rows(connection, name)]
        for row in rows:
            self._start_lane(row.transport, row.lane)

    def _start_lane(self, transport: str, lane: str, begun: OutboxRow | None = None) -> None:
        # what is for a network that is away waits for a program that serves it
        if transport in self._transports and not self._is_busy(lane) and (begun or not self._closing):
            self._lanes[lane] = asyncio.create_task(self._work_lane(transport, lane, begun))

    async def _work_lane(self, transport: str, lane: str, begun: OutboxRow | None) -> None:
        waited_out = None
        try:
            if begun is not None:
                await asyncio.sleep(0)  # who waits behind it is told first that their turn has come
                await self._try(begun)
            while not self._closing and (row := await self._next(transport, lane)) is not None:
                wait = self._wait(row)
                if wait > 0 and waited_out != (row.id, row.not_before):
                    await asyncio.sleep(min(wait, LOOK_AGAIN_SECONDS))
                    # told by this sleep, not by a clock that may be set back; the row is read again: words may go
                    waited_out = (row.id, row.not_before) if wait <= LOOK_AGAIN_SECONDS else None
                else:
                    await self._try(row)
        except Exception:
            # the store itself: no row is to blame, and none can be changed; the other lanes go on
            log.exception("delivery.lane_failed", lane=lane)
            await asyncio.sleep(1)
            await self._doubt_lane(transport, lane)
            self._work.set()
        finally:
            del self._lanes[lane]
            if lane in self._renewed:
                self._renewed.discard(lane)
                self._start_lane(transport, lane)

    def _wait(self, row: OutboxRow) -> float:
        """Seconds until the row may be sent."""
        wait = (row.not_before - to_ms(self._clock.now())) / 1000
        return wait if wait <= LONGEST_WAIT_SECONDS else 0.0

    async def _try(self, row: OutboxRow) -> None:
        try:
            await self._deliver(row)
        except Exception:
            log.exception("delivery.stumbled", row=row.id, lane=row.lane)
            await self._stumble(row)
        else:
            self._stumbles.pop(row.id, None)

    async def _stumble(self, row: OutboxRow) -> None:
        """Try again with patience, but not for ever; what was being sent must not go out again unasked."""
        self._stumbles[row.id] += 1
        if self._stumbles[row.id] < MOST_STUMBLES:
            await self._doubt_lane(row.transport, row.lane)
            not_before = self._in(PATIENCE_SECONDS[self._stumbles[row.id] - 1])
            async with self._database.write() as connection:
                await outbox.change(connection, row.id, not_before=not_before)
            return
        del self._stumbles[row.id]
        log.error("delivery.given_up", row=row.id, lane=row.lane)
        await self._note(row, BROKEN)
        async with self._database.write() as connection:  # at once, for what tells the person may be what fails
            await outbox.change(connection, row.id, status="failed", error=BROKEN)
        await self._set_aside(row, "failed", BROKEN)

    async def _next(self, transport: str, lane: str) -> OutboxRow | None:
        async with self._database.read() as connection:
            return await outbox.next_in_lane(connection, transport, lane)

    async def _in_flight(self, transport: str) -> list[OutboxRow]:
        async with self._database.read() as connection:
            return await outbox.in_flight(connection, transport)

    async def _doubt_lane(self, transport: str, lane: str) -> None:
        in_flight = [row for row in await self._in_flight(transport) if row.lane == lane]
        await self._doubt(self._transports[transport], in_flight)

    async def _doubt(self, transport: Transport, rows: list[OutboxRow]) -> None:
        async with self._database.write() as connection:
            for row in rows:
                status = "pending" if _may_repeat(transport, row) else "doubtful"
                await outbox.change(connection, row.id, status=status)

    async def _deliver(self, row: OutboxRow) -> None:
        transport = self._transports[row.transport]
        if row.status == "doubtful" and not transport.resends_safely:
            await self._set_aside(row, "unknown", Fault.UNKNOWN)
            return
        if row.status == "wiping":
            await self._wipe(transport, row)
            return
        assert row.event is not None
        outgoing = unpack(row.event)
        try:
            refs = await self._carry_out(transport, row, outgoing)
        except SendError as error:
            await self._settle(row, error)
            return
        except _Withdrawn:
            return
        async with self._database.jot() as connection:
            await outbox.sent(connection, row.id, refs, to_ms(self._clock.now()))

    async def _carry_out(self, transport: Transport, row: OutboxRow, outgoing: Outgoing) -> tuple[str, ...]:
        place = _place(row)
        parts = transport.render(outgoing)
        refs = row.refs
        if row.status == "doubtful":  # what was shown of it may be there: the same send again says under which id
            ref = await transport.send(place, parts[0], outbox.send_key(row.id, row.created_at, 0))
            outgoing = replace(outgoing, replaces=ref)
        if outgoing.replaces and not refs:
            refs = await self._replace(transport, place, outgoing.replaces, parts[0])
        while len(refs) < len(parts):
            if refs or row.status != "sending":  # else the first part was begun with the row's own transaction
                await self._begin_part(transport, row, refs)
            refs = (*refs, await self._send_part(transport, row, parts, refs))
        return refs

    async def _wipe(self, transport: Transport, row: OutboxRow) -> None:
        """Take out of a place all that is to go there: deleted, or where that is refused, a stub in its place."""
        place = _place(row)
        async with self._database.read() as connection:
            rows = await outbox.wiping_in_lane(connection, row.transport, row.lane)
        refs = tuple(dict.fromkeys(ref for each in rows for ref in each.refs))
        try:
            if refs:
                await self.limiter.wait(place.chat, transport.pace(place))
                for ref in await transport.delete(place, refs):
                    assert row.event is not None
                    stub = transport.render(Outgoing("notice", row.event["text"]))
                    await self._replace(transport, place, ref, stub[0])
        except SendError as error:
            if error.fault in (Fault.LATER, Fault.UNSENT, Fault.UNKNOWN):
                await self._settle(row, error)
                return
            log.warning("delivery.not_wiped", fault=error.fault, count=len(refs))  # nobody can see it there any more
        async with self._database.write() as connection:
            await outbox.wiped(connection, [each.id for each in rows], to_ms(self._clock.now()))

    async def _replace(self, transport: Transport, place: Place, ref: str, part: Part) -> tuple[str, ...]:
        """Put a part in the place of a message; an empty result means that it must be sent anew."""
        await self.limiter.wait(place.chat, transport.pace(place))
        try:
            await transport.edit(place, ref, part)
        except SendError as error:
            match error.fault:
                case Fault.FORMAT if part.body is not None:
                    return await self._replace(transport, place, ref, replace(part, body=None))
                case Fault.FORMAT | Fault.REFUSED | Fault.NO_MESSAGE:
                    log.warning("delivery.not_edited", fault=error.fault)
                    return ()
                case Fault.UNKNOWN:
                    raise SendError(Fault.UNSENT, error.detail) from error  # the same edit twice changes nothing
                case _:
                    raise
        return (ref,)

    async def _begin_part(self, transport: Transport, row: OutboxRow, refs: tuple[str, ...]) -> None:
        """Wait for the pace, then say that the part behind these is on its way. Raises `_Withdrawn`."""
        place = _place(row)
        await self.limiter.wait(place.chat, transport.pace(place))
        async with self._database.jot() as connection:
            if not await outbox.begin_sending(connection, row.id, refs):
                raise _Withdrawn

    async def _send_part(
        self, transport: Transport, row: OutboxRow, parts: tuple[Part, ...], refs: tuple[str, ...]
    ) -> str:
        index = len(refs)
        part = parts[index]
        place = _place(row)
        key = outbox.send_key(row.id, row.created_at, index)
        try:
            ref = await transport.send(place, part, key)
        except SendError as error:
            if error.fault is not Fault.FORMAT:
                raise
            log.warning("delivery.sent_plain", row=row.id)  # once, as the person's own words (pitfall P35)
            ref = await transport.send(place, replace(part, body=None), key)
        if index < len(parts) - 1:  # after the last one the row says `sent` at once
            async with self._database.write() as connection:
                await outbox.change(connection, row.id, status="pending", refs=(*refs, ref))
        return ref

    async def _settle(self, row: OutboxRow, error: SendError) -> None:
        log.warning("delivery.fault", row=row.id, fault=error.fault, retry_after=error.retry_after)
        await self._note(row, error.fault)
        place = _place(row)
        match error.fault:
            case Fault.LATER:
                self.limiter.block(place.chat, error.retry_after)
                await self._again(row, min(error.retry_after, LONGEST_WAIT_SECONDS))
            case Fault.UNKNOWN if not _may_repeat(self._transports[row.transport], row):
                await self._set_aside(row, "unknown", error.fault)
            case Fault.UNSENT | Fault.UNKNOWN:
                await self._again(row, PATIENCE_SECONDS[min(row.attempts, len(PATIENCE_SECONDS) - 1)])
            case Fault.NO_THREAD if row.attempts + 1 < LOST_THREAD_TRIES:
                await self._again(row, 2)
            case Fault.NO_THREAD | Fault.THREAD_CLOSED if place.thread:
                await self._move_out(row, error.fault)
            case Fault.MOVED if error.detail != place.chat:
                await self._follow(row, error.detail)
            case Fault.NO_CHAT:
                async with self._database.write() as connection:
                    await outbox.change(connection, row.id, status="failed", error=error.fault)
            case _:
                await self._set_aside(row, "failed", error.fault)

    async def _note(self, row: OutboxRow, fault: str) -> None:
        event = TransportFault(
            user_id=row.user_id, session_id=row.session_id, transport=telemetry.code(row.transport), fault=fault
        )
        async with self._database.write() as connection:
            await telemetry.record(connection, event, to_ms(self._clock.now()))

    async def _again(self, row: OutboxRow, seconds: float) -> None:
        not_before, attempts = self._in(seconds), row.attempts + 1
        status = "doubtful" if row.status == "doubtful" else "pending"
        async with self._database.write() as connection:
            await outbox.change(connection, row.id, status=status, not_before=not_before, attempts=attempts)

    def _in(self, seconds: float) -> int:
        return to_ms(self._clock.now()) + round(seconds * 1000)

    async def _set_aside(self, row: OutboxRow, status: str, reason: str, place: Place | None = None) -> None:
        """Stop trying, and say why: what waits is offered; of what has failed one sentence tells."""
        place = place or _place(row)
        context = _context(row, place)
        card = await self._offer(replace(row, error=reason)) if row.user_id is not None else None
        if card is not None and status == "failed":
            card = replace(card, buttons=())
            context = replace(context, user_id=None)  # nobody is told that a telling has failed
        where = {"chat": place.chat, "thread": place.thread}
        async with self._database.write() as connection:
            await outbox.change(connection, row.id, status=status, error=reason, place=where, lane=place.lane)
            if card is not None:
                await post(connection, context, [card], to_ms(self._clock.now()))
        self.wake()

    async def _move_out(self, row: OutboxRow, fault: Fault) -> None:
        """Nothing can be written in the thread: never slip its answer into the main chat, offer it there."""
        if fault is Fault.NO_THREAD:
            async with self._database.write() as connection:
                chat = await sessions.chat_id(connection, row.transport, row.place["chat"])
                if chat is not None:
                    await sessions.forget_thread(connection, chat, row.place["thread"])
        await self._set_aside(row, "unknown", fault, replace(_place(row), thread=""))

    async def _follow(self, row: OutboxRow, new_chat: str) -> None:
        """The chat has a new id: so have its sessions and this row."""
        place = replace(_place(row), chat=new_chat)
        async with self._database.write() as connection:
            await sessions.move_chat(connection, row.transport, row.place["chat"], new_chat)
            await outbox.change(
                connection, row.id, status="pending", place={"chat": new_chat, "thread": place.thread}, lane=place.lane
            )
        self.wake()


def _may_repeat(transport: Transport, row: OutboxRow) -> bool:
    """True where nobody is harmed by a message that arrives twice, or it cannot arrive twice."""
    return transport.resends_safely or not _is_answer(row)


def _is_answer(row: OutboxRow) -> bool:
    return row.event is not None and (row.event["kind"] == "text" or row.event["file"] is not None)


def _place(row: OutboxRow) -> Place:
    return Place(row.transport, row.place["chat"], row.place["thread"])


def _context(row: OutboxRow, place: Place) -> Context:
    # no inbox id: the card is a message of its own, not the growing answer
    return Context(place, row.user_id, row.session_id, None)
