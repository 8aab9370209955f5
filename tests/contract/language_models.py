"""The language models under contract, each with what makes it say, call or fail something. Add an adapter to RIGS.

One rule: a rig scripts the other side of an adapter and asserts nothing.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

from bot.models.anthropic import AnthropicModel
from bot.models.ollama import OllamaModel
from memory.ports import Failure, Json, LanguageModel, StopReason, Tier, ToolCall
from tests.fakes.messages_api import MessagesApi, texts
from tests.fakes.model import Calls, Fails, Says, ScriptedModel, Step
from tests.fakes.ollama_api import OllamaApi


class Rig(Protocol):
    """`faults` are the ways it can be made to fail before any text, with what they must be called.

    A rig that cannot be made to do something skips the test that asks for it.
    """

    name: ClassVar[str]
    faults: ClassVar[Mapping[str, Failure]]

    @property
    def model(self) -> LanguageModel: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    def say(self, text: str) -> None:
        """Answer the next requests with this, until another script."""
        ...

    def run_out(self, text: str) -> None:
        """Answer with a text that is too long for 1024 tokens."""
        ...

    def call(self, *calls: tuple[str, Json], then: str) -> None:
        """Call tools; after their results, say this."""
        ...

    def fill(self, value: Json) -> None:
        """Answer a request with a schema with this object."""
        ...

    def stall(self, text: str) -> None:
        """Say some of the text, then nothing more."""
        ...

    def break_off(self, text: str) -> None:
        """Say some of the text, then drop the connection."""
        ...

    def fail(self, kind: str) -> None: ...

    def shrink(self) -> None:
        """Leave a window of no more than 8192 tokens."""
        ...

    async def go_down(self) -> None: ...

    def heard(self) -> str:
        """All the text that the model saw in the newest request."""
        ...

    def count(self) -> int:
        """Requests that came in."""
        ...

    def was_left(self) -> bool:
        """Whether the newest request was given up by the client."""
        ...

    def complaints(self) -> list[str]:
        """What the other side found wrong with our requests."""
        ...


class AnthropicRig:
    name: ClassVar[str] = "anthropic"
    faults: ClassVar[Mapping[str, Failure]] = {
        "rate_limit": Failure.RATE,
        "overloaded": Failure.OVERLOADED,
        "server_error": Failure.OVERLOADED,
        "unauthorized": Failure.AUTH,
        "forbidden": Failure.AUTH,
        "billing": Failure.SPEND,
        "spend_limit": Failure.SPEND,
        "own_spend_limit": Failure.SPEND,
        "too_large": Failure.TOO_LONG,
        "too_long": Failure.TOO_LONG,
        "stale_thinking": Failure.BAD_REQUEST,
        "stream_error": Failure.OVERLOADED,
        "disconnect": Failure.CUT,
        "truncate": Failure.CUT,
        "malformed": Failure.CUT,
        "empty": Failure.CUT,
        "no_model": Failure.NO_MODEL,
    }

    def __init__(self) -> None:
        self.api = MessagesApi()
        self._forgives = 0

    async def __aenter__(self) -> Self:
        await self.api.__aenter__()
        self._model = AnthropicModel(
            api_key=self.api.key,
            base_url=self.api.base_url,
            models={Tier.DEFAULT: "claude-sonnet-5-5", Tier.SMALL: "claude-haiku-5-5"},
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._model.close()
        await self.api.__aexit__(*exc_info)

    @property
    def model(self) -> LanguageModel:
        return self._model

    def say(self, text: str) -> None:
        self.api.on(background=None).reply(fn=lambda _: text)

    def run_out(self, text: str) -> None:
        self.say(text)

    def call(self, *calls: tuple[str, Json], then: str) -> None:
        self.api.on(after_tool=True).reply(then)
        self.api.on().reply(tools=calls)

    def fill(self, value: Json) -> None:
        self.api.on().reply(json=value)

    def stall(self, text: str) -> None:
        self.say(text)
        self.api.fault("stall", after=2)

    def break_off(self, text: str) -> None:
        self.say(text)
        self.api.fault("disconnect", None, after=2)

    def fail(self, kind: str) -> None:
        if kind == "no_model":
            self.api.models.clear()
            self._forgives = 1  # the refusal is what was asked for
            return
        fault: Any = kind
        self.api.fault(fault, None, after=0, retry_after=0.01)

    def shrink(self) -> None:
        self.api.shrink("claude-sonnet-5-5", 8192)

    async def go_down(self) -> None:
        await self.api.__aexit__()

    def heard(self) -> str:
        return texts(self.api.requests[-1])

    def count(self) -> int:
        return len(self.api.requests)

    def was_left(self) -> bool:
        return bool(self.api.requests) and self.api.requests[-1].end == "client left"

    def complaints(self) -> list[str]:
        return [violation.message for violation in self.api.violations][self._forgives :]


class OllamaRig:
    name: ClassVar[str] = "ollama"
    faults: ClassVar[Mapping[str, Failure]] = {
        "busy": Failure.OVERLOADED,
        "server_error": Failure.OVERLOADED,
        "stream_error": Failure.CUT,
        "truncate": Failure.CUT,
        "disconnect": Failure.UNREACHABLE,
        "no_model": Failure.NO_MODEL,
    }

    def __init__(self) -> None:
        self.api = OllamaApi()

    async def __aenter__(self) -> Self:
        await self.api.__aenter__()
        self._model = OllamaModel(host=self.api.host, models={Tier.DEFAULT: "qwen3:8b"})
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._model.close()
        await self.api.__aexit__(*exc_info)

    @property
    def model(self) -> LanguageModel:
        return self._model

    def say(self, text: str) -> None:
        self.api.on().reply(fn=lambda _: text)

    def run_out(self, text: str) -> None:
        self.say(text)

    def call(self, *calls: tuple[str, Json], then: str) -> None:
        self.api.on(after_tool=True).reply(then)
        self.api.on().reply(tools=calls)

    def fill(self, value: Json) -> None:
        self.api.on().reply(json=value)

    def stall(self, text: str) -> None:
        self.say(text)
        self.api.fault("stall", after=2)

    def break_off(self, text: str) -> None:
        self.say(text)
        self.api.fault("disconnect", None, after=2)

    def fail(self, kind: str) -> None:
        if kind == "no_model":
            self.api.models.clear()
            return
        fault: Any = kind
        self.api.fault(fault, None, after=0)

    def shrink(self) -> None:
        """The adapter's own default is 8192."""

    async def go_down(self) -> None:
        await self.api.down()

    def heard(self) -> str:
        return self.api.requests[-1].texts()

    def count(self) -> int:
        return len(self.api.requests)

    def was_left(self) -> bool:
        return bool(self.api.requests) and self.api.requests[-1].end == "client left"

    def complaints(self) -> list[str]:
        return self.api.violations


