"""The simulated prompt cache: exact prefixes, written only at breakpoints, kept for 5 minutes or an hour."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.messages_api.catalogue import Spec
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.wire import Json, bare, blocks, canonical, dumps, mapping, mappings, weigh

LOOK_BACK: Final = 20  # blocks before a breakpoint that are tried for an older entry
SECONDS: Final = {"5m": 300.0, "1h": 3_600.0}
OF_MESSAGES: Final = ("thinking", "tool_choice", "output_config")  # a change of these loses the messages' cache


@dataclass(frozen=True)
class Segment:
    """One step of the prompt: its text, its tokens, and the lifetime of a breakpoint on it."""

    text: str
    tokens: int
    ttl: str | None = None


@dataclass(frozen=True)
class InputUsage:
    """How a prompt is billed, in tokens."""

    fresh: int
    read: int = 0
    written_5m: int = 0
    written_1h: int = 0

    @property
    def total(self) -> int:
        return self.fresh + self.read + self.written_5m + self.written_1h

    def body(self) -> Json:
        return {
            "input_tokens": self.fresh,
            "cache_creation_input_tokens": self.written_5m + self.written_1h,
            "cache_read_input_tokens": self.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.written_5m,
                "ephemeral_1h_input_tokens": self.written_1h,
            },
        }


@dataclass
class PromptCache:
    """Prefixes by hash, each with its end of life and its lifetime in seconds of `clock`."""

    clock: Callable[[], float] = time.monotonic
    entries: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def charge(self, request: Request, spec: Spec) -> InputUsage:
        """Bill the prompt of a request and keep what its breakpoints write."""
        prompt = segments(request)
        hashes, totals = _prefixes(request.model, prompt)
        points = [
            (end, segment.ttl)
            for end, segment in enumerate(prompt)
            if segment.ttl is not None and totals[end] >= spec.min_cached
        ]
        hit = self._longest_hit(hashes, [end for end, _ in points])
        read = totals[hit] if hit is not None else 0
        written = {"5m": 0, "1h": 0}
        reached = read
        for end, ttl in points:
            written[ttl] += max(0, totals[end] - reached)
            reached = max(reached, totals[end])
            self._keep(hashes[end], SECONDS[ttl])
        if hit is not None:
            self._refresh(hashes[: hit + 1])
        return InputUsage(totals[-1] - reached, read, written["5m"], written["1h"])

    def _longest_hit(self, hashes: Sequence[str], ends: Sequence[int]) -> int | None:
        candidates = {end - back for end in ends for back in range(LOOK_BACK + 1) if end >= back}
        return next((end for end in sorted(candidates, reverse=True) if self._is_alive(hashes[end])), None)

    def _is_alive(self, key: str) -> bool:
        entry = self.entries.get(key)
        return entry is not None and entry[0] > self.clock()

    def _keep(self, key: str, seconds: float) -> None:
        lifetime = max(seconds, self.entries[key][1]) if self._is_alive(key) else seconds
        self.entries[key] = (self.clock() + lifetime, lifetime)

    def _refresh(self, keys: Sequence[str]) -> None:
        for key in keys:
            if self._is_alive(key):
                self._keep(key, 0.0)


def segments(request: Request) -> list[Segment]:
    """The prompt in order: tools, system, messages (from the last threshold compaction on)."""
    found = [_segment("tool", tool) for tool in request.tools]
    found += [_segment("system", block) for block in blocks(request.body.get("system"))]
    mode = {name: request.body[name] for name in OF_MESSAGES if request.body.get(name) is not None}
    if mode:
        found.append(Segment(dumps(mode), 0))
    spoken = [
        _segment(str(message.get("role")), block)
        for message in visible(request)
        for block in blocks(message.get("content"))
    ]
    automatic = mapping(request.body.get("cache_control"))
    if automatic is not None and spoken and spoken[-1].ttl is None:
        spoken[-1] = Segment(spoken[-1].text, spoken[-1].tokens, str(automatic.get("ttl", "5m")))
    return [*found, *spoken]


def visible(request: Request) -> list[Json]:
    """The messages the model is shown: what a threshold compaction replaced and cleared system messages are not."""
    messages = request.messages
    starts = [
        index
        for index, message in enumerate(messages)
        if any(block.get("encrypted_content") is not None for block in blocks(message.get("content")))
    ]
    newest_user = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=0)
    return [
        message
        for index, message in enumerate(messages)
        if index >= max(starts, default=0)
        and not (message.get("clear_at") == "next_user_message" and index < newest_user)
    ]


def count(request: Request) -> int:
    """Tokens of the whole prompt."""
    return sum(segment.tokens for segment in segments(request))


def _segment(place: str, block: Json) -> Segment:
    mark = mapping(block.get("cache_control"))
    for part in mappings(block.get("content")):  # a breakpoint inside a tool result closes the whole block
        mark = mapping(part.get("cache_control")) or mark
    content: Any = block.get("content")
    plain = bare(block)
    if isinstance(content, list):
        plain["content"] = [bare(part) for part in mappings(content)]
    return Segment(place + canonical(plain), weigh(plain), str(mark.get("ttl", "5m")) if mark is not None else None)


def _prefixes(model: str, prompt: Sequence[Segment]) -> tuple[list[str], list[int]]:
    """Hash and size of the prefix that ends with each segment."""
    digest = hashlib.sha256(model.encode())
    hashes: list[str] = []
    totals: list[int] = []
    for segment in prompt:
        digest.update(f"\0{segment.text}".encode("utf-8", "surrogatepass"))
        hashes.append(digest.copy().hexdigest())
        totals.append((totals[-1] if totals else 0) + segment.tokens)
    return hashes, totals
