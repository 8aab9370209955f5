"""A transport in memory: what was sent is what can be read, and every fault can be asked for."""

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

from bot.transports.base import Accept, Fault, Hold, Outgoing, Pace, Part, Presence, Preview, SendError
from handlers.types import Incoming, Place, Press, Sender
from memory.storage.inbox import InboxRow
from memory.types import Origin

SENT_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Shown:
    """A message as people see it."""

    ref: str
    place: Place
    part: Part
    versions: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return self.part.plain


class RecordingTransport:
    """Keeps its own chat. Payloads are {"text", "chat", "thread", "from", "token", …}."""

    def __init__(
        self,
        name: str = "fake",
        *,
        resends_safely: bool = False,
        style: Preview = Preview.NONE,
        pace: Pace | None = None,
        part_length: int = 1000,
        threads: bool = False,
    ) -> None:
        self.name = name
        self.resends_safely = resends_safely
        self.style = style
        self._pace = pace or Pace(0.001, 1000, 0.001)
        self.part_length = part_length
        self.has_threads = threads
        self.shown: dict[str, Shown] = {}
        self.deleted: list[str] = []
        self.drafts: list[str] = []
        self.toasts: list[str] = []
        self.typing: list[str] = []
        self.waiting: list[tuple[str, bool]] = []
        self.faults: deque[SendError] = deque()
        self.faults_at: dict[int, SendError] = {}
        """By the number of the send."""
        self.after_delivery: deque[SendError] = deque()
        """Raised when the message is there already: the answer of the server got lost."""
        self.holds: dict[str, Hold] = {}
        self.contact_age: float | None = 0.0
        self.accept: Accept | None = None
        self._numbers = count(1)
        self._sends = 0
        self._sent: dict[str, str] = {}
        """By the key of the send."""

    def texts(self, place: Place | None = None) -> list[str]:
        return [shown.text for shown in self.shown.values() if place is None or shown.place == place]

    def tokens(self) -> dict[str, str]:
        """Label to token of every button that can be seen."""
        return {key.label: key.token for shown in self.shown.values() for row in shown.part.keys for key in row}

    async def start(self, accept: Accept) -> None:
        self.accept = accept

    async def stop_receiving(self) -> None:
        return

    async def close(self) -> None:
        return

    @property
    def problem(self) -> str | None:
        return None

    def moved(self, row: InboxRow) -> tuple[str, str] | None:
        found = row.payload.get("moved")
        return (found[0], found[1]) if found else None

    def members(self, row: InboxRow) -> Presence | None:
        payload = row.payload
        if not {"came", "left", "over"} & payload.keys():
            return None
        came, gone = (frozenset(f"{self.name}:{who}" for who in payload.get(key, ())) for key in ("came", "left"))
        return Presence(str(payload["chat"]), came, gone, is_over=bool(payload.get("over")))

    def parse(self, row: InboxRow) -> Incoming | None:
        payload = row.payload
        if {"service", "moved", "came", "left", "over"} & payload.keys():
            return None
        sender = str(payload.get("from", "42"))
        return Incoming(
            inbox_ids=(row.id,),
            place=Place(self.name, str(payload.get("chat", "42")), str(payload.get("thread", ""))),
            sender=Sender(f"{self.name}:{sender}", str(payload.get("name", f"Person {sender}"))),
            sent_at=SENT_AT,
            chat_kind="user" if payload.get("group") else "ai",
            text=payload["text"],
            origin=Origin(payload.get("origin", Origin.TYPED)),
            quote=payload.get("quote", ""),
            reply_to=payload.get("reply_to", ""),
            ref=payload.get("ref", row.external_id),
            is_edit=bool(payload.get("edit")),
            is_taken_back=bool(payload.get("taken_back")),
            is_invitation=bool(payload.get("invited")),
            is_addressed=not payload.get("invited"),
            press=Press(payload["token"], str(payload.get("card", ""))) if "token" in payload else None,
        )

    def hold(self, incoming: Incoming) -> Hold | None:
        return self.holds.get(incoming.text[:4])

    def pace(self, place: Place) -> Pace:
        del place
        return self._pace

    def preview_style(self, place: Place) -> Preview:
        del place
        return self.style

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        text = outgoing.text
        pieces = [text[at : at + self.part_length] for at in range(0, len(text), self.part_length)] or [""]
        last = len(pieces) - 1
        return tuple(
            Part(piece, f"*{piece}*", outgoing.keys if at == last else (), outgoing.file if at == last else None)
            for at, piece in enumerate(pieces)
        )

    def render_preview(self, text: str) -> Part | None:
        return Part(text) if text.strip() else None

    async def send(self, place: Place, part: Part, key: str) -> str:
        self._fail(self.faults)
        if self.resends_safely and key in self._sent:
            return self._sent[key]
        self._sends += 1
        if self._sends in self.faults_at:
            raise self.faults_at[self._sends]
        ref = str(next(self._numbers))
        self.shown[ref] = Shown(ref, place, part, [part.plain])
        self._sent[key] = ref
        self._fail(self.after_delivery)
        return ref

    async def edit(self, place: Place, ref: str, part: Part) -> None:
        del place
        self._fail(self.faults)
        if ref not in self.shown:
            raise SendError(Fault.NO_MESSAGE, ref)
        self.shown[ref].part = part
        self.shown[ref].versions.append(part.plain)

    async def delete(self, place: Place, refs: tuple[str, ...]) -> tuple[str, ...]:
        del place
        for ref in refs:
            self.shown.pop(ref, None)
        self.deleted += refs
        return ()

    async def draft(self, place: Place, draft_id: int, part: Part) -> None:
        del place, draft_id
        self._fail(self.faults)
        self.drafts.append(part.plain)

    async def show_typing(self, place: Place) -> None:
        self.typing.append(place.lane)

    async def acknowledge(self, incoming: Incoming, toast: str) -> None:
        del incoming
        self.toasts.append(toast)

    async def mark_waiting(self, incoming: Incoming, *, waiting: bool) -> None:
        self.waiting.append((incoming.text, waiting))

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        del place, title, root
        return str(next(self._numbers)) if self.has_threads else None

    def last_contact(self) -> float | None:
        return self.contact_age

    def _fail(self, faults: deque[SendError]) -> None:
        if faults:
            raise faults.popleft()
