"""The nouns of memory, as plain values."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from memory.recall.fusion import Method
from memory.scope import Audience, Scope


class Role(StrEnum):
    """Of a person in this tenant."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    GUEST = "guest"


class Origin(StrEnum):
    """Where the words of a message come from; all but TYPED are untrusted."""

    TYPED = "typed"
    FORWARDED = "forwarded"
    QUOTED = "quoted"
    TOOL = "tool"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class User:
    id: int
    name: str
    role: Role
    language: str | None = None
    """Chosen with /language; None follows the client's."""
    client_language: str = "en"
    timezone: str | None = None
    """IANA name, chosen with /timezone; None follows the tenant's."""
    identities: tuple[str, ...] = ()
    """Under which they write, where they were found by one of them."""

    @property
    def reads(self) -> str:
        """The language of everything this person is shown."""
        return self.language or self.client_language


@dataclass(frozen=True, slots=True)
class Session:
    id: int
    chat_id: int
    thread: str
    user_id: int
    owner: str
    title: str
    is_current: bool
    created_at: datetime
    last_used_at: datetime
    awaits: bool = False
    """After "Edit" or "Rename": somebody's next message is the new text."""
    pinned_tier: str | None = None
    """The model that somebody chose for this chat; None: chosen anew for each message."""
    routed_tier: str | None = None
    """The model that the matter in hand was given to."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """The open piece of work of a session: which tool has it, and where it stands. Its texts are working output."""

    session_id: int
    user_id: int
    """Whose work it is: only they close it or go on with it."""
    tool: str
    title: str
    """The piece of work in a person's words: "Mail to the landlord"."""
    step: str = ""
    """Where it stands, for the model: "draft 3"."""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """Small and JSON-able."""
    idle_turns: int = 0
    """Turns in a row that did not touch it."""
    opened_at: int = 0
    touched_at: int = 0


@dataclass(frozen=True, slots=True)
class Reminder:
    """Something to be said at a time. `starts` is wall clock time in `timezone`; `rule` an RFC 5545 RRULE."""

    id: int
    user_id: int
    owner: str
    place: dict[str, str]
    """transport, chat, thread: where it rings."""
    text: str
    starts: str
    timezone: str
    rule: str | None
    due_at: int
    """The next time it rings, milliseconds since the epoch."""
    status: Literal["waiting", "rung", "done"] = "waiting"


