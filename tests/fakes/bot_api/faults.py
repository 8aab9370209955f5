"""Trouble on order: refusals, floods, broken connections and slow answers, for chosen requests.

One rule: a fault changes how a request is answered, and whether it took effect is part of its kind.
"""

import asyncio
import re
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, get_args

from .errors import NOT_MODIFIED, BotApiError, Json, refuse, too_many_requests
from .world import World

FaultKind = Literal[
    "429",
    "500",
    "502",
    "parse",
    "thread_not_found",
    "blocked",
    "not_modified",
    "reset",  # connection broken before the request takes effect
    "hold",  # answered only after `seconds`, or after release() where seconds is None
    "reset_after",  # took effect, then the connection broke
    "timeout_after",  # took effect, no answer for `seconds`, then the connection breaks
    "custom",  # `code` and `text`
]
_REFUSALS: dict[str, tuple[int, str]] = {
    "500": (500, "Internal Server Error"),
    "502": (502, "Bad Gateway"),
    "parse": (400, "Can't parse entities: Can't find end tag corresponding to start tag \"b\""),
    "thread_not_found": (400, "message thread not found"),
    "blocked": (403, "bot was blocked by the user"),
    "not_modified": (400, NOT_MODIFIED),
}
_BARE = ("500", "502")  # these descriptions have no second half


@dataclass
class Fault:
    """Which requests (`method` is a regular expression, any case), how many after `skip`, and what happens to them.

    `times` None means for ever. `hits` counts the requests it struck.
    """

    kind: FaultKind
    method: str = ".*"
    times: int | None = 1
    skip: int = 0
    chat_id: int | None = None
    pattern: str | None = None  # on the text or caption
    retry_after: int = 1
    seconds: float | None = None
    code: int = 400
    text: str = "emulated failure"
    hits: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise ValueError(f"no fault {self.kind!r}: choose one of {', '.join(get_args(FaultKind))}")
        re.compile(self.method)

    def release(self) -> None:
        """Let held requests go on, and hold no more."""
        self.released.set()

    def strikes(self, method: str, params: Json) -> bool:
        """Say whether this request is struck, and count it."""
        text = str(params.get("text") or params.get("caption") or "")
        fits = (
            re.fullmatch(self.method, method, re.IGNORECASE) is not None
            and (self.chat_id is None or params.get("chat_id") == self.chat_id)
            and (self.pattern is None or re.search(self.pattern, text) is not None)
            and (self.times is None or self.hits < self.times)
        )
        if fits and self.skip > 0:
            self.skip -= 1
            return False
        self.hits += fits
        return fits

    async def wait(self) -> None:
        """Wait as long as a held request has to."""
        if self.seconds is None:
            await self.released.wait()
            return
        try:
            async with asyncio.timeout(self.seconds):
                await self.released.wait()
        except TimeoutError:
            return

    def refusal(self) -> BotApiError | None:
        """The error this fault answers with, if it is one of the answering kinds."""
        if self.kind == "429":
            return too_many_requests(self.retry_after)
        if self.kind == "custom":
            return refuse(self.text, self.code)
        if self.kind in _REFUSALS:
            code, text = _REFUSALS[self.kind]
            return BotApiError(code, text) if self.kind in _BARE else refuse(text, code)
        return None


@dataclass
class RateLimit:
    """At most `count` sends, edits, drafts and actions in `seconds`, for each chat or for all together."""

    count: int
    seconds: float
    per_chat: bool = True
    sent: dict[int | None, deque[float]] = field(default_factory=dict[int | None, deque[float]])

    def overrun(self, chat_id: int | None, now: float) -> float:
        """Seconds to wait before this request fits; 0 if it fits and is counted."""
        times = self.sent.setdefault(chat_id if self.per_chat else None, deque())
        while times and times[0] <= now - self.seconds:
            times.popleft()
        if len(times) >= self.count:
            return times[0] + self.seconds - now
        times.append(now)
        return 0.0


class Troubles:
    """The faults in force, the rate limit, and the floods the bot has been told about."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.faults: list[Fault] = []
        self.rate_limit: RateLimit | None = None
        self._flooded: dict[int | str, float] = {}  # chat id, or method where there is no chat -> monotonic time

    def check_flood(self, method: str, params: Json) -> None:
        """Raise 429 for a call that comes before an earlier retry_after is over (a violation) or above the rate."""
        now = time.monotonic()
        scope = _scope(method, params)
        remaining = self._flooded.get(scope, 0.0) - now
        if remaining > 0:
            self._world.violate("flood", method, f"called {remaining:.2f} s before retry_after was over ({scope})")
            raise too_many_requests(int(remaining) + 1)
        if self.rate_limit is not None and "chat_id" in params and not method.startswith("get"):
            overrun = self.rate_limit.overrun(params["chat_id"], now)
            if overrun > 0:
                raise self.told(method, params, too_many_requests(int(overrun) + 1))

    def told(self, method: str, params: Json, error: BotApiError) -> BotApiError:
        """Remember a 429 that goes out, so that an early repetition is noticed."""
        if error.parameters and "retry_after" in error.parameters:
            until = time.monotonic() + error.parameters["retry_after"]
            scope = _scope(method, params)
            self._flooded[scope] = max(until, self._flooded.get(scope, 0.0))
        return error

    def strike(self, method: str, params: Json) -> Fault | None:
        return next((fault for fault in self.faults if fault.strikes(method, params)), None)


def _scope(method: str, params: Json) -> int | str:
    return params.get("chat_id", method)
