"""The Claude adapter: what it sends, and what it makes of what comes back."""

import json
from typing import Any

import pytest

from bot.models.anthropic import AnthropicModel
from memory.ports import (
    ChatMessage,
    Finished,
    ModelRequest,
    StopReason,
    TextBlock,
    TextDelta,
    Tier,
    ToolCall,
    ToolSpec,
    Usage,
)
from tests.fakes.canned_http import Canned, CannedServer
from tests.fakes.histories import assistant, tool_round, user
from tests.unit.bot.models.claude_answers import (
    ASK,
    MESSAGES,
    MODELS,
    PAUSED,
    STRICT,
    THINKING,
    TOOL,
    answer,
    error,
    finish,
    info,
    run,
    text,
)

# --- what is sent ----------------------------------------------------------------------------------


async def sent(server: CannedServer, claude: AnthropicModel, request: ModelRequest) -> dict[str, Any]:
    server.routes[MESSAGES] = [answer(text("ok"))]
    await finish(claude, request)
    return server.bodies(MESSAGES)[-1]


async def test_key_version_and_metadata_travel_in_their_places(server: CannedServer, claude: AnthropicModel) -> None:
    """The key as a bearer, the person as an opaque id."""
    body = await sent(server, claude, ModelRequest((user("hi"),), user_key="3f2a"))
    assert server.seen[-1].headers["authorization"] == "Bearer key"
    assert server.seen[-1].headers["anthropic-version"] == "2026-10-21"
    assert body["metadata"] == {"user_id": "3f2a"}
    assert "metadata" not in await sent(server, claude, ASK)


async def test_p54_the_prefix_is_cached_for_an_hour(server: CannedServer, claude: AnthropicModel) -> None:
    """Breakpoints where blocks ask for them, none on what changes with every turn; blank blocks are dropped."""
    system = (TextBlock("persona"), TextBlock("rules", cache=True), TextBlock(" "), TextBlock("facts", cache=True))
    body = await sent(server, claude, ModelRequest((user("a", cache=True), assistant("b"), user("c")), system))
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert body["system"] == [
        text("persona"),
        text("rules") | {"cache_control": hour},
        text("facts") | {"cache_control": hour},
    ]
    assert body["messages"][0]["content"] == [text("a") | {"cache_control": hour}]
    assert "cache_control" not in body


async def test_p54_an_open_tool_loop_is_cached_for_its_next_round(server: CannedServer, claude: AnthropicModel) -> None:
    """Five minutes: it goes on at once, or never."""
    request = ModelRequest((user("a"), *tool_round("t", {}, "r")))
    assert (await sent(server, claude, request))["cache_control"] == {"type": "ephemeral"}


async def test_at_most_four_breakpoints_are_set(server: CannedServer, claude: AnthropicModel) -> None:
    """The first four in the order of the prompt; then there is none left for the newest history."""
    system = tuple(TextBlock(f"part {number}", cache=True) for number in range(3))
    body = await sent(
        server, claude, ModelRequest((user("a", cache=True), assistant("b"), user("c", cache=True)), system)
    )
    assert "cache_control" not in body
    assert json.dumps(body).count("cache_control") == 4
    assert "cache_control" not in body["messages"][2]["content"][0]


async def test_tools_are_sorted_and_strict_where_they_can_be(server: CannedServer, claude: AnthropicModel) -> None:
    """The same tools in another order are the same bytes."""
    tools = (ToolSpec("b", "B", STRICT), ToolSpec("a", "A", {"type": "object", "properties": {}}))
    body = await sent(server, claude, ModelRequest((user("hi"),), tools=tools))
    again = await sent(server, claude, ModelRequest((user("hi"),), tools=tools[::-1]))
    assert [tool["name"] for tool in body["tools"]] == ["a", "b"]
    assert [tool.get("strict") for tool in body["tools"]] == [None, True]
    assert json.dumps(body) == json.dumps(again)


