"""Who answers while a provider does not."""

import pytest

from bot.models.fallback import LONG_REST_SECONDS, REST_SECONDS, FallbackModel, Provider
from memory.ports import (
    ChatMessage,
    Failure,
    Finished,
    ModelError,
    ModelRequest,
    ModelTraits,
    TextBlock,
    TextDelta,
    ToolResult,
    ToolSpec,
    complete,
)
from tests.fakes.histories import user
from tests.fakes.model import Fails, ScriptedModel, Step, call

ASK = ModelRequest((user("hi"),))
LOOK_UP = ToolSpec("look_up", "Looks up.", {"type": "object", "properties": {"q": {"type": "string"}}})
LOCAL = ModelTraits("qwen3", can_call_tools=True, can_follow_schema=True, context_tokens=8192)


class Seconds:
    """A clock of seconds that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


def pair(clock: Seconds, *script: Step) -> tuple[FallbackModel, ScriptedModel, ScriptedModel]:
    """Claude by a script, then "Claude"; behind it an Ollama that always answers."""
    first, second = ScriptedModel(*script, always="Claude"), ScriptedModel(always="Ollama", traits=LOCAL)
    model = FallbackModel([Provider("anthropic", "Claude", first), Provider("ollama", "Ollama", second)], clock)
    return model, first, second


@pytest.mark.parametrize(
    "failure", [Failure.OVERLOADED, Failure.UNREACHABLE, Failure.RATE, Failure.AUTH, Failure.SPEND]
)
async def test_the_next_one_answers_and_is_named(clock: Seconds, failure: Failure) -> None:
    """In the same turn; the answer says who it is from."""
    model, *_ = pair(clock, Fails(failure))
    finished = await complete(model, ASK)
    assert (finished.text, finished.stand_in) == ("Ollama", "Ollama (qwen3)")


@pytest.mark.parametrize("failure", [Failure.TOO_LONG, Failure.BAD_REQUEST, Failure.REFUSED, Failure.BUDGET])
async def test_a_request_that_is_at_fault_goes_to_nobody_else(clock: Seconds, failure: Failure) -> None:
    """It would fail there as well, or must not be tried elsewhere."""
    model, _, second = pair(clock, Fails(failure))
    with pytest.raises(ModelError) as raised:
        await complete(model, ASK)
    assert raised.value.failure is failure
    assert second.requests == []


@pytest.mark.parametrize(
    ("failed", "seconds"),
    [
        (Fails(Failure.OVERLOADED), REST_SECONDS),
        (Fails(Failure.RATE, retry_after=300.0), 300.0),
        (Fails(Failure.AUTH), LONG_REST_SECONDS),
    ],
)
async def test_a_provider_that_failed_rests(clock: Seconds, failed: Fails, seconds: float) -> None:
    """Nobody waits for it meanwhile, and prompts are made for the one that answers; then it is asked again."""
    model, first, _ = pair(clock, failed)
    await complete(model, ASK)
    clock.now = seconds - 1
    assert (await model.traits()).name == "qwen3"
    assert (await complete(model, ASK)).text == "Ollama"
    assert len(first.requests) == 1
    clock.now = seconds
    assert (await model.traits()).name == "scripted"
    finished = await complete(model, ASK)
    assert (finished.text, finished.stand_in) == ("Claude", "")


async def test_nobody_takes_over_after_the_first_word(clock: Seconds) -> None:
    """Two answers in one would be worse than half of one."""
    model, _, second = pair(clock, Fails(Failure.CUT, after="It is"))
    asking = model.stream(ASK)
    assert isinstance(await anext(asking), TextDelta)
    with pytest.raises(ModelError):
        [event async for event in asking]
    assert second.requests == []


async def test_where_all_fail_the_last_error_is_told_and_the_first_is_asked_again(clock: Seconds) -> None:
    """Somebody has to say what is wrong."""
    first, second = ScriptedModel(always=Fails(Failure.OVERLOADED)), ScriptedModel(always=Fails(Failure.UNREACHABLE))
    model = FallbackModel([Provider("anthropic", "Claude", first), Provider("ollama", "Ollama", second)], clock)
    for failure in (Failure.UNREACHABLE, Failure.OVERLOADED):
        with pytest.raises(ModelError) as raised:
            await complete(model, ASK)
        assert raised.value.failure is failure
    assert (len(first.requests), len(second.requests)) == (2, 1)


async def test_blocks_of_one_provider_are_never_shown_to_another(clock: Seconds) -> None:
    """Signatures of an open tool loop mean nothing elsewhere; their maker gets them back unchanged."""
    model, first, second = pair(clock, call("look_up", q="x"), "found", Fails(Failure.OVERLOADED))
    finished = await _with_tool(model)
    loop = _continued(finished)
    await complete(model, loop)
    assert first.requests[1].messages[1].raw == ({"type": "scripted", "ids": [finished.calls[0].id]},)
    assert (await complete(model, loop)).stand_in
    assert second.requests[0].messages[1].raw == ()
    assert second.requests[0].messages[1].blocks == loop.messages[1].blocks


async def _with_tool(model: FallbackModel) -> Finished:
    return await complete(model, ModelRequest((user("hi"),), tools=(LOOK_UP,)))


def _continued(finished: Finished) -> ModelRequest:
    results = tuple(ToolResult(each.id, each.name, "ok") for each in finished.calls)
    asked = ChatMessage("assistant", (TextBlock("one moment"), *finished.calls), raw=finished.raw)
    return ModelRequest((user("hi"), asked, ChatMessage("user", results)), tools=(LOOK_UP,))
