"""The built-in model: real runtime, real file, fetched once into MERK_TEST_MODELS or ~/.cache/merk-tests."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from bot.models.builtin import BuiltinModel
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
    complete,
)

pytestmark = pytest.mark.timeout(300)  # the first run downloads 93 MB


@pytest.fixture
async def model(gguf: Path) -> AsyncIterator[BuiltinModel]:
    made = BuiltinModel(gguf, threads=1, context=512)
    yield made
    await made.close()


def request(*texts: str, system: str = "You are Merk, a friendly assistant.", max_tokens: int = 40) -> ModelRequest:
    """Turn by turn, the user's first."""
    messages = tuple(
        ChatMessage("assistant" if number % 2 else "user", (TextBlock(text),)) for number, text in enumerate(texts)
    )
    return ModelRequest(messages, (TextBlock(system),), max_tokens=max_tokens)


async def events_of(model: BuiltinModel, asked: ModelRequest) -> list[ModelEvent]:
    async with aclosing(model.stream(asked)) as stream:
        return [event async for event in stream]


async def test_an_answer_comes_in_pieces_and_ends_once(model: BuiltinModel) -> None:
    *deltas, end = await events_of(model, request("Hi"))
    assert isinstance(end, Finished)
    assert end.stop is StopReason.END
    assert end.text
    assert len(deltas) > 2
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == end.text
    assert end.model == "SmolLM2-135M-Instruct.Q4_1"
    assert end.usage.input > 10
    assert end.usage.output == pytest.approx(len(deltas), abs=2)


async def test_facts_beside_the_question_are_used(model: BuiltinModel) -> None:
    """This is all that so small a model can do, and why its traits ask for it."""
    traits = await model.traits()
    assert traits.facts_near_question
    assert not traits.can_call_tools
    assert not traits.can_follow_schema
    assert traits.context_tokens == 512
    question = (
        "Known facts:\n- Grandma lives in Kazan.\n- The rent is 940 euros.\n\n"
        "Question: Where does grandma live? Answer in one short sentence."
    )
    assert "Kazan" in (await complete(model, request(question))).text


async def test_a_conversation_that_is_too_long_is_cut_to_fit(model: BuiltinModel) -> None:
    """Numbers take more tokens than the first guess allows for, so it is corrected."""
    numbers = " ".join(map(str, range(1000, 1200)))
    finished = await complete(model, request(numbers, "I see.", numbers, "Yes.", f"{numbers} Hi", max_tokens=5))
    assert 250 < finished.usage.input + finished.usage.cache_read <= 512


async def test_a_cut_answer_says_so(model: BuiltinModel) -> None:
    finished = await complete(model, request("Count to one hundred.", max_tokens=8))
    assert finished.stop is StopReason.LENGTH
    assert finished.usage.output == 8


