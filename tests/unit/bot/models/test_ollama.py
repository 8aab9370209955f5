"""The Ollama adapter against answers byte for byte: what it sends, and what it makes of all that comes back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from structlog.testing import capture_logs

from bot.models.ollama import OllamaModel, find_ollama, installed_models
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
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from tests.fakes.canned_http import Canned, CannedServer
from tests.fakes.histories import assistant, tool_round, user

CHAT, SHOW, TAGS = "/api/chat", "/api/show", "/api/tags"
MODELS = {Tier.DEFAULT: "qwen3:8b"}
ASK = ModelRequest((user("hi"),))
SCHEMA: Json = {"type": "object", "properties": {"q": {"type": "string", "description": "what"}}, "required": ["q"]}
LOOK_UP = ToolSpec("look_up", "Looks things up.", SCHEMA)


def part(content: str = "", *, calls: list[Json] | None = None, **rest: object) -> bytes:
    message = {"role": "assistant", "content": content} | ({"tool_calls": calls} if calls else {})
    return json.dumps({"model": "qwen3:8b", "message": message, "done": False} | rest).encode() + b"\n"


def done(reason: str = "stop", *, prompt: int = 12) -> bytes:
    return part(done=True, done_reason=reason, prompt_eval_count=prompt, eval_count=3)


def shown(*capabilities: str, size: str = "8.2B", context: int = 40_960, family: str = "qwen3") -> Canned:
    body: Json = {
        "capabilities": ["completion", *capabilities],
        "details": {"parameter_size": size, "family": family},
        "model_info": {"general.architecture": family, f"{family}.context_length": context, "clip.context_length": 77},
    }
    return Canned(json.dumps(body).encode())


def error(status: int, message: str) -> Canned:
    return Canned(json.dumps({"error": message}).encode(), status)


@pytest.fixture
async def server() -> AsyncIterator[CannedServer]:
    async with CannedServer({SHOW: [shown("tools")], CHAT: [Canned(part("ok") + done())]}) as server:
        yield server


@pytest.fixture
async def model(server: CannedServer) -> AsyncIterator[OllamaModel]:
    model = OllamaModel(host=server.url, models=MODELS)
    yield model
    await model.close()


async def run(model: OllamaModel, request: ModelRequest) -> tuple[list[ModelEvent], ModelError | None]:
    events: list[ModelEvent] = []
    try:
        async with aclosing(model.stream(request)) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 (what came before an error is part of the result)
    except ModelError as err:
        return events, err
    return events, None


async def finish(model: OllamaModel, request: ModelRequest = ASK) -> Finished:
    events, err = await run(model, request)
    assert err is None
    assert isinstance(events[-1], Finished)
    return events[-1]


async def fail(model: OllamaModel, request: ModelRequest = ASK) -> ModelError:
    _, err = await run(model, request)
    assert err is not None
    return err


async def sent(server: CannedServer, model: OllamaModel, request: ModelRequest) -> Json:
    await finish(model, request)
    return server.bodies(CHAT)[-1]


# --- what is sent ----------------------------------------------------------------------------------


async def test_the_window_is_always_stated(server: CannedServer, model: OllamaModel) -> None:
    """Left alone Ollama takes what its video memory allows."""
    body = await sent(server, model, ModelRequest((user("hi"),), max_tokens=100))
    assert body["options"] == {"num_ctx": 8192, "num_predict": 100}
    assert (body["model"], body["keep_alive"], body["stream"]) == ("qwen3:8b", "30m", True)
    assert not body.get("tools")
    assert "format" not in body


@pytest.mark.parametrize(
    ("capabilities", "family", "think"),
    [((), "llama", None), (("thinking",), "qwen3", False), (("thinking",), "gptoss", "low")],
)
async def test_thinking_is_turned_off_where_there_is_any(
    server: CannedServer, model: OllamaModel, capabilities: tuple[str, ...], family: str, think: bool | str | None
) -> None:
    """Where there is none the word alone is an error; gpt-oss only thinks less."""
    server.routes[SHOW] = [shown(*capabilities, family=family)]
    assert (await sent(server, model, ASK)).get("think") == think


async def test_a_history_becomes_the_messages_of_ollama(server: CannedServer, model: OllamaModel) -> None:
    """One system message; results by name and in the order of their calls, then the text."""
    calls = (ToolCall("a", "look_up", {"q": "x"}), ToolCall("b", "remember", {"q": "y"}))
    results = (ToolResult("b", "remember", "no", is_error=True), ToolResult("a", "look_up", ""), TextBlock("and?"))
    history = (user("hi"), ChatMessage("assistant", (TextBlock("Well."), *calls)), ChatMessage("user", results))
    request = ModelRequest(history, system=(TextBlock("Be brief."), TextBlock(" "), TextBlock("Facts.", cache=True)))
    body = await sent(server, model, request)
    assert body["messages"] == [
        {"role": "system", "content": "Be brief.\n\nFacts."},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "Well.",
            "tool_calls": [
                {"function": {"name": "look_up", "arguments": {"q": "x"}}},
                {"function": {"name": "remember", "arguments": {"q": "y"}}},
            ],
        },
        {"role": "tool", "tool_name": "look_up", "content": "(nothing)"},
        {"role": "tool", "tool_name": "remember", "content": "Error: no"},
        {"role": "user", "content": "and?"},
    ]


async def test_tools_go_only_to_models_that_list_them(server: CannedServer, model: OllamaModel) -> None:
    """Others refuse the request; they are told the results in words."""
    request = ModelRequest((user("hi"), *tool_round("look_up", {"q": "x"}, "42"), user("and?")), tools=(LOOK_UP,))
    body = await sent(server, model, request)
    parameters = body["tools"][0]["function"]["parameters"]
    assert (parameters["properties"], parameters["required"]) == (SCHEMA["properties"], ["q"])
    server.routes[SHOW] = [shown()]
    other = OllamaModel(host=server.url, models={Tier.DEFAULT: "gemma:2b"})
    body = await sent(server, other, request)
    await other.close()
    assert not body.get("tools")
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("user", "hi"),
        ("user", "look_up: 42"),
        ("user", "and?"),
    ]


async def test_a_nested_tool_schema_is_refused(server: CannedServer, model: OllamaModel) -> None:
    """The client would forget its inner half without a word."""
    nested: Json = {"type": "object", "properties": {"when": {"type": "object", "properties": {}}}}
    err = await fail(model, ModelRequest((user("hi"),), tools=(ToolSpec("remind", "Reminds.", nested),)))
    assert err.failure is Failure.BAD_REQUEST
    assert "remind" in err.detail
    assert server.bodies(CHAT) == []


async def test_a_schema_binds_the_sampler_and_is_told(server: CannedServer, model: OllamaModel) -> None:
    """`format` alone does not tell a model what the fields mean."""
    body = await sent(server, model, ModelRequest((user("hi"),), schema=SCHEMA))
    assert body["format"] == SCHEMA
    assert json.dumps(SCHEMA) in body["messages"][0]["content"]


async def test_a_prompt_beyond_the_window_is_never_sent(server: CannedServer, model: OllamaModel) -> None:
    """Ollama would cut its oldest part without a word."""
    err = await fail(model, ModelRequest((user("word " * 6000),)))
    assert err.failure is Failure.TOO_LONG
    assert "8192" in err.detail
    assert server.bodies(CHAT) == []
    server.routes[SHOW] = [shown(context=2048)]
    small = OllamaModel(host=server.url, models=MODELS)
    assert (await fail(small, ModelRequest((user("word " * 2000),)))).failure is Failure.TOO_LONG
    await small.close()


async def test_a_prompt_that_fills_the_window_is_told_to_the_log(server: CannedServer, model: OllamaModel) -> None:
    """The guess was too low, so the beginning may be gone."""
    server.routes[CHAT] = [Canned(part("ok") + done(prompt=8100))]
    with capture_logs() as logs:
        await finish(model)
    assert [(entry["event"], entry["tokens"]) for entry in logs] == [("prompt_fills_num_ctx", 8100)]


async def test_a_broken_history_is_never_sent(server: CannedServer, model: OllamaModel) -> None:
    """See test_history."""
    assert (await fail(model, ModelRequest((assistant("hi"),)))).failure is Failure.BAD_REQUEST
    assert server.seen == []


async def test_half_a_character_is_a_bad_request(model: OllamaModel) -> None:
    """And not a server that is down."""
    assert (await fail(model, ModelRequest((user("\ud83d"),)))).failure is Failure.BAD_REQUEST


async def test_one_request_at_a_time(server: CannedServer, model: OllamaModel) -> None:
    """The second waits for the first, also when that is given up."""
    server.routes[CHAT] = [Canned(part("Half"), hangs=True), Canned(part("ok") + done())]
    first = model.stream(ASK)
    assert await anext(first) == TextDelta("Half")
    second = asyncio.create_task(finish(model))
    await asyncio.sleep(0.05)
    assert len(server.bodies(CHAT)) == 1
    await first.aclose()
    assert (await second).text == "ok"
    await server.left.wait()


async def test_a_finished_answer_holds_nobody_up(model: OllamaModel) -> None:
    """Also when whoever asked does not come back for the end of the stream."""
    stream = model.stream(ASK)
    while not isinstance(await anext(stream), Finished):
        pass
    assert (await finish(model)).text == "ok"
    await stream.aclose()


# --- what comes back -------------------------------------------------------------------------------


async def test_deltas_then_one_result_with_usage(server: CannedServer, model: OllamaModel) -> None:
    """Parts without text are no deltas."""
    server.routes[CHAT] = [Canned(part("Hello") + part() + part(" there") + done())]
    events, _ = await run(model, ASK)
    result = Finished(StopReason.END, "Hello there", usage=Usage(input=12, output=3), model="qwen3:8b")
    assert events == [TextDelta("Hello"), TextDelta(" there"), result]


async def test_calls_get_ids_of_our_own(server: CannedServer, model: OllamaModel) -> None:
    """No two are the same: they are kept with the history."""
    call: Json = {"function": {"name": "look_up", "arguments": {"q": "x"}}}
    server.routes[CHAT] = [Canned(part("Well.", calls=[call]) + part(calls=[call]) + done())]
    finished = await finish(model, ModelRequest((user("hi"),), tools=(LOOK_UP,)))
    assert finished.stop is StopReason.TOOLS
    assert [(each.name, each.input) for each in finished.calls] == [("look_up", {"q": "x"})] * 2
    assert len({each.id for each in finished.calls}) == 2


async def test_an_answer_that_ran_out_of_room_is_cut(server: CannedServer, model: OllamaModel) -> None:
    """Its text is kept."""
    server.routes[CHAT] = [Canned(part("Half") + done("length"))]
    finished = await finish(model)
    assert (finished.stop, finished.text) == (StopReason.LENGTH, "Half")


# --- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("canned", "failure"),
    [
        (error(404, 'model "qwen3:8b" not found'), Failure.NO_MODEL),
        (error(503, "server busy, please try again"), Failure.OVERLOADED),
        (error(500, "model requires more system memory"), Failure.OVERLOADED),
        (error(400, "qwen3:8b does not support tools"), Failure.BAD_REQUEST),
        (error(401, "unauthorized"), Failure.AUTH),
        (error(429, "too many requests"), Failure.RATE),
        (Canned(b"<html>", 502), Failure.OVERLOADED),
        (Canned(b"[]", 400), Failure.UNREACHABLE),
        (Canned(breaks=True), Failure.UNREACHABLE),
        (Canned(b"<html>"), Failure.UNREACHABLE),
        (Canned(b"[]\n"), Failure.UNREACHABLE),
        (Canned(b"{}\n"), Failure.UNREACHABLE),
        (Canned(), Failure.CUT),
        (Canned(part("Half")), Failure.CUT),
        (Canned(part("Half"), breaks=True), Failure.CUT),
        (Canned(part("Half") + b"{oops\n"), Failure.CUT),
        (Canned(part("Half") + b'{"error": "model runner has unexpectedly stopped"}\n'), Failure.CUT),
        (Canned(b'{"error": "model runner has unexpectedly stopped"}\n'), Failure.CUT),
    ],
)
async def test_every_fault_has_its_failure(
    server: CannedServer, model: OllamaModel, canned: Canned, failure: Failure
) -> None:
    """Before the first part nothing was reached, after it the answer is cut."""
    server.routes[CHAT] = [canned]
    events, err = await run(model, ASK)
    assert err is not None
    assert err.failure is failure
    assert events == ([TextDelta("Half")] if b"Half" in canned.body else [])


async def test_a_missing_model_says_what_to_do(server: CannedServer, model: OllamaModel) -> None:
    """Already when it is asked what it can do."""
    server.routes[SHOW] = [error(404, "model 'qwen3:8b' not found")]
    with pytest.raises(ModelError, match="ollama pull qwen3:8b") as caught:
        await model.traits()
    assert caught.value.failure is Failure.NO_MODEL
    assert (await fail(model)).failure is Failure.NO_MODEL


async def test_a_server_that_is_down_is_unreachable() -> None:
    """Whatever class the client raises for it."""
    model = OllamaModel(host="127.0.0.1:9", models=MODELS)
    assert (await fail(model)).failure is Failure.UNREACHABLE
    await model.close()


async def test_a_server_that_goes_down_later_is_unreachable(server: CannedServer, model: OllamaModel) -> None:
    """Streams raise another class than other calls."""
    await model.traits()
    await server.close()
    assert (await fail(model)).failure is Failure.UNREACHABLE


# --- traits and the server -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "is_small"),
    [("494.03M", True), ("1.7B", True), ("2.0B", False), ("8.2B", False), ("1T", False), ("8x7B", False), ("", False)],
)
async def test_small_models_want_facts_near_the_question(
    server: CannedServer, model: OllamaModel, size: str, *, is_small: bool
) -> None:
    """Below two billion parameters; what does not say its size is not small."""
    server.routes[SHOW] = [shown(size=size)]
    assert (await model.traits()).facts_near_question is is_small


@pytest.mark.parametrize(("context", "tokens"), [(40_960, 8192), (2048, 2048)])
async def test_traits_are_asked_once(server: CannedServer, model: OllamaModel, context: int, tokens: int) -> None:
    """The window is what we load, or what the model has where that is less."""
    server.routes[SHOW] = [shown("tools", context=context)]
    traits = await model.traits()
    assert traits == await model.traits(Tier.SMALL)
    assert (traits.name, traits.context_tokens, traits.can_call_tools) == ("qwen3:8b", tokens, True)
    assert traits.can_follow_schema
    assert server.bodies(SHOW) == [{"model": "qwen3:8b"}]


async def test_a_server_that_says_little_is_believed_little(server: CannedServer, model: OllamaModel) -> None:
    """Old servers list no capabilities."""
    server.routes[SHOW] = [Canned(b'{"model_info": {}}')]
    traits = await model.traits()
    assert (traits.can_call_tools, traits.context_tokens, traits.facts_near_question) == (False, 8192, False)


async def test_ollama_is_found_with_its_models(server: CannedServer) -> None:
    """The models are sorted."""
    models = [{"model": "qwen3:8b"}, {"model": "gemma3:4b"}]
    server.routes[TAGS] = [Canned(json.dumps({"models": models}).encode())]
    assert await find_ollama(server.url) == server.url
    assert await installed_models(server.url) == ("gemma3:4b", "qwen3:8b")


async def test_ollama_is_looked_for_where_its_variable_says(
    monkeypatch: pytest.MonkeyPatch, server: CannedServer
) -> None:
    """As its own tools do."""
    server.routes[TAGS] = [Canned(b'{"models": []}')]
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    assert await find_ollama(None) == server.url


@pytest.mark.parametrize("canned", [Canned(b"<html>"), Canned(b"[]"), error(500, "no"), Canned(b"{", hangs=True)])
async def test_what_is_no_ollama_is_not_found(server: CannedServer, canned: Canned) -> None:
    """Nor what takes longer than half a second."""
    server.routes[TAGS] = [canned]
    async with asyncio.timeout(1.0):
        assert await find_ollama(server.url) is None
        assert await find_ollama("127.0.0.1:9") is None
        assert await find_ollama("http://[oops") is None


async def test_another_server_in_its_place_is_no_ollama(server: CannedServer) -> None:
    """A 404 there is not a missing model."""
    with pytest.raises(ModelError) as caught:
        await installed_models(server.url)
    assert caught.value.failure is Failure.UNREACHABLE


def test_a_host_that_is_no_address_is_said_at_once() -> None:
    """With its text."""
    with pytest.raises(ValueError, match="oops"):
        OllamaModel(host="http://host:oops", models=MODELS)


async def test_a_proxy_is_not_told_what_is_said_on_this_machine(
    monkeypatch: pytest.MonkeyPatch, server: CannedServer
) -> None:
    """Proxies are for the internet."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    local = OllamaModel(host=server.url, models=MODELS)
    assert (await finish(local)).text == "ok"
    await local.close()
