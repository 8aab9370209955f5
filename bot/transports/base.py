"""The port of a transport: a network people chat on. One contract suite holds every adapter to it.

A transport parses what came in and does what it is told with what goes out; it never decides.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from handlers.types import Incoming, Place
from memory.storage.inbox import InboxRow

Accept = Callable[[str, dict[str, Any]], Awaitable[None]]
"""(external id, payload): returns when the update is committed; a repeat is ignored. Never raises for bad payloads."""


@dataclass(frozen=True, slots=True)
class Key:
    """A button as a transport shows it."""

    label: str
    token: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One reply event, ready to be sent: what an outbox row holds."""

    kind: str
    """text | card | notice"""
    text: str = ""
    keys: tuple[tuple[Key, ...], ...] = ()
    replaces: str | None = None
    file: tuple[str, str] | None = None
    formatted: bool = False
    """A card whose text is Markdown."""


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a transport's size."""

    plain: str
    """The fallback when the transport refuses the formatted body."""
    body: Any = None
    """The transport's own rendering; None sends `plain`."""
    keys: tuple[tuple[Key, ...], ...] = ()
    file: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one chat may be written to: a bucket of `burst` that refills one call every `seconds`."""

    seconds: float
    burst: int
    preview_seconds: float
    """The least time between two pictures of a growing answer."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What may be a piece of something larger waits `seconds` for the rest under the same key."""

    key: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Presence:
    """Who came to a group and who left it, as identities."""

    chat: str
    came: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    is_over: bool = False
    """Merk itself is there no more: nobody tells it who is."""
    title: str = ""


class Preview(StrEnum):
    """How a growing answer is shown."""

    NONE = "none"
    DRAFT = "draft"
    """Passing: vanishes by itself, the final message is a message of its own."""
    EDIT = "edit"
    """A message that is edited; the final answer takes its place."""


class Fault(StrEnum):
    """Why a call to the transport's server did not succeed, by what is to be done about it."""

    LATER = "later"
    """Refused for now: again after `retry_after` seconds."""
    UNSENT = "unsent"
    """Certainly not delivered: again, with patience."""
    UNKNOWN = "unknown"
    """May have been delivered: never repeated blindly."""
    FORMAT = "format"
    """Refused as formatted: once more as plain text."""
    NO_THREAD = "no_thread"
    """The thread is gone."""
    THREAD_CLOSED = "thread_closed"
    """The thread is there, and nobody may write in it for now."""
    NO_MESSAGE = "no_message"
    """The message to edit is not there any more."""
    NO_CHAT = "no_chat"
    """Blocked, left or deleted: nobody is there to read it."""
    MOVED = "moved"
    """The chat has a new id: `detail` is it."""
    REFUSED = "refused"
    """Never delivered, whatever is tried."""


class SendError(Exception):
    def __init__(self, fault: Fault, detail: str, *, retry_after: float = 0.0) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail
        self.retry_after = retry_after


class Transport(Protocol):
    """Obligations: `parse` is pure and total; calls that write raise `SendError` only; "not modified" is success."""

    name: str
    resends_safely: bool
    """True where a send that is repeated under the same key is not a second message."""

    async def start(self, accept: Accept) -> None:
        """Begin to receive: every update goes through `accept` before it is acknowledged."""
        ...

    async def stop_receiving(self) -> None: ...

    async def close(self) -> None: ...

    @property
    def problem(self) -> str | None:
        """What keeps messages from coming in, in words for the operator."""
        ...

    def parse(self, row: InboxRow) -> Incoming | None:
        """Understand an update; None when it asks for nothing (a service message, a channel post)."""
        ...

    def moved(self, row: InboxRow) -> tuple[str, str] | None:
        """The old and the new id of the chat, where an update says that it has a new one."""
        ...

    def members(self, row: InboxRow) -> Presence | None:
        """Who came and went, where an update says that somebody did; in groups only."""
        ...

    def hold(self, incoming: Incoming) -> Hold | None: ...

    def pace(self, place: Place) -> Pace: ...

    def preview_style(self, place: Place) -> Preview: ...

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]: ...

    def render_preview(self, text: str) -> Part | None: ...

    async def send(self, place: Place, part: Part, key: str) -> str:
        """Send one message and return its id. `key` is stable over repeats of the same send."""
        ...

    async def edit(self, place: Place, ref: str, part: Part) -> None: ...

    async def delete(self, place: Place, refs: tuple[str, ...]) -> tuple[str, ...]:
        """Delete messages; return those that would not go."""
        ...

    async def draft(self, place: Place, draft_id: int, part: Part) -> None:
        """Show a growing answer in passing. Best effort."""
        ...

    async def show_typing(self, place: Place) -> None: ...

    async def acknowledge(self, incoming: Incoming, toast: str) -> None:
        """Answer a press at once, with a sentence in passing or with nothing. Best effort."""
        ...

    async def mark_waiting(self, incoming: Incoming, *, waiting: bool) -> None:
        """Show that a message waits in line, or that its turn has come. Best effort."""
        ...

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        """Open a thread and return its id, or None where there are none; `root` is the message that asks for it."""
        ...

    def last_contact(self) -> float | None:
        """Seconds since the last finished poll, sync or webhook call; None before the first (pitfall P40)."""
        ...


@runtime_checkable
class AsksMembers(Protocol):
    """A transport that may miss a leaving, and can be asked who is still there."""

    def last_contact(self) -> float | None: ...

    async def is_member(self, chat: str, identity: str) -> bool:
        """Whether somebody is in a group now. Raises `SendError`; NO_CHAT where Merk itself is there no more."""
        ...
