"""The Claude adapter when something goes wrong: what it is called, what is asked for again, what never is."""

import pytest

from bot.models.anthropic import AnthropicModel
from memory.ports import ChatMessage, Failure, Json, ModelRequest, TextDelta
from tests.fakes.canned_http import Canned, CannedServer
from tests.fakes.histories import assistant, tool_round, user
from tests.unit.bot.models.claude_answers import (
    ASK,
    MESSAGES,
    QUICK,
    THINKING,
    TOOL,
    answer,
    end,
    error,
    fail,
    finish,
    run,
    sse,
    start,
    text,
)


@pytest.mark.parametrize(
    ("canned", "failure"),
    [
        (error(401, "authentication_error"), Failure.AUTH),
        (error(403, "permission_error"), Failure.AUTH),
        (error(400, "invalid_request_error", code="organization_on_hold"), Failure.AUTH),
        (error(402, "billing_error"), Failure.SPEND),
        (error(400, "invalid_request_error", "Your credit balance is too low"), Failure.SPEND),
        (error(400, "invalid_request_error", "You have reached your specified API usage limits."), Failure.SPEND),
        (error(429, "rate_limit_error", code="enforced_spend_limit_reached"), Failure.SPEND),
        (error(429, "rate_limit_error", code="contract_spend_limit_reached"), Failure.SPEND),
        (error(429, "rate_limit_error"), Failure.RATE),
        (error(429, "rate_limit_error", code="ramp_limit_exceeded"), Failure.RATE),
        (error(529, "overloaded_error"), Failure.OVERLOADED),
        (error(500, "api_error"), Failure.OVERLOADED),
        (error(504, "timeout_error"), Failure.OVERLOADED),
        (Canned(b"<html>", 502, QUICK), Failure.OVERLOADED),
        (error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), Failure.TOO_LONG),
        (error(413, "request_too_large"), Failure.TOO_LONG),
        (Canned(b"<html>", 413), Failure.TOO_LONG),
        (error(404, "not_found_error", "model: claude-nope"), Failure.NO_MODEL),
        (Canned(b"404 page not found", 404), Failure.UNREACHABLE),
        (error(400, "invalid_request_error"), Failure.BAD_REQUEST),
    ],
)
async def test_every_status_has_its_failure(
    server: CannedServer, claude: AnthropicModel, canned: Canned, failure: Failure
) -> None:
    """By the error's type first, then by its code, its text and its status."""
    server.routes[MESSAGES] = [canned]
    assert (await fail(claude)).failure is failure


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after-ms": "20"}, 0.02), ({"retry-after-ms": "x", "retry-after": "0.03"}, 0.03), ({}, None)],
)
async def test_the_wait_that_was_asked_for_is_passed_on(
    server: CannedServer, claude: AnthropicModel, headers: dict[str, str], seconds: float | None
) -> None:
    """In seconds; after the SDK's own two retries."""
    canned = error(429, "rate_limit_error")
    no_retry = {} if seconds else {"x-should-retry": "false"}
    server.routes[MESSAGES] = [Canned(canned.body, 429, {"content-type": "application/json"} | headers | no_retry)]
    assert (await fail(claude)).retry_after == seconds
    assert len(server.seen) == (3 if seconds else 1)


BEGUN = start() + sse("content_block_start", index=0, content_block=text(""))
HELLO = sse("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hello"})
HEADERS = {"content-type": "text/event-stream", "request-id": "req_1"}


