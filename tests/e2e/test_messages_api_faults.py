"""The stand-in for the Messages API against the real SDK: what goes wrong, and how it looks from outside."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import Message

from tests.fakes.messages_api import MessagesApi
from tests.fakes.messages_api.faults import FaultKind
from tests.waiting import until

SONNET, HAIKU, OPUS = "claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5"


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with MessagesApi() as api:
        yield api
        assert api.violations == []


@pytest.fixture
async def client(api: MessagesApi) -> AsyncIterator[AsyncAnthropic]:
    # no certificates are needed on a loopback address, and loading them takes longer than the test
    http = DefaultAsyncHttpxClient(verify=False)
    async with AsyncAnthropic(api_key=api.key, base_url=api.base_url, max_retries=0, http_client=http) as client:
        yield client


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


async def ask(client: AsyncAnthropic, text: str = "hello", **more: Any) -> Message:
    more = {"model": SONNET, "max_tokens": 2_000, "messages": [{"role": "user", "content": text}]} | more
    return await client.messages.create(**more, stream=False)


async def stream(client: AsyncAnthropic) -> Message:
    question = "a question of some length, to be echoed"
    async with client.messages.stream(
        model=SONNET, max_tokens=2_000, messages=[{"role": "user", "content": question}]
    ) as answer:
        return await answer.get_final_message()


FAULTS: list[tuple[FaultKind, type[Exception], str | None]] = [
    ("rate_limit", anthropic.RateLimitError, "rate_limit_error"),
    ("overloaded", anthropic.OverloadedError, "overloaded_error"),
    ("server_error", anthropic.InternalServerError, "api_error"),
    ("unauthorized", anthropic.AuthenticationError, "authentication_error"),
    ("forbidden", anthropic.PermissionDeniedError, "permission_error"),
    ("billing", anthropic.PaymentRequiredError, "billing_error"),
    ("too_large", anthropic.ContentTooLargeError, "request_too_large"),
    ("too_long", anthropic.BadRequestError, "invalid_request_error"),
    ("stale_thinking", anthropic.BadRequestError, "invalid_request_error"),
    ("spend_limit", anthropic.EnforcedSpendLimitReachedError, "rate_limit_error"),
    ("own_spend_limit", anthropic.BadRequestError, "invalid_request_error"),
    ("compaction_unavailable", anthropic.OverloadedError, "overloaded_error"),
    ("stream_error", anthropic.APIStatusError, "overloaded_error"),
    ("disconnect", httpx2.RemoteProtocolError, None),
    ("malformed", json.JSONDecodeError, None),
    ("empty", AssertionError, None),
]


@pytest.mark.parametrize(("kind", "error", "name"), FAULTS)
async def test_faults_reach_the_sdk_as_the_real_ones_do(
    api: MessagesApi, client: AsyncAnthropic, kind: FaultKind, error: type[Exception], name: str | None
) -> None:
    api.fault(kind)
    with pytest.raises(error) as caught:
        await stream(client)
    assert getattr(caught.value, "type", None) == name
    assert api.requests[0].end == f"fault: {kind}"
    assert (await stream(client)).stop_reason == "end_turn"


async def test_a_truncated_stream_ends_without_a_reason(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.fault("truncate", after=1)
    cut = await stream(client)
    assert (text_of(cut), cut.stop_reason) == ("Echo: a ", None)


async def test_a_refusal_keeps_most_of_the_text_back(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.fault("refusal", times=2)
    for answer in (await stream(client), await ask(client)):
        assert answer.stop_reason == "refusal"
        assert answer.stop_details is not None


async def test_the_sdk_retries_a_rate_limit_after_the_time_it_names(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.fault("rate_limit", retry_after=0.05)
    started = time.perf_counter()
    assert text_of(await ask(client.with_options(max_retries=1))) == "Echo: hello"
    assert time.perf_counter() - started >= 0.05
    assert [request.status for request in api.requests] == [429, 200]


async def test_faults_hit_only_what_they_are_meant_for(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.on(model="opus").fault("overloaded", times=None)
    api.fault("server_error", match="break")
    await ask(client)
    with pytest.raises(anthropic.OverloadedError):
        await ask(client, model=OPUS)
    with pytest.raises(anthropic.InternalServerError):
        await ask(client, "break, please")
    api.clear()
    await ask(client, model=OPUS)


async def test_a_stall_ends_when_the_client_leaves(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.fault("stall", times=2)
    for asked, call in enumerate((stream, ask), start=1):
        task = asyncio.create_task(call(client))
        await until(lambda asked=asked: len(api.requests) == asked, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: api.requests[-1].end != "open", 5)
    assert [request.end for request in api.requests] == ["client left", "client left"]


@pytest.mark.parametrize("kind", ["slow_start", "slow_chunks"])
async def test_a_slow_answer_is_complete(api: MessagesApi, client: AsyncAnthropic, kind: FaultKind) -> None:
    api.fault(kind, seconds=0.05)
    started = time.perf_counter()
    assert (await stream(client)).stop_reason == "end_turn"
    assert time.perf_counter() - started >= 0.05
    assert api.requests[0].end == "complete"


async def test_nothing_is_answered_while_the_api_is_down(api: MessagesApi, client: AsyncAnthropic) -> None:
    api.down()
    with pytest.raises(anthropic.APIConnectionError):
        await ask(client)
    api.up()
    await ask(client)
    assert len(api.requests) == 1


async def test_a_process_of_its_own_is_scripted_over_http() -> None:
    command = [sys.executable, "-m", "tests.fakes.messages_api", "--port", "0"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        base_url = (await process.stdout.readline()).decode().split()[-1]
        async with (
            httpx2.AsyncClient(base_url=f"{base_url}/ctl") as control,
            AsyncAnthropic(api_key="test", base_url=base_url, max_retries=0) as client,
        ):
            assert (await control.post("/rules", json={"user": "hello", "reply": {"text": "Hi."}})).status_code == 200
            assert "unknown: usr" in (await control.post("/rules", json={"usr": "x", "reply": {"text": "y"}})).text
            assert text_of(await ask(client)) == "Hi."
            await control.post("/faults", json={"kind": "overloaded", "match": {"model": "haiku"}})
            with pytest.raises(anthropic.OverloadedError):
                await ask(client, model=HAIKU)
            with pytest.raises(anthropic.BadRequestError):
                await ask(client, extra_body={"user": "ada"})
            told = (await control.get("/requests", params={"since": 1})).json()["requests"]
            assert [entry["end"] for entry in told] == ["fault: overloaded", "refused"]
            assert len((await control.get("/violations")).json()["violations"]) == 1
    finally:
        process.terminate()
        await process.wait()