async def test_tier_and_schema_decide_the_output(server: CannedServer, claude: AnthropicModel) -> None:
    """Small tasks run at low effort; a missing tier falls back to the default model."""
    small = await sent(server, claude, ModelRequest((user("hi"),), tier=Tier.SMALL, schema=STRICT, max_tokens=64))
    assert small["model"] == "claude-haiku-5-5"
    assert small["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": STRICT}}
    assert small["max_tokens"] == 1024, "thinking would eat a smaller allowance whole"
    smart = await sent(server, claude, ModelRequest((user("hi"),), tier=Tier.SMART))
    assert (smart["model"], smart["output_config"]) == ("claude-sonnet-5-5", {"effort": "medium"})
    assert smart["max_tokens"] == 4096


async def test_tool_rounds_become_the_blocks_of_the_api(server: CannedServer, claude: AnthropicModel) -> None:
    """Results without text have no content; errors say so."""
    messages = (user("hi"), *tool_round("look_up", {"q": "x"}, ""))
    body = await sent(server, claude, ModelRequest(messages))
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {"q": "x"}}
    ]
    assert body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "call_1"}]


async def test_the_blocks_of_an_open_tool_loop_go_back_verbatim(server: CannedServer, claude: AnthropicModel) -> None:
    """Thinking and signatures belong to the loop; blank text and nulls would be refused."""
    server.routes[MESSAGES] = [answer(THINKING, text(" "), TOOL, stop="tool_use")]
    finished = await finish(claude, ASK)
    assert finished.stop is StopReason.TOOLS
    assert finished.calls == (ToolCall("toolu_1", "look_up", {"q": "Köln"}),)
    assert finished.raw == (THINKING, TOOL)
    call, result = tool_round("look_up", {"q": "Köln"}, "sunny", call_id="toolu_1")
    history = (user("hi"), ChatMessage("assistant", call.blocks, raw=finished.raw), result)
    body = await sent(server, claude, ModelRequest(history))
    assert body["messages"][1] == {"role": "assistant", "content": [THINKING, TOOL]}


