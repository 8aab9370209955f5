"""What happened, appended and never changed: ids and figures only, never a word of anybody's.

Rule: an event is a value that was checked when it was made; its class is the one place that says what it holds.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import telemetry_events

CODE_LENGTH = 120
_CODE = re.compile(r"[\w.:/@+-]{1,120}", re.ASCII)
_NO_CODE = re.compile(r"[^\w.:/@+-]+", re.ASCII)
_OWN_COLUMNS = frozenset(("user_id", "session_id"))


def code(text: str) -> str:
    """What a server calls a thing, as a code: whatever else stands in it becomes "_"."""
    return _NO_CODE.sub("_", text)[:CODE_LENGTH] or "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. A string is a code such as "unreachable": with a space in it, it raises ValueError."""

    name: ClassVar[str]
    user_id: int | None = None
    session_id: int | None = None

    def __post_init__(self) -> None:
        for key, hint in _hints(type(self)).items():
            if not _fits(getattr(self, key), hint):
                raise ValueError(f"telemetry takes ids, figures and codes, no text ({self.name}.{key})")

    def data(self) -> dict[str, Any]:
        """What is stored beside name, person and session: keys in camel case, as the API shows them."""
        return {key: getattr(self, name) for name, key in _keys(type(self)).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted(Event):
    """A model's turn came to its end, and whatever was made of it went to the person."""

    name = "chat.turn_completed"
    model: str
    outcome: Literal["answered", "stopped", "cut", "refused", "broken"]
    tokens_in: int
    tokens_out: int
    tokens_cache_read: int
    tokens_cache_write: int
    cost_nano_usd: int | None = None
    """1e-9 US dollars; null where the model has no known price."""
    duration_ms: int
    first_token_ms: int | None
    """From the turn's start; null where nothing was said."""
    recall_hits: int
    tool_calls: int
    inbox_id: int | None = None
    """The update that was answered: with it, the logged answer (messages.inbox_id) is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsed(Event):
    """A tool ran."""

    name = "chat.tool_used"
    tool_name: str
    duration_ms: int
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed(Event):
    """A turn was not answered as it should be: the model failed, or this program did ("bug")."""

    name = "chat.error"
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PtlRecovery(Event):
    """A prompt was too long and was tried shorter."""

    name = "chat.ptl_recovery"
    attempts: int
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecided(Event):
    """A person decided on a call that waits for a tap, or nobody did in time."""

    name = "chat.approval_decision"
    tool_name: str
    decision: Literal["allowed", "denied", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFired(Event):
    """The provider condensed the beginning of a long conversation."""

    name = "chat.compaction_fired"
    model: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAutoRouted(Event):
    """A model was chosen for a turn by what was asked."""

    name = "chat.model_auto_routed"
    selected_model: str
    tier: str
    reason: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMissing(Event):
    """A model is not there, or not for us, and another one answers in its place."""

    name = "chat.model_missing"
    model: str
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisorTriggered(Event):
    """A stronger model was asked for advice in the middle of a turn."""

    name = "chat.advisor_auto_triggered"
    trigger: str
    executor_model: str
    model: str
    tokens_in: int
    tokens_out: int
    cost_nano_usd: int | None = None
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReached(Event):
    """Most of a day's budget is spent, or all of it, or an owner lifted it for the day."""

    name = "budget.reached"
    whose: str
    step: Literal["warned", "stopped", "lifted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Event):
    """Messages were looked through for observations."""

    name = "memory.extraction"
    model: str
    trigger: str
    messages: int
    observations: int
    rejected: int
    tokens_in: int
    tokens_out: int
    cost_nano_usd: int | None = None
    duration_ms: int
    to_message: int = 0
    """The last of them: with it, what became of a message is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBroke(Event):
    """The stable beginning of a prompt was not found in the provider's cache, though it had been written."""

    name = "memory.cache_break"
    model: str
    reason: str
    tokens_cache_write: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised(Event):
    """A session was condensed."""

    name = "memory.summary"
    by: Literal["model", "extract"]
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuality(Event):
    """Recall was measured on a person's own chats: questions whose answers cited something were asked again."""

    name = "memory.recall_quality"
    questions: int
    recall_at_1: float | None
    recall_at_3: float | None
    recall_at_10: float | None
    updates: int
    update_precedence: float | None
    """Of what replaced something, how much is found before what it replaced."""
    judged: int
    rejected_share: float | None
    """Of the observations that the person judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgot(Event):
    """Something was erased for good."""

    name = "memory.forget"
    facts: int
    messages: int
    summaries: int
    observations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRan(Event):
    """What was too old went, counted in rows."""

    name = "memory.retention"
    telemetry: int
    messages: int
    observations: int = 0
    working_output: int
    summaries: int
    inbox: int
    outbox: int
    hooks: int = 0
    backups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportFault(Event):
    """A network did not take a message, or does not let messages in."""

    name = "transport.fault"
    transport: str
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed(Event):
    """Work in the background failed; it comes back."""

    name = "job.failed"
    job: str
    error: str
    attempts: int = 1


EVENTS: dict[str, type[Event]] = {
    each.name: each
    for each in (
        TurnCompleted,
        ToolUsed,
        TurnFailed,
        PtlRecovery,
        ApprovalDecided,
        CompactionFired,
        ModelAutoRouted,
        ModelMissing,
        AdvisorTriggered,
        BudgetReached,
        Extracted,
        CacheBroke,
        Summarised,
        RecallQuality,
        Forgot,
        RetentionRan,
        TransportFault,
        JobFailed,
    )
}
"""Every event there is, by name."""


async def record(connection: AsyncConnection, event: Event, now: int) -> None:
    """Append an event in the caller's transaction: it happened if and only if that is committed."""
    await record_all(connection, (event,), now)


async def record_all(connection: AsyncConnection, events: Iterable[Event], now: int) -> None:
    """Append several, in one trip."""
    rows = [
        {
            "name": event.name,
            "user_id": event.user_id,
            "session_id": event.session_id,
            "data": event.data(),
            "created_at": now,
        }
        for event in events
    ]
    if rows:
        await connection.execute(telemetry_events.insert(), rows)


def keys_of(kind: type[Event]) -> list[str]:
    """The keys of an event's data, in their order."""
    return list(_keys(kind).values())


@cache
def _keys(kind: type[Event]) -> dict[str, str]:
    return {each.name: _camel(each.name) for each in fields(kind) if each.name not in _OWN_COLUMNS}


@cache
def _hints(kind: type[Event]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kinds = get_args(hint) or (hint,)
    if value is None:
        return NoneType in kinds
    if isinstance(value, bool):
        return bool in kinds
    if isinstance(value, str):
        return str in kinds and _CODE.fullmatch(value) is not None
    if isinstance(value, float):
        return float in kinds and math.isfinite(value) and value >= 0
    return isinstance(value, int) and (int in kinds or float in kinds) and 0 <= value < 2**63