class Overheard:
    """The real server; `chunks` counts what it said, `read` is how much of the last prompt it has read."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.chunks = 0
        self.read: Json = {}

    def handle_chat_completions(self, body: Json, take: Callable[[Json], bool]) -> None:
        def overhear(chunk: Json) -> bool:
            self.chunks += 1
            self.read = chunk.get("prompt_progress") or self.read
            return take(chunk)

        self.server.handle_chat_completions(body, overhear)


@pytest.fixture
async def overheard(model: BuiltinModel) -> Overheard:
    await complete(model, request("Hi", max_tokens=1))
    heard = Overheard(vars(model)["_server"])
    vars(model)["_server"] = heard
    return heard


async def test_closing_the_stream_stops_the_model(model: BuiltinModel, overheard: Overheard) -> None:
    stream = model.stream(request("Tell me a very long story.", max_tokens=400))
    await anext(stream)
    await stream.aclose()
    await complete(model, request("Hi", max_tokens=3))
    assert overheard.chunks < 40


async def test_cancelling_while_the_prompt_is_read_stops_the_model(model: BuiltinModel, overheard: Overheard) -> None:
    slow = asyncio.create_task(complete(model, request("The cat sleeps on the shelf. " * 60)))
    async with asyncio.timeout(60):
        while not overheard.read:  # noqa: ASYNC110 - it is written by another thread
            await asyncio.sleep(0.001)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    await model.close()
    assert overheard.read["processed"] < overheard.read["total"]


async def test_requests_wait_for_each_other_and_keep_their_answers(model: BuiltinModel) -> None:
    alone = await complete(model, request("What is rain?", max_tokens=6))
    at_once = await asyncio.gather(
        complete(model, request("What is rain?", max_tokens=6)), complete(model, request("Hi", max_tokens=6))
    )
    assert at_once[0].text == alone.text
    assert at_once[1].text != alone.text


async def test_the_event_loop_runs_while_the_model_answers(model: BuiltinModel) -> None:
    await complete(model, request("Hi", max_tokens=1))
    work = asyncio.create_task(complete(model, request("What is rain?", max_tokens=30)))
    turns = 0
    while not work.done():
        await asyncio.sleep(0.001)
        turns += 1
    await work
    assert turns > 30


async def test_a_schema_is_refused(model: BuiltinModel) -> None:
    messages = (ChatMessage("user", (TextBlock("Hi"),)),)
    with pytest.raises(ModelError) as caught:
        await complete(model, ModelRequest(messages, schema={"type": "object"}))
    assert caught.value.failure is Failure.BAD_REQUEST


async def test_a_closed_model_says_so(model: BuiltinModel) -> None:
    await model.close()
    await model.close()
    with pytest.raises(ModelError) as caught:
        await complete(model, request("Hi"))
    assert caught.value.failure is Failure.UNREACHABLE


async def test_closing_ends_a_running_answer_with_an_error(model: BuiltinModel) -> None:
    stream = model.stream(request("Tell me a very long story.", max_tokens=400))
    async with aclosing(stream):
        await anext(stream)
        await model.close()
        with pytest.raises(ModelError):
            async for _ in stream:
                pass


@pytest.mark.parametrize("content", [None, b"", os.urandom(100_000), b"GGUF" + os.urandom(1000)])
async def test_a_file_that_is_no_model_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.gguf"
    if content is not None:
        path.write_bytes(content)
    model = BuiltinModel(path)
    with pytest.raises(ModelError, match="whole GGUF file") as caught:
        await complete(model, request("Hi"))
    assert caught.value.failure is Failure.NO_MODEL
    await model.close()


def test_nothing_is_printed_and_the_port_is_closed_to_others(gguf: Path) -> None:
    """llama.cpp talks a lot by default, and it always listens."""
    program = f"""
import asyncio, pathlib, sys
sys.path.insert(0, "")
from bot.models.builtin import BuiltinModel
from memory.ports import ChatMessage, ModelRequest, TextBlock, complete
import structlog
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
async def main():
    model = BuiltinModel(pathlib.Path({str(gguf)!r}), context=512)
    await complete(model, ModelRequest((ChatMessage("user", (TextBlock("Hi"),)),), max_tokens=3))
    pathlib.Path(sys.argv[1]).write_text(model._server.listening_address)
    sys.stdin.readline()
    await model.close()
asyncio.run(main())
"""
    address = gguf.with_suffix(f".{os.getpid()}.address")
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        while not address.exists() and child.poll() is None:
            time.sleep(0.05)
        url = address.read_text()
        assert url.startswith("http://127.0.0.1:")
        for path in ("/v1/models", "/props", "/slots", "/v1/chat/completions"):
            asked = Request(url + path, headers={"Origin": "http://example.org"})
            with pytest.raises(HTTPError, match=r"401|404|405|501") as caught, urlopen(asked):
                pass
            assert not caught.value.headers["Access-Control-Allow-Origin"]
            caught.value.close()
    finally:
        output, _ = child.communicate("\n", timeout=30)
        address.unlink(missing_ok=True)
    assert child.returncode == 0
    assert output == ""