async def test_no_variable_redirects_the_key(monkeypatch: pytest.MonkeyPatch, server: CannedServer) -> None:
    """Without a base_url of ours the official one is stated."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
    model = AnthropicModel(api_key=" key\n", base_url=None, models=MODELS)
    client = model._client  # pyright: ignore[reportPrivateUsage] (a request would have to reach the internet)
    assert str(client.base_url).rstrip("/") == "https://api.anthropic.com"
    assert (client.api_key, client.auth_token) == ("key", None)
    await model.close()


@pytest.mark.parametrize("key", ["", "  ", "sk-ant…", "two\nlines"])
def test_a_key_that_cannot_be_one_is_said_at_once(key: str) -> None:
    """Instead of at the first message, as a connection error."""
    with pytest.raises(ValueError, match="API key"):
        AnthropicModel(api_key=key, base_url=None, models=MODELS)


# --- what comes back -------------------------------------------------------------------------------


async def test_deltas_then_one_result_with_usage(server: CannedServer, claude: AnthropicModel) -> None:
    """Several text blocks are one text; cache fields are told apart."""
    counted = {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    server.routes[MESSAGES] = [answer(THINKING, text("Hello"), text(" there"), usage=counted)]
    events, _ = await run(claude, ASK)
    usage = Usage(input=7, output=5, cache_read=100, cache_write=20, cache_write_1h=20)
    result = Finished(StopReason.END, "Hello there", usage=usage, model="claude-sonnet-5-5")
    assert events == [TextDelta("Hello"), TextDelta(" there"), result]


@pytest.mark.parametrize(
    ("stop", "reason", "said"),
    [
        ("end_turn", StopReason.END, "Hello"),
        ("stop_sequence", StopReason.END, "Hello"),
        ("max_tokens", StopReason.LENGTH, "Hello"),
        ("model_context_window_exceeded", StopReason.LENGTH, "Hello"),
        ("refusal", StopReason.REFUSED, ""),
        ("tool_use", StopReason.TOOLS, "Hello"),
    ],
)
async def test_every_stop_reason_has_its_meaning(
    server: CannedServer, claude: AnthropicModel, stop: str, reason: StopReason, said: str
) -> None:
    """Only a turn that stopped for its tools has calls: in others they may be cut in half."""
    server.routes[MESSAGES] = [answer(text("Hello"), TOOL, stop=stop)]
    finished = await finish(claude, ASK)
    assert (finished.stop, finished.text) == (reason, said)
    assert bool(finished.calls) == bool(finished.raw) == (reason is StopReason.TOOLS)


async def test_a_tool_stop_without_calls_is_an_end(server: CannedServer, claude: AnthropicModel) -> None:
    """Nobody could answer it."""
    server.routes[MESSAGES] = [answer(text("Hello"), stop="tool_use")]
    assert (await finish(claude, ASK)).stop is StopReason.END


async def test_a_paused_turn_goes_on_in_the_same_answer(server: CannedServer, claude: AnthropicModel) -> None:
    """It is sent back as it came; text, blocks and tokens add up."""
    server.routes[MESSAGES] = [answer(text("One. "), PAUSED, stop="pause_turn"), answer(text("Two."))]
    events, _ = await run(claude, ASK)
    assert events[:2] == [TextDelta("One. "), TextDelta("Two.")]
    assert isinstance(events[2], Finished)
    assert (events[2].stop, events[2].text) == (StopReason.END, "One. Two.")
    assert events[2].usage == Usage(input=14, output=10)
    first, second = server.bodies(MESSAGES)
    assert second["messages"] == [*first["messages"], {"role": "assistant", "content": [text("One. "), PAUSED]}]


async def test_a_turn_that_never_stops_pausing_is_cut(server: CannedServer, claude: AnthropicModel) -> None:
    """Its text is kept."""
    server.routes[MESSAGES] = [answer(text("On. "), PAUSED, stop="pause_turn")]
    finished = await finish(claude, ASK)
    assert (finished.stop, finished.text) == (StopReason.LENGTH, "On. " * 5)


# --- traits ----------------------------------------------------------------------------------------


async def test_the_context_size_is_asked_once(server: CannedServer, claude: AnthropicModel) -> None:
    """And kept."""
    server.routes["/v1/models/claude-sonnet-5-5"] = [info(max_input_tokens=1_000_000)]
    assert await claude.traits() == await claude.traits(Tier.SMART)
    assert (await claude.traits()).context_tokens == 1_000_000
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "canned", [error(500, "api_error"), error(404, "not_found_error"), info(), Canned(b"<html>"), Canned(breaks=True)]
)
async def test_an_api_that_does_not_say_gets_the_smallest_window(
    server: CannedServer, claude: AnthropicModel, canned: Canned
) -> None:
    """Asking must never stop a bot from starting."""
    server.routes["/v1/models/claude-sonnet-5-5"] = [canned]
    traits = await claude.traits()
    assert (traits.name, traits.context_tokens) == ("claude-sonnet-5-5", 200_000)
    assert traits.can_call_tools
    assert traits.can_follow_schema


async def test_a_network_that_comes_back_is_asked_again(server: CannedServer, claude: AnthropicModel) -> None:
    """What was guessed while it was down is not kept."""
    route = "/v1/models/claude-sonnet-5-5"
    server.routes[route] = [Canned(breaks=True), info(max_input_tokens=1_000_000)]
    sizes = [(await claude.traits()).context_tokens for _ in range(2)]
    assert sizes[-1] == 1_000_000


async def test_models_without_effort_are_not_sent_any(server: CannedServer, claude: AnthropicModel) -> None:
    """Older models refuse the parameter."""
    capabilities = {"effort": {"supported": False}}
    server.routes["/v1/models/claude-haiku-5-5"] = [info(max_input_tokens=200_000, capabilities=capabilities)]
    await claude.traits(Tier.SMALL)
    assert "output_config" not in await sent(server, claude, ModelRequest((user("hi"),), tier=Tier.SMALL))
    assert "output_config" in await sent(server, claude, ASK)