class ScriptedRig:
    """The fake keeps the contract too, or unit tests would prove nothing."""

    name: ClassVar[str] = "scripted"
    faults: ClassVar[Mapping[str, Failure]] = {str(failure): failure for failure in Failure}

    def __init__(self) -> None:
        self._model = ScriptedModel()
        self._step: Step = "Echo."

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._model.close()

    @property
    def model(self) -> LanguageModel:
        return self._model

    def say(self, text: str) -> None:
        self._model.always = text

    def run_out(self, text: str) -> None:
        self._model.always = Says(text, stop=StopReason.LENGTH)

    def call(self, *calls: tuple[str, Json], then: str) -> None:
        made = tuple(ToolCall(f"id_{index}", name, arguments) for index, (name, arguments) in enumerate(calls))
        self._model.script[:] = [Calls(made), then]

    def fill(self, value: Json) -> None:
        self._model.always = value

    def stall(self, text: str) -> None:
        self._model.script[:] = [Says(text, gate=asyncio.Event())]

    def break_off(self, text: str) -> None:
        self._model.always = Fails(Failure.CUT, after=text)

    def fail(self, kind: str) -> None:
        self._model.always = Fails(Failure(kind))

    def shrink(self) -> None:
        self._model.always = Fails(Failure.TOO_LONG)

    async def go_down(self) -> None:
        self._model.always = Fails(Failure.UNREACHABLE)

    def heard(self) -> str:
        return str(self._model.requests[-1])

    def count(self) -> int:
        return len(self._model.requests)

    def was_left(self) -> bool:
        return self._model.abandoned == 1

    def complaints(self) -> list[str]:
        return []


RIGS: list[type[Rig]] = [AnthropicRig, OllamaRig, ScriptedRig]
