"""The two shapes of Merk: what comes in, and the reply events that go out. `Handler = Request -> Reply`.

A handler never calls a transport; a transport iterates a reply and never decides.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from handlers.locales import Phrases
from memory import telemetry
from memory.types import Audience, Origin, Session, SessionState, User, Utterance

# --- in ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer goes: fixed when a message comes in, there is no "last chat" (pitfall P05)."""

    transport: str
    chat: str
    thread: str = ""

    @property
    def lane(self) -> str:
        """What happens in one place happens in order."""
        return f"{self.transport}:{self.chat}:{self.thread}"


@dataclass(frozen=True, slots=True)
class Sender:
    identity: str
    """Transport and the sender's id there: "telegram:42"."""
    name: str
    language: str = "en"
    """As the sender's client says; any BCP 47 tag."""


@dataclass(frozen=True, slots=True)
class Attachment:
    kind: str
    """voice | photo | document | audio | video | sticker | location | contact | other"""
    name: str = ""


WAITS = "w."
"""Begins the token of a button that waits in line: a transport's update is known by it before any look into SQL."""


@dataclass(frozen=True, slots=True)
class Press:
    """A button that was pressed."""

    token: str
    card: str
    """The transport's id of the message that holds the button."""

    @property
    def waits(self) -> bool:
        """It changes the open work: its turn comes after the answers that are being made."""
        return self.token.startswith(WAITS)


@dataclass(frozen=True, slots=True)
class Incoming:
    """One thing a person did, as a transport understood it."""

    inbox_ids: tuple[int, ...]
    """The inbox rows it was made from: several for a split paste or an album."""
    place: Place
    sender: Sender
    sent_at: datetime
    chat_kind: Literal["ai", "user"] = "ai"
    """ai = only the bot and one person; user = others read along."""
    chat_title: str = ""
    text: str = ""
    origin: Origin = Origin.TYPED
    quote: str = ""
    """The words of the message replied to; somebody's words, not the sender's."""
    quote_author: str = ""
    attachments: tuple[Attachment, ...] = ()
    pieces: tuple[tuple[str, str], ...] = ()
    """Id and words of each message that it was made from, where it was several."""
    reply_to: str = ""
    """The transport's id of the message replied to."""
    ref: str = ""
    """The transport's own id of the message."""
    is_addressed: bool = True
    """In a group: by mention, by reply or by command."""
    is_edit: bool = False
    is_taken_back: bool = False
    """Whoever acts here has deleted the message `ref`; there are no other words."""
    is_invitation: bool = False
    """The bot was asked into the place and is not there yet: nothing can be said there."""
    press: Press | None = None

    @property
    def is_said(self) -> bool:
        """Words to be answered."""
        return not (self.press or self.is_taken_back or self.is_invitation)

    @property
    def is_trusted(self) -> bool:
        """False for a turn that holds somebody else's words: nothing in it may write memory without a tap."""
        return self.origin is Origin.TYPED and not self.quote and not self.attachments


# --- out -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Button:
    """What a tap does: an entry of handlers/buttons and its data."""

    label: str
    action: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    waits: bool = False
    """It changes the open work: a press waits in line behind a running answer, as messages do."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody other than the asker, in a place of their own."""

    place: Place
    user_id: int


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer. It grows until `done`, whose text is the whole (Markdown)."""

    text: str
    done: bool = False
    record: Utterance | None = None
    """Logged in the transaction that makes the answer ready to send: never one without the other."""


@dataclass(frozen=True, slots=True)
class Status:
    """What a long step is busy with: one line under the growing answer, in passing."""

    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """Text with buttons, row by row. `replaces` is the id of the message whose place it takes.

    With a record it is logged like `Text`; a record with `is_ephemeral` makes it working output.
    """

    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()
    replaces: str | None = None
    to: Recipient | None = None
    file: tuple[str, str] | None = None
    """A text file to hand over: name and content."""
    formatted: bool = False
    """The text is Markdown; else it is shown letter by letter, for it may quote anybody."""
    record: Utterance | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """One plain sentence from Merk itself. `brief` may be shown in passing and need not be kept."""

    text: str
    brief: bool = False
    to: Recipient | None = None
    record: Utterance | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the open work stands now: stored in the transaction that makes the reply ready to send."""

    state: SessionState


@dataclass(frozen=True, slots=True)
class Wipe:
    """End a session's open work: its rows go in the reply's transaction, then its messages go from the chat."""

    session_id: int
    stub: str
    """What stands in the place of a message that cannot be deleted any more."""


@dataclass(frozen=True, slots=True)
class Happened:
    """Something for telemetry: it is written in the transaction that makes the reply ready to send."""

    event: telemetry.Event


Event = Text | Status | Card | Notice | Progress | Wipe | Happened
Reply = AsyncGenerator[Event, None]


# --- handlers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler gets: the incoming thing, and who, where and in which language."""

    incoming: Incoming
    user: User
    audience: Audience
    session: Session
    """What it belongs to: of a pressed button, the session of its card."""
    here: Session
    """The current session of the place."""
    say: Phrases
    """Every text a person reads, in this person's language."""
    args: str = ""
    """The words after a command's name."""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the pressed button carries."""

    @property
    def key(self) -> str:
        """The same for every try at the same incoming thing: what it did once is told again, not done again."""
        return str(self.incoming.inbox_ids[0])

    @property
    def card(self) -> str | None:
        """The message that holds the pressed button: an answer takes its place."""
        return self.incoming.press.card if self.incoming.press else None


Handler = Callable[[Request], Reply]
Door = Callable[[Incoming, str, Phrases], Reply]
"""What a stranger gets to hear who is nobody here: what they sent, and the words after the command's name."""


@dataclass(frozen=True, slots=True)
class Handled:
    """What the dispatcher makes of an incoming thing: the reply, and whom it is for."""

    reply: Reply
    user_id: int | None = None
    session_id: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A handler with a name that people type. Its description is the phrase `command-NAME`."""

    name: str
    handle: Handler
    is_urgent: bool = False
    """Does not wait in line behind a running answer."""
    for_owners: bool = False


class Threads(Protocol):
    """Opening a thread is the one thing a handler asks of a transport before it answers."""

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        """Return the new thread's id, or None where the place has no threads; `root` is the message that asks."""
        ...


class UserError(Exception):
    """Something the person can put right; the text is shown to them as it is."""