@dataclass(frozen=True, slots=True)
class Message:
    """One stored utterance."""

    id: int
    session_id: int
    role: str
    speaker: str
    text: str
    origin: Origin
    blocks: list[dict[str, Any]] | None
    created_at: datetime
    is_working: bool = False
    """Working output: for people, never for a model's history."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What is to be appended to the log."""

    session_id: int
    role: str
    speaker: str
    text: str
    user_id: int | None = None
    origin: Origin = Origin.TYPED
    blocks: list[dict[str, Any]] | None = None
    inbox_id: int | None = None
    external_ref: str | None = None
    duration_ms: int | None = None
    memory_trace: dict[str, Any] | None = None
    model: str | None = None
    is_ephemeral: bool = False
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """What someone asked to be kept."""

    id: int
    owner: str
    scope: Scope
    text: str
    speaker: str
    slot: str | None
    source_message_ids: tuple[int, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """The facts that a few words mean, best first."""

    facts: tuple[Fact, ...] = ()
    by_words: bool = True
    """False: none has the words, these are near in meaning. A guess, to be offered one by one."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of keeping a fact, told from the stored row."""

    fact: Fact
    was_known: bool = False
    """The same fact was there already; nothing was added."""
    redacted: bool = False
    """A secret was taken out before the write."""
    rivals: tuple[Fact, ...] = ()
    """Facts in force that give the same slot another value; the person decides: new, both or old."""
    budget_used: float = 0.0
    """Share of the facts budget in use, 1.0 = full."""


@dataclass(frozen=True, slots=True)
class Cited:
    """A line of an earlier session, with the id by which it can be cited."""

    message_id: int
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Recollection:
    """A recalled earlier session, with why it was recalled."""

    session_id: int
    title: str
    text: str
    """Its summary; "" while there is none."""
    at: datetime
    score: float
    reason: str
    lines: tuple[Cited, ...] = ()
    """What was said there that bears on the question, in the order of the log."""

    @property
    def told(self) -> str:
        """All the words that it brings back."""
        return "\n".join((self.title, self.text, *(line.text for line in self.lines)))


@dataclass(frozen=True, slots=True)
class Noticed:
    """A recalled observation, with when and where it comes from and why it was recalled."""

    id: int
    text: str
    at: datetime
    source: str
    """A code: "chat:12" (a session), "manual:12", "hook", "consolidation"."""
    score: float
    reason: str
    title: str = ""
    type: str = ""
    """fact, decision, event, concept, preference or task."""
    scope: Scope = Scope.PRIVATE


@dataclass(frozen=True, slots=True)
class Lead:
    """An observation that may bear on a question, as a way to the messages on which it rests."""

    message_ids: tuple[int, ...]
    cosine: float | None
    words: float
    """Of the question's words, what share is in it, times its BM25 beside the best one's."""


class ObservationRefused(Exception):  # noqa: N818 - it is an answer to a person, not a fault
    """An observation was not kept or changed. `reason`: "empty" (nothing to keep), "gone" (no such one here),
    "others" (it rests on what others said), "members" (not in that team or group), "grant" (one is needed).
    """

    def __init__(self, reason: Literal["empty", "gone", "others", "members", "grant"]) -> None:
        super().__init__(f"the observation was refused: {reason}")
        self.reason: Literal["empty", "gone", "others", "members", "grant"] = reason


@dataclass(frozen=True, slots=True)
class Recall:
    """What bears on a question: facts in full, at most three earlier sessions, observations, and what was missing."""

    facts: tuple[Fact, ...] = ()
    recollections: tuple[Recollection, ...] = ()
    observations: tuple[Noticed, ...] = ()
    degraded: tuple[str, ...] = ()
    """Parts that did not answer: "embedder", "index", "store"."""
    trace: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a forget erased, counted from the stores afterwards (pitfall P25)."""

    facts: int = 0
    messages_redacted: int = 0
    summaries: int = 0
    summaries_anew: int = 0
    """How many of the summaries are of sessions that are still there: they are made anew from what remains."""
    observations: int = 0
    vectors: int = 0
    pending: int = 0
    backups: tuple[str, ...] = ()
    """Backup files that may still hold it, with the date they go."""
    texts: tuple[str, ...] = ()
    """What was forgotten, to be shown once and stored nowhere."""
    still_said: tuple[str, ...] = ()
    """Where the person's own explicit word still says it: "instructions", "reminders". They are told, and decide."""
    unfinished: tuple[str, ...] = ()
    """Stores that did not answer: "index", "disk", "recall". The rest is erased there as soon as they do."""


class FactRefused(Exception):  # noqa: N818 - it is an answer to a person, not a fault
    """A fact was not kept or changed. `reason`: "empty" (nothing left to keep), "full" (the budget), "gone" (no such
    fact here).
    """

    def __init__(self, reason: Literal["empty", "full", "gone"]) -> None:
        super().__init__(f"the fact was refused: {reason}")
        self.reason: Literal["empty", "full", "gone"] = reason


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What can be set of memory; the names are those of the section [memory]."""

    window: int = 12
    window_max: int = 24
    recall_sessions: int = 3
    facts_budget: int = 6000
    """Characters of facts in force that one owner may have."""
    recall_seconds: float = 1.5
    """After this long recall answers with what it has."""
    fusion: Method = "linear"
    """How the judgements of a message become one score; the default measured best (docs/adr/0019)."""
    refit: bool = False
    """Learn the weights of fusion from what people cite and confirm, where that does better on questions held out."""
    floor: float | None = None
    """Cosine below which nothing is recalled; None takes the embedder's own."""
    learn_after: float = 5.0
    """Seconds without a new turn before learning begins: ten quick replies are one summary."""
    observe_after: float = 20.0
    """Seconds of quiet after which one new message is looked through for observations; four are at once."""
    timezone: str = "UTC"
    """Of people who chose none (IANA): "until Friday" ends with their Friday."""
    backups_days: int = 7
    """After so many days a copy from before an upgrade goes."""


@dataclass(frozen=True, slots=True)
class Health:
    """One line of `merk doctor` and /healthz."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    done: int | None = None
    total: int | None = None
    """Of work that is under way."""
    code: str = ""
    """Names a `detail` that is often told, for whoever says it in another language."""
    count: float | None = None
    """The figure in it."""

    @classmethod
    def following(cls, name: str, waiting: int = 0, *, to: str = "do") -> "Health":
        """Of what follows the log: in step with it, or so much waiting `to` be done."""
        if waiting:
            return cls(name, ok=True, detail=f"{waiting} to {to}", code="to-do", count=waiting)
        return cls(name, ok=True, detail="in step", code="in-step")


__all__ = [
    "Audience",
    "Cited",
    "Fact",
    "FactRefused",
    "Found",
    "Health",
    "Lead",
    "MemorySettings",
    "Message",
    "Noticed",
    "ObservationRefused",
    "Origin",
    "Recall",
    "Receipt",
    "Recollection",
    "Remembered",
    "Reminder",
    "Role",
    "Scope",
    "Session",
    "SessionState",
    "User",
    "Utterance",
]
