"""From an update to a finished reply: the inbox row first, then its place's turn, then one transaction at the end.

One lane a place keeps order; presses and urgent commands do not wait in it. A kill at any point leaves an inbox row
that is not done, and `recover` takes it up again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import structlog

from bot.transports.base import Hold, Presence, Preview, Transport
from bot.transports.delivery import Delivery
from bot.transports.posting import Context, post
from bot.transports.preview import Previewer
from handlers.types import Card, Event, Handled, Incoming, Notice, Status, Text
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import inbox, members, sessions
from memory.storage.database import Database
from memory.storage.inbox import InboxRow

log = structlog.get_logger(__name__)

PRESS_SECONDS = 4


@dataclass(slots=True)
class _Lane:
    waiting: deque[Incoming] = field(default_factory=deque[Incoming])
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class _Gathering:
    parts: list[Incoming]
    timer: asyncio.TimerHandle


class Intake:
    """Takes in what one transport receives."""

    def __init__(  # noqa: PLR0913 - what it connects
        self,
        database: Database,
        clock: Clock,
        transport: Transport,
        delivery: Delivery,
        *,
        handle: Callable[[Incoming, int], Awaitable[Handled]],
        is_urgent: Callable[[Incoming], bool],
        finished: Callable[[], None],
        joined: Callable[[int, int, int], None] | None = None,
    ) -> None:
        """`joined` is told of the newcomers of a group: its id, the row that says so, and how many they are."""
        self._database = database
        self._clock = clock
        self._transport = transport
        self._delivery = delivery
        self._handle = handle
        self._is_urgent = is_urgent
        self._finished = finished
        self._joined = joined
        self._departed: dict[tuple[str, str], int] = {}
        """(chat, identity) -> the row that says that they left."""
        self._lanes: dict[str, _Lane] = {}
        self._gathering: dict[str, _Gathering] = {}
        self._urgent: set[asyncio.Task[None]] = set()
        self._left_over: set[int] = set()
        """Rows of an earlier life: work on them has begun before."""
        self._closed = False

    async def accept(self, external_id: str, payload: dict[str, Any]) -> None:
        """Commit an update, then see to it. Returns when it is on disk."""
        async with self._database.jot() as connection:
            row_id = await inbox.add(connection, self._transport.name, external_id, payload, to_ms(self._clock.now()))
        if row_id is None:
            return
        try:
            await self._take(InboxRow(row_id, self._transport.name, external_id, payload, 0))
        except Exception:
            # it is on disk, and that is what the transport asked: the row is taken up again at the next start
            log.exception("intake.not_taken", inbox=row_id)

    async def recover(self) -> None:
        """Take up again what was received and not finished, in order."""
        async with self._database.read() as connection:
            rows = await inbox.open_rows(connection, self._transport.name)
        self._left_over = {row.id for row in rows}
        for row in rows:
            await self._take(row)

    async def close(self) -> None:
        """Stop at once. What is unfinished is taken up again at the next start."""
        self._closed = True
        for gathering in self._gathering.values():
            gathering.timer.cancel()
        tasks = [lane.task for lane in self._lanes.values() if lane.task] + list(self._urgent)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def is_busy(self, lane: str) -> bool:
        """True while something of a place is being worked on: what the clock does there comes later."""
        return lane in self._lanes

    def is_idle(self) -> bool:
        return not (self._lanes or self._gathering or self._urgent)

    async def _take(self, row: InboxRow) -> None:
        if presence := self._transport.members(row):
            await self._note_presence(presence, row.id)  # where that fails the row stays open: nobody's leaving is lost
        try:
            if moved := self._transport.moved(row):
                await self._follow(*moved)
            incoming = self._transport.parse(row)
        except Exception:
            # an update of a shape we do not know must not block the ones behind it
            log.exception("intake.not_understood", inbox=row.id)
            incoming = None
        if incoming is None:
            await self._finish((row.id,))
            return
        hold = self._hold(incoming)
        if not self._is_urgent(incoming):
            self._flush(incoming, hold)
        if hold:
            self._gather(incoming, hold)
        else:
            self._line_up(incoming)

    def _flush(self, incoming: Incoming, hold: Hold | None) -> None:
        """What is still being gathered in this place comes before what is said after it."""
        lane = incoming.place.lane
        for key, gathering in list(self._gathering.items()):
            if gathering.parts[0].place.lane == lane and (hold is None or key != hold.key):
                gathering.timer.cancel()
                self._gathered(key)

    async def _follow(self, old: str, new: str) -> None:
        async with self._database.write() as connection:
            await sessions.move_chat(connection, self._transport.name, old, new)

    async def _note_presence(self, presence: Presence, row_id: int) -> None:
        """At once, past everything that waits: whoever left sees nothing of the group from now on."""
        name, now = self._transport.name, to_ms(self._clock.now())
        newcomers = 0
        async with self._database.write() as connection:
            chat = await sessions.chat_id(connection, name, presence.chat)
            if chat is None and presence.came:
                chat = await sessions.ensure_chat(
                    connection, name, presence.chat, kind="user", title=presence.title, now=now
                )
            if chat is None:
                return
            known = frozenset(await members.in_group(connection, chat))
            gone = known if presence.is_over else presence.left
            for identity in gone:
                await members.left(connection, chat, identity)
            for identity in presence.came:
                await members.note(connection, chat, identity, now)
            newcomers = len(presence.came - known)
        self._departed |= {(presence.chat, identity): row_id for identity in gone}
        for identity in presence.came:
            self._departed.pop((presence.chat, identity), None)
        if newcomers and self._joined is not None:
            self._joined(chat, row_id, newcomers)

    async def _forget_departed(self, incoming: Incoming) -> None:
        """What somebody said before they left counts as a sign of them, and is no longer one."""
        gone = self._departed.get((incoming.place.chat, incoming.sender.identity), 0)
        if gone > incoming.inbox_ids[-1]:
            async with self._database.write() as connection:
                chat = await sessions.chat_id(connection, incoming.place.transport, incoming.place.chat)
                if chat is not None:
                    await members.left(connection, chat, incoming.sender.identity)

    def _hold(self, incoming: Incoming) -> Hold | None:
        hold = self._transport.hold(incoming)
        if hold is None or self._is_urgent(incoming):
            return None
        return hold if hold.seconds or hold.key in self._gathering else None

    def _gather(self, incoming: Incoming, hold: Hold) -> None:
        known = self._gathering.pop(hold.key, None)
        if known:
            known.timer.cancel()
        parts = [*known.parts, incoming] if known else [incoming]
        seconds = hold.seconds or 1.0
        timer = asyncio.get_running_loop().call_later(seconds, self._gathered, hold.key)
        self._gathering[hold.key] = _Gathering(parts, timer)

    def _gathered(self, key: str) -> None:
        self._line_up(merge(self._gathering.pop(key).parts))

    def _line_up(self, incoming: Incoming) -> None:
        if self._closed:
            return
        if self._is_urgent(incoming):
            self._spawn(self._work(incoming))
            return
        lane = self._lanes.setdefault(incoming.place.lane, _Lane())
        lane.waiting.append(incoming)
        if lane.task is None:
            lane.task = asyncio.create_task(self._work_lane(incoming.place.lane, lane))
        elif incoming.press:  # it would spin on the phone until its turn
            self._spawn(self._transport.acknowledge(incoming, ""))
        else:
            self._spawn(self._transport.mark_waiting(incoming, waiting=True))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._urgent.add(task)
        task.add_done_callback(self._urgent.discard)

    async def _work_lane(self, key: str, lane: _Lane) -> None:
        first = True
        while lane.waiting:
            incoming = lane.waiting.popleft()
            if not first and not incoming.press:
                self._spawn(self._transport.mark_waiting(incoming, waiting=False))
            first = False
            await self._work(incoming)
        del self._lanes[key]

    async def _work(self, incoming: Incoming) -> None:
        try:
            await self._answer(incoming)
        except Exception:
            # the dispatcher answers for handlers; what arrives here is a store that fails: the row stays open
            log.exception("intake.failed", inbox=incoming.inbox_ids)

    async def _answer(self, incoming: Incoming) -> None:
        attempt = await self._begin(incoming)
        handled = await self._handle(incoming, attempt)
        await self._forget_departed(incoming)
        previewer = Previewer(self._database, self._clock, self._transport, self._delivery.limiter, incoming)
        events: list[Event] = []
        toast = ""
        patience = asyncio.create_task(self._acknowledge_later(incoming)) if incoming.press else None
        async with previewer, aclosing(handled.reply) as reply:
            async for event in reply:
                if isinstance(event, Text) and not event.done:
                    previewer.grow(event.text)
                elif isinstance(event, Status):
                    previewer.show_status(event.text)
                elif isinstance(event, Notice) and event.brief and incoming.press:
                    toast = event.text
                else:
                    events.append(event)
        if patience is not None and patience.cancel():
            self._spawn(self._transport.acknowledge(incoming, toast))
        may_grow = self._transport.preview_style(incoming.place) is Preview.EDIT
        context = Context(incoming.place, handled.user_id, handled.session_id, incoming.inbox_ids[0], may_grow)
        now = to_ms(self._clock.now())
        async with self._delivery.begun_at_once(incoming.place) as begin, self._database.jot() as connection:
            await post(connection, context, events, now)
            await inbox.finish(connection, incoming.inbox_ids, now)
            await begin(connection)
        for place in {event.to.place for event in events if isinstance(event, Card | Notice) and event.to}:
            self._delivery.wake(place)
        self._finished()

    async def _begin(self, incoming: Incoming) -> int:
        if self._left_over.isdisjoint(incoming.inbox_ids):
            return 1
        async with self._database.write() as connection:
            return await inbox.begin(connection, incoming.inbox_ids)

    async def _acknowledge_later(self, incoming: Incoming) -> None:
        """A press that is not acknowledged spins on the phone, and expires."""
        await asyncio.sleep(PRESS_SECONDS)
        await self._transport.acknowledge(incoming, "")

    async def _finish(self, ids: tuple[int, ...]) -> None:
        async with self._database.jot() as connection:
            await inbox.finish(connection, ids, to_ms(self._clock.now()))


HARD_CUT = 4096  # a client that cuts exactly here cut inside a word


def merge(parts: list[Incoming]) -> Incoming:
    """One message from the pieces of a split paste or the items of an album, in their order."""
    if len(parts) == 1:
        return parts[0]
    parts = sorted(parts, key=lambda part: part.inbox_ids)
    text = parts[0].text
    for before, part in pairwise(parts):
        glue = "" if len(before.text) == HARD_CUT else "\n"
        text = glue.join(piece for piece in (text, part.text) if piece)
    return replace(
        parts[0],
        inbox_ids=tuple(id for part in parts for id in part.inbox_ids),
        text=text,
        attachments=tuple(item for part in parts for item in part.attachments),
        pieces=tuple((part.ref, part.text) for part in parts),
        is_addressed=any(part.is_addressed for part in parts),
    )
