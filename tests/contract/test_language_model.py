"""What every language model must do, whoever provides it. `language_models` lists them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from memory.ports import (
    ChatMessage,
    Failure,
    Finished,
    Json,
    ModelError,
    ModelEvent,
    ModelRequest,
    StopReason,
    TextBlock,
    TextDelta,
    Tier,
    ToolResult,
    ToolSpec,
    complete,
)
from tests.contract.language_models import RIGS, Rig
from tests.fakes.histories import assistant, tool_round, user
from tests.waiting import until

LONG = "Grüße aus Köln 🎉, wie geht es dir heute? " * 6
SCHEMA: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["city", "facts"],
    "additionalProperties": False,
}
LOOK_UP = ToolSpec(
    "look_up",
    "Looks something up.",
    {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False},
)
REMIND = ToolSpec("remind", "Reminds.", {"type": "object", "properties": {"when": {"type": "string"}}, "required": []})
TOOLS = (REMIND, LOOK_UP)
ASK = ModelRequest((user("What about Köln?"),), system=(TextBlock("Be brief.", cache=True),), tools=TOOLS)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.models.anthropic._RETRY_AFTER_SECONDS", 0.0)


@pytest.fixture(params=RIGS, ids=lambda rig: rig.name)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """An adapter whose other side has nothing to complain of afterwards."""
    make: type[Rig] = request.param
    async with make() as rig:
        yield rig
        assert rig.complaints() == []


async def run(rig: Rig, request: ModelRequest = ASK) -> tuple[list[ModelEvent], ModelError | None]:
    events: list[ModelEvent] = []
    try:
        async with aclosing(rig.model.stream(request)) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 (what came before an error is part of the result)
    except ModelError as err:
        return events, err
    return events, None


def shown(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_an_answer_is_deltas_and_then_one_result(rig: Rig) -> None:
    """The deltas make the text of the result, to the letter."""
    rig.say(LONG)
    events, err = await run(rig)
    assert err is None
    assert [type(event) for event in events[:-1]] == [TextDelta] * (len(events) - 1)
    assert len(events) > 3
    result = events[-1]
    assert isinstance(result, Finished)
    assert (result.stop, result.text, result.calls) == (StopReason.END, LONG, ())
    assert shown(events) == LONG
    assert result.model
    assert result.usage.output > 0
    assert result.usage.input + result.usage.cache_read + result.usage.cache_write > 0


async def test_the_model_sees_all_it_is_told(rig: Rig) -> None:
    """System, history and question."""
    rig.say("Yes.")
    history = (user("I am Ada."), assistant("Noted."), user("Who am I?"))
    await complete(rig.model, ModelRequest(history, system=(TextBlock("Be brief."), TextBlock("Ada has a cat."))))
    heard = rig.heard()
    assert all(words in heard for words in ("Be brief.", "Ada has a cat.", "I am Ada.", "Noted.", "Who am I?"))


async def test_tools_are_called_and_answered(rig: Rig) -> None:
    """Two calls in one answer, their results in another order, the provider's own blocks sent back."""
    rig.call(("look_up", {"q": "Köln"}), ("remind", {"when": "09:00"}), then="It has a cathedral.")
    first = await complete(rig.model, ASK)
    assert first.stop is StopReason.TOOLS
    assert [(call.name, call.input) for call in first.calls] == [
        ("look_up", {"q": "Köln"}),
        ("remind", {"when": "09:00"}),
    ]
    asked = ChatMessage("assistant", (TextBlock(first.text), *first.calls), raw=first.raw)
    results = [ToolResult(call.id, call.name, f"result of {call.name}") for call in reversed(first.calls)]
    request = ModelRequest((*ASK.messages, asked, ChatMessage("user", tuple(results))), ASK.system, TOOLS)
    second = await complete(rig.model, request)
    assert (second.stop, second.text) == (StopReason.END, "It has a cathedral.")
    assert "result of look_up" in rig.heard()
    assert "result of remind" in rig.heard()


async def test_stubs_of_finished_tool_rounds_are_accepted(rig: Rig) -> None:
    """Stored history: no blocks of the provider, results of one line, errors, blank text, two in a row."""
    rig.say("Fine.")
    failed = ChatMessage("user", (ToolResult("call_2", "remind", "no such time", is_error=True), TextBlock("Oh.")))
    history = (
        user("hi"),
        *tool_round("look_up", {"q": "x"}, "(looked up: 3 lines)"),
        ChatMessage("assistant", (TextBlock("Here."), TextBlock(" "))),
        user("and"),
        user("remind me"),
        *tool_round("remind", {"when": "25:00"}, "", call_id="call_2")[:1],
        failed,
        assistant("That time does not exist."),
        user("All right?"),
    )
    result = await complete(rig.model, ModelRequest(history, tools=TOOLS))
    assert result.text == "Fine."
    result = await complete(rig.model, ModelRequest(history))
    assert result.text == "Fine.", "also when the tools are not offered any more"


