"""A language model that follows a script: the fake of `LanguageModel` for everything that is not an adapter.

One rule: it is as strict as the real ones, so that a prompt no provider would take fails in a unit test.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from itertools import count

from bot.models.history import check_history
from memory.ports import (
    Billed,
    Failure,
    Finished,
    Json,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelTraits,
    StopReason,
    TextDelta,
    Tier,
    ToolCall,
    Usage,
)

TRAITS = ModelTraits("scripted", can_call_tools=True, can_follow_schema=True, context_tokens=200_000)
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Says:
    """An answer, shown word by word; with a `gate` it stops after the first word until the gate opens."""

    text: str
    stop: StopReason = StopReason.END
    gate: asyncio.Event | None = None
    billed: Billed | None = None
    """What it is billed as; None: its words, under the name of the scripted model."""
    stand_in: str = ""


@dataclass(frozen=True, slots=True)
class Calls:
    """Tool calls, after some words perhaps. `call` makes one; `gate` as for `Says`."""

    calls: tuple[ToolCall, ...]
    text: str = ""
    billed: Billed | None = None
    gate: asyncio.Event | None = None


@dataclass(frozen=True, slots=True)
class Fails:
    """An error, after `after` was shown."""

    failure: Failure
    after: str = ""
    retry_after: float | None = None
    is_of_model: bool = False


Answer = Says | Calls | Fails
Step = Answer | str | Json | Callable[[ModelRequest], Answer | str | Json]
"""A text, a JSON object for a request with a schema, an answer, or a function that makes one of the request."""


def call(name: str, **arguments: object) -> Calls:
    """One call of a tool, with an id of its own."""
    return Calls((ToolCall(f"call_{next(_numbers)}", name, arguments),))


class ScriptedModel:
    """Answers one step a request, then `always` if that is given. Nothing left to say is an AssertionError.

    `requests` are all requests so far, `abandoned` counts streams that were closed before their end. `names` are those
    of tiers that are served by models of their own.
    """

    def __init__(self, *script: Step, always: Step | None = None, traits: ModelTraits = TRAITS) -> None:
        self.script = list(script)
        self.always = always
        self.requests: list[ModelRequest] = []
        self.abandoned = 0
        self.is_closed = False
        self.names: dict[Tier, str] = {}
        self._traits = traits

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        return replace(self._traits, name=self.names.get(tier, self._traits.name))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        check_history(request.messages, may_end_answered=request.compacts)
        answer = self._next(request)
        try:
            for index, word in enumerate(_words(_shown(answer))):
                if index == 1 and isinstance(answer, Says | Calls) and answer.gate is not None:
                    await answer.gate.wait()
                await asyncio.sleep(0)
                yield TextDelta(word)
        except (GeneratorExit, asyncio.CancelledError):
            self.abandoned += 1
            raise
        if isinstance(answer, Fails):
            raise ModelError(
                answer.failure,
                "as the script says",
                retry_after=answer.retry_after,
                is_of_model=answer.is_of_model,
            )
        yield _finished(request, answer, self._traits.name)

    async def close(self) -> None:
        self.is_closed = True

    def _next(self, request: ModelRequest) -> Answer:
        step = self.script.pop(0) if self.script else self.always
        assert step is not None, f"the script has nothing for request {len(self.requests)}"
        if callable(step):
            step = step(request)
        if isinstance(step, dict):
            step = json.dumps(step, ensure_ascii=False)
        answer = Says(step) if isinstance(step, str) else step
        if isinstance(answer, Calls):
            offered = {tool.name for tool in request.tools if not request.must_answer}
            unknown = {each.name for each in answer.calls} - offered
            assert not unknown, f"the script calls {sorted(unknown)}, offered were {sorted(offered)}"
        if request.schema is not None and isinstance(answer, Says) and answer.stop is StopReason.END:
            json.loads(answer.text)  # a model that follows schemas answers nothing else
        return answer


def _shown(answer: Answer) -> str:
    if isinstance(answer, Says) and answer.stop is StopReason.REFUSED:
        return ""
    return answer.after if isinstance(answer, Fails) else answer.text


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*|\s+", text)


def _finished(request: ModelRequest, answer: Says | Calls, model: str) -> Finished:
    words = sum(len(_words(str(block))) for message in request.messages for block in message.blocks)
    usage = Usage(input=words, output=len(_words(answer.text)))
    if answer.billed is not None:
        model, usage = answer.billed.model, answer.billed.usage
    if isinstance(answer, Says):
        return Finished(answer.stop, _shown(answer), usage=usage, model=model, stand_in=answer.stand_in)
    raw: Json = {"type": "scripted", "ids": [each.id for each in answer.calls]}
    return Finished(StopReason.TOOLS, answer.text, answer.calls, usage, model, raw=(raw,))
