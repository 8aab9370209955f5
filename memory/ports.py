"""The interfaces that memory needs from outside; each has at least two adapters and one contract suite.

Everything here is plain data and protocols: no SDK object passes an adapter.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
Vector = NDArray[np.float32]
"""Shape (dimension,), L2-normalised."""


class Clock(Protocol):
    """The time of day, so that a test can own it."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        ...


# --- language models -------------------------------------------------------------------------


class Tier(StrEnum):
    """What a model is asked for; the adapter knows which of its models serves it."""

    SMALL = "small"
    DEFAULT = "default"
    SMART = "smart"
    ADVISOR = "advisor"
    """Whoever the answering model may consult."""


class Purpose(StrEnum):
    """What a model is called for: the bill is kept apart by it."""

    CHAT = "chat"
    ADVISOR = "advisor"
    SUMMARY = "summary"
    EXTRACTION = "extraction"
    CONSOLIDATION = "consolidation"


@dataclass(frozen=True, slots=True)
class Account:
    """To whom a call is charged. Background work belongs to nobody: it has a budget of its own."""

    purpose: Purpose = Purpose.CHAT
    user_id: int | None = None
    session_id: int | None = None


@dataclass(frozen=True, slots=True)
class TextBlock:
    text: str
    cache: bool = False
    """True ends a stable prefix: adapters that can cache put a breakpoint here."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    input: Json


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    name: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One side's part of a prompt. Tool results come first in a user message, text after them."""

    role: Literal["user", "assistant"]
    blocks: tuple[TextBlock | ToolCall | ToolResult, ...]
    raw: tuple[Json, ...] = ()
    """The provider's own blocks of an open tool loop (thinking, signatures): its adapter sends these instead."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a provider condensed the beginning of a conversation to."""

    text: str
    """For whoever cannot read the block."""
    block: Json
    """The provider's own; it goes back byte for byte, before all that was said since. Empty: there are only words."""
    model: str
    """Who made it: nobody else is shown the block."""


class Compaction(StrEnum):
    """How a model condenses the beginning of a long conversation, if it does."""

    NONE = "none"
    ON_DEMAND = "on_demand"
    """When a request asks for it: `ModelRequest.compacts`."""
    AT_THRESHOLD = "at_threshold"
    """By itself, in the midst of an answer: `Finished.compacted`."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as models see it: a flat JSON schema (Ollama drops nested properties)."""

    name: str
    description: str
    schema: Json