async def test_a_schema_makes_the_answer_one_object(rig: Rig) -> None:
    """That fits it."""
    rig.fill({"city": "Köln", "facts": ["has a cathedral"]})
    result = await complete(rig.model, ModelRequest((user("Extract."),), schema=SCHEMA, tier=Tier.SMALL))
    assert json.loads(result.text) == {"city": "Köln", "facts": ["has a cathedral"]}


async def test_an_answer_that_runs_out_of_tokens_is_cut_and_kept(rig: Rig) -> None:
    """With its text, as far as it came."""
    rig.run_out("Never ending. " * 500)
    events, err = await run(rig, ModelRequest((user("Tell me all."),), max_tokens=1024))
    assert err is None
    result = events[-1]
    assert isinstance(result, Finished)
    assert result.stop is StopReason.LENGTH
    assert result.text
    assert shown(events) == result.text


async def test_closing_the_stream_stops_the_request(rig: Rig) -> None:
    """The other side sees it, and the model is free for the next."""
    rig.stall(LONG)
    stream = rig.model.stream(ASK)
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()
    await until(rig.was_left, 5)
    rig.say("Next.")
    assert (await complete(rig.model, ASK)).text == "Next."


async def test_cancelling_the_task_stops_the_request(rig: Rig) -> None:
    """As when the bot is stopped."""
    rig.stall(LONG)
    task = asyncio.create_task(complete(rig.model, ASK))
    await until(lambda: rig.count() == 1, 5)
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(rig.was_left, 5)


async def test_requests_at_the_same_time_all_end(rig: Rig) -> None:
    """In whichever order."""
    rig.say("Yes.")
    results = await asyncio.gather(*(complete(rig.model, ASK) for _ in range(3)))
    assert [result.text for result in results] == ["Yes."] * 3


@pytest.mark.parametrize(
    ("make", "kind"), [pytest.param(make, kind, id=f"{make.name}-{kind}") for make in RIGS for kind in make.faults]
)
async def test_every_fault_has_its_failure(make: type[Rig], kind: str) -> None:
    """It is a `ModelError`, nothing was shown, and its detail quotes no prompt."""
    async with make() as rig:
        rig.fail(kind)
        events, err = await run(rig, ModelRequest((user("My secret is Köln."),), tools=TOOLS))
        assert events == []
        assert err is not None
        assert err.failure is make.faults[kind]
        assert "Köln" not in err.detail
        assert rig.complaints() == []


async def test_p32_a_stream_that_breaks_off_is_not_asked_for_again(rig: Rig) -> None:
    """What was shown was shown: the rest is an error."""
    rig.break_off(LONG)
    events, err = await run(rig)
    assert shown(events)
    assert LONG.startswith(shown(events).rstrip())
    assert err is not None
    assert err.failure is Failure.CUT
    assert rig.count() == 1


async def test_a_server_that_is_gone_is_unreachable(rig: Rig) -> None:
    """Both when it was there before and when it never was."""
    rig.say("Yes.")
    await complete(rig.model, ASK)
    await rig.go_down()
    events, err = await run(rig)
    assert events == []
    assert err is not None
    assert err.failure is Failure.UNREACHABLE


async def test_a_prompt_beyond_the_window_is_too_long(rig: Rig) -> None:
    """And not cut without a word."""
    rig.shrink()
    events, err = await run(rig, ModelRequest((user("many words " * 6000),)))
    assert events == []
    assert err is not None
    assert err.failure is Failure.TOO_LONG


@pytest.mark.parametrize(
    "messages",
    [(), (assistant("hi"),), (user(" "),), (user("hi"), *tool_round("look_up", {}, "x")[:1], user("so?"))],
    ids=["empty", "assistant last", "blank", "p56 unanswered call"],
)
async def test_a_broken_history_is_a_bad_request(rig: Rig, messages: tuple[ChatMessage, ...]) -> None:
    """The other side never sees it (the fake writes it down)."""
    events, err = await run(rig, ModelRequest(messages))
    assert events == []
    assert err is not None
    assert err.failure is Failure.BAD_REQUEST
    assert rig.count() == (1 if rig.name == "scripted" else 0)


async def test_traits_name_the_model_and_its_window(rig: Rig) -> None:
    """The same every time, for every tier."""
    for tier in Tier:
        traits = await rig.model.traits(tier)
        assert traits == await rig.model.traits(tier)
        assert traits.name
        assert traits.context_tokens >= 2048
    assert rig.count() == 0
