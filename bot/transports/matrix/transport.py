"""Matrix as a transport: what the port promises, in events of rooms.

Rule: a call goes out once; whether it is repeated is decided by who made it. `SendError` is all that writes raise.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

import structlog

from bot.transports.base import Accept, Fault, Hold, Outgoing, Pace, Part, Presence, Preview, SendError
from bot.transports.matrix import content, files, parse, render
from bot.transports.matrix.account import Account, MatrixSettings
from bot.transports.matrix.buttons import Buttons
from bot.transports.matrix.client import PASSING_SECONDS, Homeserver, Json, quoted
from bot.transports.matrix.errors import AccountError
from bot.transports.matrix.keys import Cards
from bot.transports.matrix.membership import MayInvite, Membership
from bot.transports.matrix.noting import MayPress, Noter, opener
from bot.transports.matrix.profile import introduce
from bot.transports.matrix.reading import Reader
from bot.transports.matrix.receiving import Receiver
from bot.transports.matrix.rooms import Room, Rooms
from bot.transports.matrix.sending import MESSAGE, REACTION, Sender
from bot.transports.matrix.state import SyncState
from handlers.types import Incoming, Place
from memory.storage.inbox import InboxRow

log = structlog.get_logger(__name__)

MOST_EDITS = 50
"""Of one message: a thousand of them broke rooms for every client (P51). The final text is not counted."""
TYPING_MS = 7000
WAITING = "⏳"
_UNENCRYPTED = "unencrypted"


class MatrixTransport:
    """One bot on one homeserver."""

    name = parse.NAME
    resends_safely = True

    def __init__(
        self,
        settings: MatrixSettings,
        *,
        commands: Collection[str],
        may_invite: MayInvite,
        may_press: MayPress,
        unencrypted: str = "",
    ) -> None:
        """`commands` are their names; `unencrypted` says, once a room, that only encrypted rooms are read.

        Raises `AccountError` where the folder cannot be used.
        """
        self._settings = settings
        self._commands = frozenset(commands)
        self._unencrypted = unencrypted
        self._server = Homeserver(settings.homeserver)
        self._account = Account(settings, self._server)
        self._state = SyncState(settings.folder)
        try:
            self._cards = Cards(settings.folder)
        except (OSError, ValueError) as error:
            raise AccountError(f"{settings.folder / files.CARDS_FILE} cannot be read ({error}). Delete it") from error
        self._rooms = Rooms()
        machine = None
        if settings.encryption != "off":
            from bot.transports.matrix.crypto.machine import Machine  # noqa: PLC0415 - needs the extra `matrix`

            machine = Machine(settings, self._server, self._account)
        self._machine = machine
        me = settings.user_id
        self._sender = Sender(self._server, self._account, self._rooms, settings.encryption, machine)
        self._buttons = Buttons(self._server, self._sender, self._cards)
        self._membership = membership = Membership(self._server, self._state, self._rooms, me, may_invite)
        open_event = opener(machine.decrypt if machine else None)
        noter = Noter(self._server, me, self._cards, may_press, open_event)
        refuse = self._refuse_plain if settings.encryption == "required" else None
        self._reader = Reader(
            self._server,
            self._state,
            self._rooms,
            me,
            membership=membership,
            noter=noter,
            machine=machine,
            open_event=open_event,
            refuse_plain=refuse,
        )
        self._receiver = Receiver(
            self._server,
            self._account,
            self._state,
            self._rooms,
            membership=membership,
            reader=self._reader,
            prepare=self._prepare,
        )
        self._edits: dict[str, int] = {}
        self._waiting: dict[str, asyncio.Task[str]] = {}
        self._typing: set[str] = set()

    async def start(self, accept: Accept) -> None:
        """Begin at once and without waiting for the homeserver."""
        self._receiver.start(accept)

    async def stop_receiving(self) -> None:
        await self._receiver.stop()

    async def close(self) -> None:
        await self._receiver.stop()
        await self._buttons.close()
        for task in self._waiting.values():
            task.cancel()
        await asyncio.gather(*self._waiting.values(), return_exceptions=True)
        if self._machine:
            await self._machine.close()
        await self._server.close()

    @property
    def problem(self) -> str | None:
        """What keeps messages from coming in, in words for the operator."""
        return self._receiver.contact.problem

    def last_contact(self) -> float | None:
        return self._receiver.contact.age()

    async def _prepare(self) -> None:
        if self._machine:
            await self._machine.prepare()
        settings = self._settings
        await introduce(self._server, settings.user_id, settings.display_name, settings.avatar, settings.folder)

    async def _refuse_plain(self, room: Room) -> None:
        """Say once that nothing is read here."""
        if room.id in self._state.told or not self._unencrypted:
            return
        part = Part(self._unencrypted, render.Body(None, "notice"))
        place = Place(parse.NAME, room.id)
        try:
            txn = f"{_UNENCRYPTED}-{room.id}"
            await self._sender.send(place, MESSAGE, content.message(part, place, ""), txn, as_it_is=True)
        except SendError as error:
            log.warning("matrix.not_refused", room=room.id, fault=error.fault)
        else:
            self._state.told.add(room.id)

    # --- understanding ---

    def parse(self, row: InboxRow) -> Incoming | None:
        if parse.moved(row.payload) or parse.members(row.payload):
            return None
        try:
            return parse.parse(row.payload, row.id, self._commands)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            log.warning("matrix.not_understood", inbox=row.id, error=type(error).__name__)
            return None

    def moved(self, row: InboxRow) -> tuple[str, str] | None:
        """The old and the new id of a room that was upgraded."""
        found = parse.moved(row.payload)
        if found:
            self._cards.move(*found)
        return found

    def members(self, row: InboxRow) -> Presence | None:
        """Who came to a room and who left it."""
        return parse.members(row.payload)

    def hold(self, incoming: Incoming) -> Hold | None:
        del incoming  # an event holds more than anybody pastes, and an album is one picture a message
        return None

    def pace(self, place: Place) -> Pace:
        del place
        # a homeserver's own limit is told by its 429; this one is for the eyes of people
        return Pace(seconds=0.5, burst=10, preview_seconds=self._settings.edit_seconds or 5.0)

    def preview_style(self, place: Place) -> Preview:
        del place
        return Preview.EDIT if self._settings.edit_seconds else Preview.NONE

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return render.render(outgoing)

    def render_preview(self, text: str) -> Part | None:
        return render.render_preview(text)

    # --- writing ---

    async def send(self, place: Place, part: Part, key: str) -> str:
        """The key is the transaction: the same send again is the same message."""
        await self._membership.follow(place.chat)
        last = self._reader.newest.get((place.chat, place.thread), "")
        made = await self._file(place, part) if part.file else content.message(part, place, last)
        if part.file:
            made |= {key: value for key, value in content.message(part, place, last).items() if key == "m.relates_to"}
        ref = await self._sender.send(place, MESSAGE, made, f"merk-{key}")
        self._reader.newest[place.chat, place.thread] = ref
        if isinstance(part.body, render.Body) and part.body.kind == "text":
            self._cards.outdate(place)
        if part.keys:
            self._buttons.show(place, ref, part.keys)
        await self._end_typing(place)
        return ref

    async def _file(self, place: Place, part: Part) -> Json:
        assert part.file is not None
        name, text = part.file
        raw, kind = text.encode(), content.mime_type(name)
        made = content.file(name, len(raw), part.plain)

        async def store() -> Json:
            if self._machine and await self._sender.is_encrypted(place.chat):
                sealed, secret = self._machine.seal_file(raw)
                secret["url"] = await self._server.upload(sealed, "application/octet-stream", "")
                return {"file": secret}
            return {"url": await self._server.upload(raw, kind, name)}

        return made | await self._sender.ask(store, place)

    async def edit(self, place: Place, ref: str, part: Part) -> None:
        is_preview = isinstance(part.body, render.Body) and part.body.is_preview
        if is_preview:
            self._edits[ref] = self._edits.get(ref, 0) + 1
            if self._edits[ref] > MOST_EDITS:
                return
        else:
            self._edits.pop(ref, None)
            await self._must_be_there(place, ref)
        await self._sender.send(place, MESSAGE, content.edit(part, ref), f"edit-{secrets.token_urlsafe(12)}")
        if part.keys:
            self._buttons.show(place, ref, part.keys)
        elif not is_preview:
            self._buttons.take_away(place, ref)

    async def _must_be_there(self, place: Place, ref: str) -> None:
        """A homeserver takes an edit of what was redacted, and nobody would see it."""
        event = await self._sender.ask(lambda: self._server.event(place.chat, ref), place)
        if event is None or not event.get("content"):
            raise SendError(Fault.NO_MESSAGE, "it was redacted, or never was there")

    async def delete(self, place: Place, refs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([ref for ref in refs if not await self._delete(place, ref)])

    async def _delete(self, place: Place, ref: str) -> bool:
        """Take a message's words away, and those of each of its edits; False where that is refused."""
        self._cards.remove(ref)

        async def redact() -> None:
            edits = await self._server.related(place.chat, ref, "m.replace")
            for event_id in [*(edit["event_id"] for edit in edits if edit["sender"] == self._settings.user_id), ref]:
                await self._server.redact(place.chat, event_id)

        try:
            await self._sender.ask(redact, replace(place, thread=""))
        except SendError as error:
            if error.fault is Fault.NO_CHAT:
                return True  # there is no such message, or nobody to see it
            if error.fault is Fault.UNKNOWN:  # a second time does no harm
                raise SendError(Fault.UNSENT, error.detail) from error
            if error.fault is not Fault.REFUSED:
                raise
            return False
        return True

    async def draft(self, place: Place, draft_id: int, part: Part) -> None:
        del place, draft_id, part  # answers grow in a message

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        """A thread under the message that asks for one. One that stands in a thread itself cannot be its root."""
        if root and not place.thread:
            return root
        part = Part(" ".join(title.split()), render.Body(None, "notice"))
        main = replace(place, thread="")
        txn = f"thread-{root or secrets.token_urlsafe(12)}"
        return await self._sender.send(main, MESSAGE, content.message(part, main, ""), txn)

    # --- in passing ---

    async def show_typing(self, place: Place) -> None:
        self._typing.add(place.chat)
        await self._sender.ask(lambda: self._type(place, is_typing=True), place)

    async def _end_typing(self, place: Place) -> None:
        """What was typed is there: clients would show us typing on."""
        if place.chat in self._typing:
            self._typing.discard(place.chat)
            await self._try(place, lambda: self._type(place, is_typing=False))

    async def _type(self, place: Place, *, is_typing: bool) -> None:
        path = f"/rooms/{quoted(place.chat)}/typing/{quoted(self._settings.user_id)}"
        body: Json = {"typing": True, "timeout": TYPING_MS} if is_typing else {"typing": False}
        await self._server.call("PUT", path, body, seconds=PASSING_SECONDS)

    async def acknowledge(self, incoming: Incoming, toast: str) -> None:
        """There are no sentences in passing: it is said as a notice."""
        if not toast:
            return
        place, part = incoming.place, Part(toast, render.Body(None, "notice"))
        last = self._reader.newest.get((place.chat, place.thread), "")
        try:
            await self._sender.send(place, MESSAGE, content.message(part, place, last), f"toast-{incoming.ref}")
        except SendError as error:
            log.info("matrix.not_shown", fault=error.fault)

    async def mark_waiting(self, incoming: Incoming, *, waiting: bool) -> None:
        place, ref = incoming.place, incoming.ref
        if not incoming.is_said:
            return
        if waiting and not self._sender.is_quiet():
            send = self._sender.send(place, REACTION, content.reaction(ref, WAITING), f"waits-{ref}")
            self._waiting[ref] = asyncio.create_task(send)
            await asyncio.wait([self._waiting[ref]])
        elif not waiting and (mark := self._waiting.pop(ref, None)):
            try:
                event_id = await mark
            except SendError as error:
                log.info("matrix.not_shown", fault=error.fault)
                return
            await self._try(place, lambda: self._server.redact(place.chat, event_id))

    async def _try(self, place: Place, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await self._sender.ask(call, place)
        except SendError as error:
            log.info("matrix.not_shown", fault=error.fault)