@dataclass(frozen=True, slots=True)
class ModelRequest:
    messages: tuple[ChatMessage, ...]
    system: tuple[TextBlock, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tier: Tier = Tier.DEFAULT
    max_tokens: int = 4096
    schema: Json | None = None
    """With a JSON schema the answer is one JSON object that fits it."""
    user_key: str | None = None
    """Opaque, stable, without personal data; for providers that want to tell end users apart."""
    account: Account = Account()
    must_answer: bool = False
    """`tools` are what was called so far; none may be called any more."""
    compacted: Compacted | None = None
    """Stands for all that was said before `messages`."""
    compacts: bool = False
    """Nothing is to be answered: condense all of it. `messages` may end with an answer."""
    follows: str = ""
    """`Finished.id` of the answer before, for providers that can say why nothing of its prompt was found again."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as billed. `input` excludes what was read from or written to a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """All that was written to a cache."""
    cache_write_1h: int = 0
    """The part of `cache_write` that is kept for an hour, which costs more."""


@dataclass(frozen=True, slots=True)
class Billed:
    """One line of a provider's bill."""

    model: str
    usage: Usage


class StopReason(StrEnum):
    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    """Cut by `max_tokens` or by the context window; the text is kept and said to be cut."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Always the last event of a stream that did not fail."""

    stop: StopReason
    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    raw: tuple[Json, ...] = ()
    """The assistant message in the provider's own blocks; see `ChatMessage.raw`."""
    compacted: Compacted | None = None
    """Stands for all that this answer answered, from now on."""
    billed: tuple[Billed, ...] = field(default=(), compare=False)
    """Line by line where a call was billed as several; empty: it is `model` and `usage`."""
    nano_usd: int | None = field(default=None, compare=False)
    """What all of it cost in 1e-9 US dollars; None where no price is known."""
    stand_in: str = ""
    """Who answered in the place of a provider that does not."""
    id: str = field(default="", compare=False)
    """What the provider calls this answer."""
    cache_miss: str = field(default="", compare=False)
    """Why the provider did not find again what it had of the prompt before, as its own code, where it says so."""
    missing: str = ""
    """The model that should have answered and is not to be had, where the person is to be told."""


ModelEvent = TextDelta | Finished


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What a model can do; asked once at start and cached."""

    name: str
    can_call_tools: bool
    can_follow_schema: bool
    """False: no structured answers worth having; summaries are extractive."""
    context_tokens: int
    facts_near_question: bool = False
    """True for small models: facts and recollections go into the newest user turn, beside the question."""
    compaction: Compaction = Compaction.NONE


class Failure(StrEnum):
    """Why a model call failed, in terms of what a person can do about it."""

    AUTH = "auth"
    SPEND = "spend"
    RATE = "rate"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    TOO_LONG = "too_long"
    CUT = "cut"
    """The stream broke off after it had begun."""
    REFUSED = "refused"
    BAD_REQUEST = "bad_request"
    NO_MODEL = "no_model"
    BUDGET = "budget"
    """Our own limit for the day; nothing was asked."""


class ModelError(Exception):
    """A model call failed. `detail` is for the log, never for a chat.

    `excess` is how many times too long the prompt was (TOO_LONG), where that is known. `is_of_model`: another model of
    the same provider may answer, for this one is not there, or not for us.
    """

    def __init__(
        self,
        failure: Failure,
        detail: str,
        *,
        retry_after: float | None = None,
        excess: float | None = None,
        is_of_model: bool = False,
    ) -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.detail = detail
        self.retry_after = retry_after
        self.excess = excess
        self.is_of_model = is_of_model


class LanguageModel(Protocol):
    """A provider of answers.

    `stream` yields `TextDelta`s and ends with exactly one `Finished`; it raises `ModelError` and nothing else.
    Closing the generator stops the generation. Retries before the first delta are the adapter's; after it there
    are none.
    """

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]: ...

    async def close(self) -> None: ...


async def complete(model: LanguageModel, request: ModelRequest) -> Finished:
    """Run a request to its end. Raises `ModelError`."""
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event
    raise ModelError(Failure.CUT, "the stream ended without a result")


# --- embedders and indexes ---------------------------------------------------------------------


class EmbedderError(Exception):
    """The embedder cannot answer now; recall degrades to words."""


class Embedder(Protocol):
    """Texts to vectors. `name` and `dimension` name the collections: another pair is another index.

    Raises `EmbedderError`. Empty or blank text is refused with ValueError: it has no meaning to embed.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def floor(self) -> float:
        """Cosine below which a recollection is noise, calibrated for this model."""
        ...

    async def embed_query(self, text: str) -> Vector: ...

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One vector of one owner. `owner` is the composite scope key (memory.scope); never any text."""

    id: str
    owner: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class VectorHit:
    id: str
    owner: str
    cosine: float


class VectorIndex(Protocol):
    """Nearest vectors within given owners. Derived data: it may be lost at any time and is rebuilt from SQL.

    An empty `owners` is refused with ValueError: there is no unscoped query (pitfall P28).
    """

    async def open(self) -> None:
        """Open or create the index. Raises OSError when the directory cannot be used."""
        ...

    async def upsert(self, rows: Sequence[VectorRow]) -> None: ...

    async def query(self, owners: Sequence[str], vector: Vector, limit: int) -> list[VectorHit]:
        """Return at most `limit` hits, best first."""
        ...

    async def query_other(
        self, name: str, dimension: int, owners: Sequence[str], vector: Vector, limit: int
    ) -> list[VectorHit]:
        """As `query`, among the vectors of another embedder, so far as they are still there."""
        ...

    async def drop_others(self) -> None:
        """Remove the vectors of other embedders, from the disk too."""
        ...

    async def delete(self, owner: str, ids: Sequence[str]) -> int:
        """Remove rows; return how many were there."""
        ...

    async def ids(self, owner: str) -> set[str]: ...

    async def count(self) -> int: ...

    async def erase_residue(self) -> None:
        """Remove from disk what deletes left behind, so that no forgotten vector can be read from a file."""
        ...

    async def close(self) -> None: ...
