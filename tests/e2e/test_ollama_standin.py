"""The stand-in for Ollama against the real client: script, cutting, embeddings, errors."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import ollama
import pytest

from tests.fakes.ollama_api import OllamaApi, OllamaModel, embed_words
from tests.waiting import until

CHAT, PLAIN, EMBEDDER = "qwen3:8b", "gemma3:4b", "nomic-embed-text"
CLOCK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}},
}


@pytest.fixture
async def api() -> AsyncIterator[OllamaApi]:
    async with OllamaApi() as api:
        yield api


@pytest.fixture
async def client(api: OllamaApi) -> AsyncIterator[ollama.AsyncClient]:
    # no certificates are needed on a loopback address, and loading them takes longer than the test
    client = ollama.AsyncClient(host=api.host, timeout=5, verify=False)
    yield client
    await client.close()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def ask(client: Any, text: str = "hello", **more: Any) -> ollama.ChatResponse:
    """`client` is an AsyncClient; the types of its chat method are incomplete."""
    more = {"model": CHAT, "messages": [user(text)], "options": {"num_ctx": 8_192}} | more
    return await client.chat(**more)


async def stream(client: Any, text: str = "a text of several pieces", **more: Any) -> list[ollama.ChatResponse]:
    more = {"model": CHAT, "messages": [user(text)], "think": False} | more
    return [part async for part in await client.chat(**more, stream=True)]


async def post(api: OllamaApi, **changes: Any) -> httpx.Response:
    """A chat past the checks of the client."""
    async with httpx.AsyncClient(base_url=api.host, verify=False) as http:
        body = {"model": CHAT, "messages": [user("hi")], "stream": False} | changes
        return await http.post("/api/chat", json=body)


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_the_installed_models_tell_what_they_can(api: OllamaApi, client: ollama.AsyncClient) -> None:
    assert [model.model for model in (await client.list()).models] == list(api.models)
    shown = await client.show(EMBEDDER)
    assert shown.capabilities == ["embedding"]
    assert shown.modelinfo is not None
    assert shown.modelinfo["standin.context_length"] == 2_048
    async with httpx.AsyncClient(base_url=api.host, verify=False) as http:
        assert "version" in (await http.get("/api/version")).json()


async def test_the_newest_words_are_echoed_whole_and_in_pieces(api: OllamaApi, client: ollama.AsyncClient) -> None:
    whole = await ask(client, "Grüße, 日本語 and more", think=False)
    assert whole.message.content == "Echo: Grüße, 日本語 and more"
    assert (whole.done_reason, whole.message.thinking) == ("stop", None)
    parts = await stream(client)
    assert len(parts) > 3
    assert "".join(part.message.content or "" for part in parts) == "Echo: a text of several pieces"
    assert [part.done for part in parts[-2:]] == [False, True]
    assert api.requests[0].num_ctx == 8_192
    assert api.requests[0].end == "complete"


async def test_a_thinking_model_thinks_unless_told_not_to(client: ollama.AsyncClient) -> None:
    assert (await ask(client)).message.thinking
    assert (await ask(client, think=False)).message.thinking is None
    assert (await ask(client, model=PLAIN)).message.thinking is None


async def test_a_tool_is_called_and_its_result_answered(api: OllamaApi, client: ollama.AsyncClient) -> None:
    api.on("time", has_tool="clock").reply(tool=("clock", {"zone": "Europe/Berlin"}))
    first = await ask(client, "what time?", tools=[CLOCK])
    calls = first.message.tool_calls or []
    assert [(call.function.name, call.function.arguments) for call in calls] == [("clock", {"zone": "Europe/Berlin"})]
    history = [user("what time?"), first.message, {"role": "tool", "tool_name": "clock", "content": "9 am"}]
    assert (await ask(client, messages=history, tools=[CLOCK])).message.content == "Done."
    api.on(after_tool="9 am").reply("It is nine.")
    assert (await ask(client, messages=history, tools=[CLOCK])).message.content == "It is nine."
    parts = await stream(client, "time", tools=[CLOCK])
    assert [len(part.message.tool_calls or ()) for part in parts if part.message.tool_calls] == [1]
    assert "9 am" in api.requests[-2].texts()
    assert api.violations == []


async def test_a_schema_is_filled_with_what_was_said(api: OllamaApi, client: ollama.AsyncClient) -> None:
    shape = {"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer", "minimum": 3}}}
    api.on("tomatoes").reply("only for people")
    answer = await ask(client, "we plant tomatoes", format=shape)
    filled = json.loads(answer.message.content or "")
    assert filled == {"title": "we plant tomatoes", "n": 3}
    api.on("tomatoes").reply(json={"title": "Garden", "n": 4})
    answer = await ask(client, "we plant tomatoes", format=shape)
    assert json.loads(answer.message.content or "")["title"] == "Garden"


async def test_a_long_chat_is_cut_in_silence(api: OllamaApi, client: ollama.AsyncClient) -> None:
    """The oldest messages go, system messages stay; only the count of tokens tells."""
    system = {"role": "system", "content": "Be brief."}
    long = [user(f"{number} " + "word " * 400) for number in range(10)]
    answer = await ask(client, messages=[system, *long, user("last")], options={"num_ctx": 2_048})
    request = api.requests[0]
    assert request.is_cut
    assert [message["content"] for message in (request.seen[0], request.seen[-1])] == ["Be brief.", "last"]
    assert "0 word" not in request.texts()
    assert (answer.prompt_eval_count or 0) <= 2_048
    await ask(client, messages=[system, *long, user("last")], options={"num_ctx": 16_384})
    assert not api.requests[1].is_cut
    assert api.loads == [(CHAT, 2_048), (CHAT, 16_384)]


async def test_without_num_ctx_the_context_is_small(api: OllamaApi, client: ollama.AsyncClient) -> None:
    await ask(client, options=None)
    assert api.loads == [(CHAT, 4_096)]


async def test_output_ends_at_num_predict(client: ollama.AsyncClient) -> None:
    answer = await ask(client, "one two three four", options={"num_predict": 3})
    assert (answer.done_reason, answer.message.content) == ("length", "Echo: one tw")


async def test_loaded_models_are_listed_while_they_are_kept(client: ollama.AsyncClient) -> None:
    await ask(client, keep_alive="30m")
    await ask(client, model=PLAIN, keep_alive=0)
    await client.embed(EMBEDDER, "text", keep_alive=-1)
    loaded = {model.model: model.context_length for model in (await client.ps()).models}
    assert loaded == {CHAT: 8_192, "nomic-embed-text:latest": 2_048}


async def test_texts_that_share_words_are_near(api: OllamaApi, client: ollama.AsyncClient) -> None:
    texts = ["search_query: green tea", "search_document: I like green tea best", "search_document: a train to Rome"]
    question, near, far = [list(vector) for vector in (await client.embed(EMBEDDER, texts)).embeddings]
    assert len(question) == 768
    assert cosine(question, question) == pytest.approx(1)
    assert cosine(question, near) > 0.4
    assert abs(cosine(question, far)) < 0.2
    assert api.requests[0].inputs == texts
    assert question == pytest.approx(embed_words("green tea", 768))
    (short,) = (await client.embed(EMBEDDER, "green tea", dimensions=64)).embeddings
    assert len(short) == 64
    with pytest.raises(ollama.ResponseError, match="exceeds the context length"):
        await client.embed(EMBEDDER, "word " * 4_000, truncate=False)
    await client.embed(EMBEDDER, "word " * 4_000)


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "unknown model": ({"model": "nobody"}, 404, "model 'nobody' not found"),
    "no tools": ({"model": PLAIN, "tools": [CLOCK]}, 400, "gemma3:4b does not support tools"),
    "no thinking": ({"model": PLAIN, "think": True}, 400, '"gemma3:4b" does not support thinking'),
    "no chat": ({"model": EMBEDDER}, 400, '"nomic-embed-text" does not support chat'),
    "keep_alive that is no time": ({"keep_alive": "soon"}, 400, "invalid duration"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_a_model_cannot_do_is_refused(api: OllamaApi, client: ollama.AsyncClient, name: str) -> None:
    changes, status, wording = REFUSED[name]
    with pytest.raises(ollama.ResponseError, match=wording) as caught:
        await ask(client, **changes)
    assert caught.value.status_code == status
    assert api.requests[0].end == "refused"


async def test_an_option_of_the_wrong_type_is_refused(api: OllamaApi) -> None:
    answer = await post(api, options={"num_ctx": "many"})
    assert (answer.status_code, answer.json()["error"]) == (400, 'option "num_ctx" must be of type integer')


async def test_what_would_be_ignored_is_a_violation(api: OllamaApi, client: ollama.AsyncClient) -> None:
    await post(api, num_ctx=8_192, options={"contxt": 1})
    await ask(client, messages=[user("hi"), {"role": "tool", "content": "9 am"}])
    assert [violation.split(": ")[1] for violation in api.violations] == [
        "`num_ctx` is not known and would be ignored",
        "`contxt` is not known and would be ignored",
        "a tool message without a call before it",
    ]


async def test_faults_reach_the_client_as_the_real_ones_do(api: OllamaApi, client: ollama.AsyncClient) -> None:
    api.fault("busy", times=2)
    for call in (stream, ask):
        with pytest.raises(ollama.ResponseError) as caught:
            await call(client)
        assert caught.value.status_code == 503
    api.fault("stream_error")
    with pytest.raises(ollama.ResponseError) as caught:
        await stream(client)
    assert caught.value.status_code == -1
    api.fault("disconnect")
    with pytest.raises(httpx.RemoteProtocolError):
        await stream(client)
    api.fault("truncate", after=1)
    assert not (await stream(client))[-1].done
    api.fault("server_error", path="embed")
    assert (await ask(client)).done
    with pytest.raises(ollama.ResponseError):
        await client.embed(EMBEDDER, "text")
    assert [request.end for request in api.requests][2:5] == [
        "fault: stream_error",
        "fault: disconnect",
        "fault: truncate",
    ]


async def test_a_stall_ends_when_the_client_leaves(api: OllamaApi, client: ollama.AsyncClient) -> None:
    api.fault("stall", times=3)
    calls = (lambda: stream(client), lambda: ask(client), lambda: client.embed(EMBEDDER, "text"))
    for asked, call in enumerate(calls, start=1):
        task = asyncio.ensure_future(call())
        await until(lambda asked=asked: len(api.requests) == asked, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: api.requests[-1].end != "open", 5)
    assert [request.end for request in api.requests] == ["client left"] * 3


async def test_connections_are_refused_while_it_is_down(api: OllamaApi, client: ollama.AsyncClient) -> None:
    await ask(client)
    await api.down()
    with pytest.raises(ConnectionError):
        await ask(client)
    with pytest.raises(httpx.ConnectError):
        await stream(client)
    await api.up()
    await ask(client)
    assert len(api.requests) == 2


async def test_models_are_what_a_test_installs() -> None:
    tiny = OllamaModel("tiny:latest", ("embedding",), dimensions=8)
    async with OllamaApi([tiny]) as api:
        client = ollama.AsyncClient(host=api.host, verify=False)
        assert len((await client.embed("tiny", "text")).embeddings[0]) == 8
        with pytest.raises(ollama.ResponseError):
            await ask(client)
        await client.close()


async def test_a_process_of_its_own_is_scripted_over_http() -> None:
    command = [sys.executable, "-m", "tests.fakes.ollama_api", "--port", "0"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        host = (await process.stdout.readline()).decode().split()[-1]
        client = ollama.AsyncClient(host=host, verify=False)
        async with httpx.AsyncClient(base_url=host, verify=False) as http:
            assert (await http.post("/ctl/rules", json={"user": "hello", "reply": {"text": "Hi."}})).is_success
            assert (await ask(client)).message.content == "Hi."
            assert (await http.post("/ctl/faults", json={"kind": "nonsense"})).status_code == 400
            told = (await http.get("/ctl/requests")).json()
            assert [entry["end"] for entry in told["requests"]] == ["complete"]
        await client.close()
    finally:
        process.terminate()
        await process.wait()
