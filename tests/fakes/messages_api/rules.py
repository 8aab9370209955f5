"""The script of a model: rules of who said what, newest first, and the replies they give. Both stand-ins use it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from tests.fakes.messages_api.scene import Scene
from tests.fakes.messages_api.wire import Json, dumps

Call = tuple[str, Json]


class Scripted(Protocol):
    """Anything that can be answered: it shows rules a scene."""

    @property
    def scene(self) -> Scene: ...


R = TypeVar("R", bound=Scripted)


@dataclass(frozen=True)
class Reply:
    """What the model says: thinking, then advice (asks the advisor tool), then text, then tool calls."""

    text: str = ""
    tools: tuple[Call, ...] = ()
    thinking: str | None = None
    advice: str | None = None
    stop_reason: str | None = None


Answer = Reply | str | Json | None


@dataclass(frozen=True)
class Match:
    """When a rule applies. Texts are regular expressions (searched, any case); None means "does not matter"."""

    user: str | None = None
    system: str | None = None
    model: str | None = None
    after_tool: bool | str | None = None
    has_tool: str | None = None
    background: bool | None = None

    def suits(self, scene: Scene) -> bool:
        return (
            all(
                pattern is None or re.search(pattern, text, re.IGNORECASE)
                for pattern, text in ((self.user, scene.user), (self.system, scene.system), (self.model, scene.model))
            )
            and self._suits_tools(scene)
            and self.background in (None, scene.is_background)
        )

    def _suits_tools(self, scene: Scene) -> bool:
        if self.has_tool is not None and self.has_tool not in scene.tools:
            return False
        match self.after_tool:
            case None:
                return True
            case bool():
                return self.after_tool is (scene.tool_result is not None)
            case pattern:
                return scene.tool_result is not None and bool(re.search(pattern, scene.tool_result, re.IGNORECASE))


@dataclass
class Rule(Generic[R]):
    """A reply under a condition, for `times` requests (None: for ever). `hits` counts those it answered."""

    match: Match
    answer: Reply | Callable[[R], Answer]
    times: int | None = None
    hits: int = 0

    def take(self, request: R) -> Reply | None:
        """The reply to this request, None if the rule has none for it."""
        if (self.times is not None and self.hits >= self.times) or not self.match.suits(request.scene):
            return None
        reply = self.answer if isinstance(self.answer, Reply) else as_reply(self.answer(request))
        if reply is not None:
            self.hits += 1
        return reply


def as_reply(answer: Answer) -> Reply | None:
    """A callable may answer with a Reply, a text, a JSON object, or None to pass the request on."""
    match answer:
        case None | Reply():
            return answer
        case str():
            return Reply(answer)
        case _:
            return Reply(dumps(answer))


@dataclass
class RuleBook(Generic[R]):
    rules: list[Rule[R]] = field(default_factory=list[Rule[R]])

    def take(self, request: R) -> Reply | None:
        """The reply of the newest rule that has one."""
        for rule in reversed(self.rules):
            if (reply := rule.take(request)) is not None:
                return reply
        return None

    def add(
        self,
        match: Match,
        text: str | None = None,
        *,
        tool: Call | None = None,
        tools: Sequence[Call] = (),
        json: Any = None,
        fn: Callable[[R], Answer] | None = None,
        thinking: str | None = None,
        advice: str | None = None,
        stop_reason: str | None = None,
        times: int | None = None,
    ) -> Rule[R]:
        """Add a rule.

        What `match` leaves open follows from the reply. A JSON reply answers background requests, a text or tool reply
        answers a person; neither answers a tool result (a rule that calls a tool would call it for ever). `fn` sees
        every request and returns None for those it leaves to older rules.
        """
        if fn is not None:
            rule = Rule(match, fn, times)
        else:
            said = dumps(json) if json is not None else text or ""
            calls = (*tools, tool) if tool is not None else tuple(tools)
            if not said and not calls:
                raise ValueError("a rule needs one of text, tool, tools, json and fn")
            reply = Reply(said, calls, thinking, advice, stop_reason)
            rule = Rule[R](_settle(match, is_json=json is not None), reply, times)
        self.rules.append(rule)
        return rule


def _settle(match: Match, *, is_json: bool) -> Match:
    return replace(
        match,
        after_tool=False if match.after_tool is None else match.after_tool,
        background=is_json if match.background is None else match.background,
    )