NO_JSON = sse("content_block_start", index=0, content_block={**TOOL, "input": Json()}) + sse(
    "content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "{oops"}
)


def mid_stream(kind: str, message: str = "no") -> bytes:
    return sse("error", error={"type": kind, "message": message})


BREAKS = [
    (Canned(BEGUN + mid_stream("overloaded_error"), headers=HEADERS), Failure.OVERLOADED),
    (Canned(BEGUN + mid_stream("api_error"), headers=HEADERS), Failure.OVERLOADED),
    (Canned(BEGUN, headers=HEADERS, breaks=True), Failure.CUT),
    (Canned(BEGUN, headers=HEADERS), Failure.CUT),
    (Canned(BEGUN + b"event: content_block_delta\ndata: {oops\n\n", headers=HEADERS), Failure.CUT),
    (Canned(BEGUN + sse("content_block_delta", index=9, delta={"type": "text_delta"}), headers=HEADERS), Failure.CUT),
    (Canned(headers=HEADERS), Failure.CUT),
    (Canned(b"<html>", headers={"content-type": "text/html"}), Failure.CUT),
    (answer(stop="compaction"), Failure.CUT),
    (answer(TOOL | {"input": ["no object"]}, stop="tool_use"), Failure.CUT),
    (Canned(start() + NO_JSON + end("tool_use"), headers=HEADERS), Failure.CUT),
]


@pytest.mark.parametrize(("canned", "failure"), BREAKS)
async def test_a_stream_that_breaks_before_any_text_is_asked_for_once_more(
    server: CannedServer, claude: AnthropicModel, canned: Canned, failure: Failure
) -> None:
    """Then it is an error."""
    server.routes[MESSAGES] = [canned, answer(text("Hello"))]
    assert (await finish(claude, ASK)).text == "Hello"
    server.routes[MESSAGES] = [canned]
    err = await fail(claude)
    assert err.failure is failure
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    ("rest", "failure"),
    [
        (mid_stream("overloaded_error"), Failure.OVERLOADED),
        (mid_stream("rate_limit_error"), Failure.RATE),
        (b"event: content_block_delta\ndata: {oops\n\n", Failure.CUT),
        (b"", Failure.CUT),
    ],
)
@pytest.mark.parametrize("breaks", [True, False])
async def test_p32_nothing_is_asked_for_again_once_text_was_shown(
    server: CannedServer, claude: AnthropicModel, rest: bytes, failure: Failure, *, breaks: bool
) -> None:
    """The person would read it twice."""
    server.routes[MESSAGES] = [Canned(BEGUN + HELLO + rest, headers=HEADERS, breaks=breaks)]
    shown, err = await run(claude, ASK)
    assert shown == [TextDelta("Hello")]
    assert err is not None
    assert err.failure is failure
    assert len(server.seen) == 1


async def test_an_error_of_ours_within_a_stream_is_final(server: CannedServer, claude: AnthropicModel) -> None:
    """A second attempt would end the same way."""
    canned = Canned(start() + mid_stream("invalid_request_error", "prompt is too long: 9 > 8"), headers=HEADERS)
    server.routes[MESSAGES] = [canned]
    assert (await fail(claude)).failure is Failure.TOO_LONG
    assert len(server.seen) == 1


STALE = "messages.1.content.0: Invalid `signature` in `thinking` block."
BOUND = f"{STALE} The block is bound to a different conversation."


@pytest.mark.parametrize(("message", "is_kept"), [(STALE, False), (BOUND, True)])
async def test_stale_thinking_costs_one_more_attempt(
    server: CannedServer, claude: AnthropicModel, message: str, *, is_kept: bool
) -> None:
    """Thinking of another prefix is dropped by the server, which refuses a loop without any; a bad one by us."""
    call, result = tool_round("look_up", {"q": "Köln"}, "sunny", call_id="toolu_1")
    request = ModelRequest((user("hi"), ChatMessage("assistant", call.blocks, raw=(THINKING, TOOL)), result))
    server.routes[MESSAGES] = [error(400, "invalid_request_error", message), answer(text("Sunny."))]
    assert (await finish(claude, request)).text == "Sunny."
    body = server.bodies(MESSAGES)[1]
    assert body["messages"][1]["content"] == ([THINKING, TOOL] if is_kept else [TOOL])
    binding = body.get("thinking", {}).get("block_binding")
    assert binding == ({"prefix_mismatch_behavior": "drop_block"} if is_kept else None)
    assert (server.seen[1].headers.get("anthropic-beta") is not None) is is_kept
    server.routes[MESSAGES] = [error(400, "invalid_request_error", message)]
    assert (await fail(claude, request)).failure is Failure.BAD_REQUEST
    assert len(server.seen) == 4


async def test_a_broken_history_is_never_sent(server: CannedServer, claude: AnthropicModel) -> None:
    """See test_history."""
    assert (await fail(claude, ModelRequest((assistant("hi"),)))).failure is Failure.BAD_REQUEST
    assert server.seen == []


async def test_half_a_character_is_a_bad_request(claude: AnthropicModel) -> None:
    """And not a network that is down."""
    assert (await fail(claude, ModelRequest((user("\ud83d"),)))).failure is Failure.BAD_REQUEST


async def test_details_quote_no_prompt(server: CannedServer, claude: AnthropicModel) -> None:
    """They go to the log: status, type, the API's own words, the request id."""
    server.routes[MESSAGES] = [error(400, "invalid_request_error", "no " * 500, **{"request-id": "req_7"})]
    err = await fail(claude, ModelRequest((user("my secret"),)))
    assert "secret" not in err.detail
    assert "req_7" in err.detail
    assert len(err.detail) < 300


async def test_closing_the_stream_stops_the_request(server: CannedServer, claude: AnthropicModel) -> None:
    """The server sees the person go."""
    server.routes[MESSAGES] = [Canned(BEGUN + HELLO, headers=HEADERS, hangs=True)]
    stream = claude.stream(ASK)
    assert await anext(stream) == TextDelta("Hello")
    await stream.aclose()
    await server.left.wait()
