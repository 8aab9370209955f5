"""The stand-in for the Messages API against the real SDK: script, structured output, thinking, cache, compaction."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import Message, MessageParam, ToolParam
from anthropic.types.beta import BetaMessageParam
from hypothesis import given
from hypothesis.strategies import text
from pydantic import BaseModel

from tests.fakes.messages_api import MessagesApi, Reply, Request, newest_user, texts
from tests.fakes.messages_api.rules import Call
from tests.fakes.messages_api.stream import pieces

SONNET, HAIKU, OPUS = "claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5"
COMPACT = "compact-2026-09-04"
CLOCK: ToolParam = {"name": "clock", "input_schema": {"type": "object", "properties": {"zone": {"type": "string"}}}}
LONG = "A standing instruction that is long enough to be worth caching. " * 60


class Minute:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def minute() -> Minute:
    return Minute()


@pytest.fixture
async def api(minute: Minute) -> AsyncIterator[MessagesApi]:
    async with MessagesApi(clock=minute) as api:
        yield api
        assert api.violations == []


@pytest.fixture
async def client(api: MessagesApi) -> AsyncIterator[AsyncAnthropic]:
    # no certificates are needed on a loopback address, and loading them takes longer than the test
    http = DefaultAsyncHttpxClient(verify=False)
    async with AsyncAnthropic(api_key=api.key, base_url=api.base_url, max_retries=0, http_client=http) as client:
        yield client


def user(text: str) -> MessageParam:
    return {"role": "user", "content": text}


def result_of(call: str, text: str) -> MessageParam:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


async def ask(client: AsyncAnthropic, text: str = "hello", **more: Any) -> Message:
    more = {"model": SONNET, "max_tokens": 2_000, "messages": [user(text)]} | more
    return await client.messages.create(**more, stream=False)


async def test_without_a_rule_the_newest_text_block_is_echoed(api: MessagesApi, client: AsyncAnthropic) -> None:
    notes: MessageParam = {
        "role": "user",
        "content": [{"type": "text", "text": "notes"}, {"type": "text", "text": "hi"}],
    }
    answer = await ask(client, messages=[notes], system="Be brief.")
    assert (text_of(answer), answer.stop_reason) == ("Echo: hi", "end_turn")
    assert newest_user(api.requests[0]) == "hi"
    assert all(word in texts(api.requests[0]) for word in ("Be brief.", "notes", "hi"))
    assert (api.requests[0].end, api.requests[0].headers["anthropic-version"]) == ("complete", "2026-10-21")


async def test_a_stream_brings_the_same_message_in_small_pieces(client: AsyncAnthropic) -> None:
    kinds: list[str] = []
    words = "Grüße, 日本語 and 🐈 in a text of several pieces"
    async with client.messages.stream(model=SONNET, max_tokens=2_000, messages=[user(words)]) as answer:
        kinds = [event.type async for event in answer]
        final = await answer.get_final_message()
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert kinds.count("text") > 2
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert text_of(final) == f"Echo: {words}"
    assert final.usage.output_tokens > 0


@given(text())
def test_the_pieces_of_a_text_are_the_text(words: str) -> None:
    assert "".join(pieces(words)) == words


async def test_rules_answer_newest_first_and_as_often_as_told(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.on("weather").reply("always")
    once = api.on("WEATHER", system="poet", model="sonnet").reply("once", times=1)
    said = [text_of(await ask(client, "the weather?", system="You are a poet.")) for _ in range(2)]
    assert said == ["once", "always"]
    assert once.hits == 1
    assert text_of(await ask(client, "something else")) == "Echo: something else"


async def test_a_tool_is_called_once_and_its_result_answered(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.on("time", has_tool="clock").reply("Let me see.", tool=("clock", {"zone": "Europe/Berlin"}))
    history: list[MessageParam] = [user("what time is it?")]
    first = await ask(client, messages=history, tools=[CLOCK])
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    call = next(block for block in first.content if block.type == "tool_use")
    assert (call.input, first.stop_reason) == ({"zone": "Europe/Berlin"}, "tool_use")
    result: MessageParam = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "9 am"}],
    }
    history += [first.to_param(), result]
    assert text_of(await ask(client, messages=history, tools=[CLOCK])) == "Done."
    api.on(after_tool="9 am").reply("It is nine.")
    assert text_of(await ask(client, messages=history, tools=[CLOCK])) == "It is nine."
    assert "9 am" in texts(api.requests[-1])


async def test_streamed_tool_calls_arrive_whole(api: MessagesApi, client: AsyncAnthropic) -> None:
    calls: list[Call] = [("clock", {"zone": "Asia/Tokyo", "deep": {"list": [1, 2, "drei"]}}), ("clock", {})]
    api.on("time").reply(tools=calls)
    async with client.messages.stream(
        model=SONNET, max_tokens=2_000, messages=[user("time?")], tools=[CLOCK]
    ) as answer:
        final = await answer.get_final_message()
    assert [(block.name, block.input) for block in final.content if block.type == "tool_use"] == calls


async def test_a_function_sees_the_request_or_passes_it_on(api: MessagesApi, client: AsyncAnthropic) -> None:
    def count_words(request: Request) -> Reply | None:
        return Reply(f"{len(newest_user(request).split())} words") if "count" in newest_user(request) else None

    api.on().reply(fn=count_words)
    assert text_of(await ask(client, "count these words")) == "3 words"
    assert text_of(await ask(client, "hello")) == "Echo: hello"


async def test_a_failing_function_is_raised_where_the_stand_in_closes() -> None:
    def fail(request: Request) -> str:
        raise KeyError(request.number)

    stand_in = MessagesApi()
    await stand_in.__aenter__()
    stand_in.on().reply(fn=fail)
    async with AsyncAnthropic(api_key="test", base_url=stand_in.base_url, max_retries=0) as client:
        with pytest.raises(anthropic.InternalServerError):
            await ask(client)
    with pytest.raises(ExceptionGroup) as caught:
        await stand_in.__aexit__()
    assert isinstance(caught.value.exceptions[0], KeyError)


class Person(BaseModel):
    name: str


class Digest(BaseModel):
    title: str
    mood: str | None
    open_questions: list[str]
    people: list[Person]


async def digest(client: AsyncAnthropic) -> Digest:
    transcript = user("Summarise.\nAda: we should plant tomatoes\nBo: and where?")
    parsed = await client.messages.parse(model=HAIKU, max_tokens=2_000, messages=[transcript], output_format=Digest)
    assert parsed.parsed_output is not None
    return parsed.parsed_output


async def test_structured_output_fits_its_schema_and_speaks_of_what_was_said(
    api: MessagesApi, client: AsyncAnthropic
) -> None:
    api.on("tomatoes").reply("a rule for people does not answer background requests")
    plain = await digest(client)
    assert "plant tomatoes" in plain.title
    assert "and where?" in plain.open_questions[0]
    assert plain.people == []
    api.model.fills_lists = True
    assert len((await digest(client)).people) == 1
    api.on("tomatoes").reply(json={"title": "Garden", "mood": None, "open_questions": [], "people": []})
    assert (await digest(client)).title == "Garden"
    assert api.requests[0].scene.is_background


async def test_a_forced_tool_is_called_with_valid_input(client: AsyncAnthropic) -> None:
    answer = await ask(client, model=HAIKU, tools=[CLOCK], tool_choice={"type": "tool", "name": "clock"})
    assert [block.type for block in answer.content] == ["tool_use"]


async def test_output_ends_at_max_tokens_and_at_stop_sequences(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.on().reply("aaaa bbbb cccc dddd eeee")
    cut = await ask(client, max_tokens=27)
    assert (text_of(cut), cut.stop_reason, cut.usage.output_tokens) == ("aaaa bbbb cc", "max_tokens", 27)
    eaten = await ask(client, max_tokens=10)
    assert ([block.type for block in eaten.content], eaten.stop_reason) == (["thinking"], "max_tokens")
    stopped = await ask(client, stop_sequences=["dddd"])
    assert (text_of(stopped), stopped.stop_reason, stopped.stop_sequence) == (
        "aaaa bbbb cccc ",
        "stop_sequence",
        "dddd",
    )


async def test_thinking_is_bound_to_what_came_before(api: MessagesApi, client: AsyncAnthropic) -> None:
    """A changed system prompt is a 400 while old thinking is in the history, and fine without it."""
    first = await ask(client, "hello", system="Be brief.")
    history: list[Any] = [user("hello"), first.to_param(), user("and now?")]
    await ask(client, messages=history, system="Be brief.")
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        await ask(client, messages=history, system="Be kind.")
    api.violations.clear()
    binding: Any = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    dropped = await client.beta.messages.create(
        model=SONNET,
        max_tokens=2_000,
        messages=history,
        system="Be kind.",
        thinking=binding,
        betas=["thinking-binding-controls-2026-08-01"],
    )
    assert [entry.type for entry in dropped.input_transformations or ()] == ["thinking_dropped"]
    spoken: Any = {"role": "assistant", "content": [block for block in first.content if block.type == "text"]}
    await ask(client, messages=[history[0], spoken, history[2]], system="Be kind.")


async def test_an_open_tool_loop_keeps_its_thinking(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.on("time").reply(tool=("clock", {}))
    first = await ask(client, "time?", tools=[CLOCK])
    call = next(block for block in first.content if block.type == "tool_use")
    result = result_of(call.id, "9")
    bare: Any = {"role": "assistant", "content": [call]}
    with pytest.raises(anthropic.BadRequestError, match="Expected `thinking`"):
        await ask(client, messages=[user("time?"), bare, result], tools=[CLOCK])
    api.violations.clear()
    await ask(client, messages=[user("time?"), bare, result, user("thanks")], tools=[CLOCK])


async def test_a_cached_prefix_is_written_once_and_then_read(
    api: MessagesApi, client: AsyncAnthropic, minute: Minute
) -> None:
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    history: list[Any] = [user("hello " * 100)]
    more: dict[str, Any] = {"system": system, "tools": [CLOCK], "cache_control": {"type": "ephemeral"}}
    first = (await ask(client, messages=history, **more)).usage
    counted = await client.messages.count_tokens(model=SONNET, messages=history, **more)
    assert first.cache_creation is not None
    assert first.cache_creation.ephemeral_1h_input_tokens > 900
    assert first.cache_creation.ephemeral_5m_input_tokens > 100
    assert (first.cache_read_input_tokens, first.input_tokens) == (0, 0)
    assert first.cache_creation_input_tokens == counted.input_tokens
    history += [{"role": "assistant", "content": "hi"}, user("and more")]
    grown = (await ask(client, messages=history, **more)).usage
    assert grown.cache_read_input_tokens == counted.input_tokens
    minute.now += 301  # five minutes are over, the hour is not
    later = (await ask(client, messages=history, **more)).usage
    assert later.cache_read_input_tokens == first.cache_creation.ephemeral_1h_input_tokens
    more["tools"] = [CLOCK | {"description": "x"}]
    changed = (await ask(client, messages=history, **more)).usage
    assert changed.cache_read_input_tokens == 0
    assert len(api.counted) == 1


async def test_a_short_prefix_is_not_cached(client: AsyncAnthropic) -> None:
    for _ in range(2):
        usage = (await ask(client, cache_control={"type": "ephemeral"})).usage
        assert (usage.cache_creation_input_tokens, usage.cache_read_input_tokens) == (0, 0)


async def test_models_tell_their_window_and_what_they_can(api: MessagesApi, client: AsyncAnthropic) -> None:
    names = [model.id async for model in client.models.list(limit=5)]
    assert names == list(api.models)
    haiku = await client.models.retrieve(HAIKU)
    assert (haiku.max_input_tokens, haiku.max_tokens) == (1_000_000, 128_000)
    assert haiku.capabilities is not None
    assert haiku.capabilities.thinking.types.disabled.supported
    opus = await client.beta.models.retrieve(OPUS, betas=[COMPACT])
    assert opus.capabilities is not None
    assert opus.capabilities.compaction is not None
    assert opus.capabilities.compaction.supported


async def test_a_prompt_beyond_the_window_is_refused_without_blame(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.shrink(SONNET, 100)
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 100 maximum"):
        await ask(client, "word " * 200)
    assert (await client.models.retrieve(SONNET)).max_input_tokens == 100
    full = await ask(client, "x" * 250)
    assert full.stop_reason == "model_context_window_exceeded"


async def test_a_compaction_stands_for_what_it_replaced(api: MessagesApi, client: AsyncAnthropic) -> None:
    older: list[BetaMessageParam] = [
        {"role": "user", "content": "I like tomatoes"},
        {"role": "assistant", "content": "ok"},
    ]
    newest: BetaMessageParam = {"role": "user", "content": "what do I like?"}
    done = await client.beta.messages.create(
        model=OPUS, max_tokens=4_000, messages=older, betas=[COMPACT], compaction={"type": "summarize"}
    )
    assert (done.stop_reason, done.usage.input_tokens) == ("compaction", 0)
    assert [row.type for row in done.usage.iterations or ()] == ["compaction"]
    block = done.to_dict(mode="json", warnings=False)["content"]
    kept: Any = {"role": "assistant", "content": block}
    await client.beta.messages.create(model=OPUS, max_tokens=4_000, messages=[kept, newest], betas=[COMPACT])
    assert "I like tomatoes" in texts(api.requests[-1])
    forged: Any = {"role": "assistant", "content": [block[0] | {"content": "They like onions."}]}  # type: ignore[index]
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.beta.messages.create(model=OPUS, max_tokens=4_000, messages=[forged, newest], betas=[COMPACT])
    assert caught.value.error_code == "compaction_signature_invalid"
    nulls: Any = {"role": "assistant", "content": [entry.model_dump() for entry in done.content]}
    with pytest.raises(anthropic.BadRequestError, match="Extra inputs are not permitted"):
        await client.beta.messages.create(model=OPUS, max_tokens=4_000, messages=[nulls, newest], betas=[COMPACT])
    api.violations.clear()


@pytest.mark.parametrize("pauses", [True, False])
async def test_a_long_prompt_is_compacted_at_its_threshold(client: AsyncAnthropic, *, pauses: bool) -> None:
    edit: Any = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
    history: list[BetaMessageParam] = [{"role": "user", "content": "a long story " * 17_000}]
    async with client.beta.messages.stream(
        model=OPUS,
        max_tokens=4_000,
        messages=[*history, {"role": "assistant", "content": "I see."}, {"role": "user", "content": "And?"}],
        betas=["compact-2026-01-12"],
        context_management={"edits": [edit | {"pause_after_compaction": pauses}]},
    ) as answer:
        final = await answer.get_final_message()
    assert final.content[0].type == "compaction"
    assert final.stop_reason == ("compaction" if pauses else "end_turn")
    assert [row.type for row in final.usage.iterations or ()] == ["compaction", "message"][: 1 if pauses else 2]


async def test_advice_is_billed_apart(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.on("hard").reply("Thus.", advice="Split the problem.")
    advisor: Any = {"type": "advisor_20260301", "name": "advisor", "model": OPUS}
    question: BetaMessageParam = {"role": "user", "content": "a hard one"}
    first = await client.beta.messages.create(
        model=SONNET, max_tokens=4_000, messages=[question], tools=[advisor], betas=["advisor-tool-2026-03-01"]
    )
    assert [block.type for block in first.content][1:3] == ["server_tool_use", "advisor_tool_result"]
    assert [row.type for row in first.usage.iterations or ()] == ["message", "advisor_message"]
    await client.beta.messages.create(
        model=SONNET,
        max_tokens=4_000,
        messages=[question, first.to_param(), question],
        tools=[advisor],
        betas=["advisor-tool-2026-03-01"],
    )
