"""What can go wrong at the API, as data: errors instead of an answer, and answers that break on their way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from tests.fakes.messages_api.rules import Match
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.wire import Json, error_body

ErrorKind = Literal[
    "rate_limit",
    "overloaded",
    "server_error",
    "unauthorized",
    "forbidden",
    "not_found",
    "billing",
    "too_large",
    "too_long",
    "stale_thinking",
    "spend_limit",
    "own_spend_limit",
    "compaction_unavailable",
]
StreamKind = Literal[
    "stream_error",  # SSE `error` event (overloaded) after some deltas
    "disconnect",  # the socket dies after some deltas
    "truncate",  # the stream ends well-formed, but without message_stop
    "malformed",  # a chunk that is no JSON
    "empty",  # 200 and nothing
    "refusal",  # stop_reason "refusal", most of the text kept back
    "stall",  # some deltas, then silence for ever
    "slow_start",  # `seconds` before the first event
    "slow_chunks",  # `seconds` before each delta
]
FaultKind = ErrorKind | StreamKind
KINDS: Final = frozenset({*get_args(ErrorKind), *get_args(StreamKind)})
BREAKING: Final = frozenset({"stream_error", "disconnect", "truncate", "malformed", "stall"})
"""Kinds that end a stream before its message does."""

STALE_THINKING: Final = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
)
ERRORS: Final[Mapping[str, tuple[int, str, str | None]]] = {
    "rate_limit": (429, "This request would exceed the rate limit of your organization.", None),
    "overloaded": (529, "Overloaded", None),
    "server_error": (500, "Internal server error", None),
    "unauthorized": (401, "invalid x-api-key", None),
    "forbidden": (403, "Your API key does not have permission to use the specified resource.", None),
    "not_found": (404, "model: claude-none", None),
    "billing": (402, "Your credit balance is too low to access the API.", None),
    "too_large": (413, "Request exceeds the maximum size", None),
    "too_long": (400, "prompt is too long: 1048577 tokens > 1000000 maximum", None),
    "stale_thinking": (400, STALE_THINKING, None),
    "spend_limit": (429, "You have reached the monthly spend limit of your tier.", "enforced_spend_limit_reached"),
    "own_spend_limit": (400, "You have reached your specified API usage limits.", None),
    "compaction_unavailable": (529, "Compaction is temporarily unavailable.", "compaction_unavailable"),
}


@dataclass
class Fault:
    """One thing that goes wrong for `times` requests (None: for ever).

    `retry_after` in seconds goes with error kinds, `seconds` with slow ones, `after` is the number of deltas that still
    arrive before a stream breaks.
    """

    kind: FaultKind
    times: int | None = 1
    match: Match = field(default_factory=Match)
    retry_after: float | None = None
    seconds: float = 0.5
    after: int = 2
    hits: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; known are {', '.join(sorted(KINDS))}")

    @property
    def is_error(self) -> bool:
        return self.kind in ERRORS

    def error(self, request_id: str) -> tuple[int, Json, dict[str, str]]:
        """Status, body and headers of an error kind."""
        status, message, code = ERRORS[self.kind]
        headers = {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}
        return status, error_body(status, message, request_id, code=code), headers


def take_fault(faults: list[Fault], request: Request) -> Fault | None:
    """The newest fault that applies to this request, counted as used."""
    for fault in reversed(faults):
        if (fault.times is None or fault.hits < fault.times) and fault.match.suits(request.scene):
            fault.hits += 1
            return fault
    return None


def matching(match: Match | str | None) -> Match:
    """A match given as itself, or as a regular expression for the newest words of the user."""
    return match if isinstance(match, Match) else Match(user=match)
