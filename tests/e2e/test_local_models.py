"""A whole Merk on real local models, over Ollama's wire and built in: what must hold of Claude holds here, too.

`LIFE_TURNS=60` lives longer; `MERK_TEST_TOOL_MODEL` names a GGUF file that can call tools.
"""

import asyncio
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import sqlalchemy as sa

from bot.models.builtin import BuiltinModel
from bot.models.ollama import OllamaModel
from memory.ports import (
    Failure,
    Finished,
    LanguageModel,
    ModelRequest,
    StopReason,
    TextDelta,
    Tier,
    ToolSpec,
    complete,
)
from memory.storage.database import Database
from memory.storage.tables import messages, sessions, telemetry_events
from tests.fakes.histories import user
from tests.fakes.house import house
from tests.fakes.ollama_api.local import LocalOllama, Weights
from tests.fakes.ollama_api.records import FaultKind
from tests.fakes.ollama_api.records import OllamaModel as Installed

pytestmark = pytest.mark.timeout(300)  # the first run downloads 93 MB

TURNS = int(os.environ.get("LIFE_TURNS", "8"))
CONTEXT = 384
"""Tokens: what does not fit into it is soon said, and soon read."""
WIDER = 512
SMALL, LARGE = "smollm2:135m", "smollm2:135m-long"
MODELS = {Tier.DEFAULT: SMALL, Tier.SMART: LARGE}
LONG = "The garden needs water, light and patience, and so do I. "
Provider = Literal["ollama", "builtin"]


@pytest.fixture
async def api(gguf: Path) -> AsyncIterator[LocalOllama]:
    """Two models, of which one has the longer context: for want of another small one, both have the same weights.

    They end with their first sentence, so that a test need not wait for more.
    """
    weights = {name: Weights(gguf, stop=(".", "!", "?", "\n")) for name in MODELS.values()}
    async with LocalOllama(weights, [Installed(SMALL, ("completion",), CONTEXT)]) as api:
        yield api
        assert api.violations == []


@asynccontextmanager
async def opened(provider: Provider, api: LocalOllama, gguf: Path) -> AsyncGenerator[LanguageModel]:
    model: LanguageModel
    if provider == "ollama":
        model = OllamaModel(host=api.host, models=MODELS, num_ctx=WIDER)
    else:
        model = BuiltinModel(gguf, threads=1, context=CONTEXT)
    try:
        yield model
    finally:
        await model.close()


async def scalars(database: Database, query: sa.Select[Any]) -> list[Any]:
    async with database.read() as connection:
        return list((await connection.execute(query)).scalars())


async def events(database: Database, name: str) -> list[dict[str, Any]]:
    return await scalars(database, sa.select(telemetry_events.c.data).where(telemetry_events.c.name == name))


@pytest.mark.parametrize("provider", ["ollama", "builtin"])
async def test_p56_no_turn_of_a_long_life_is_lost_and_no_prompt_is_cut_unseen(
    database: Database, tmp_path: Path, api: LocalOllama, gguf: Path, provider: Provider
) -> None:
    """Changing facts, pins, restarts and messages of all lengths, in contexts of 384 and 512 tokens."""
    chance, turn, before = random.Random(5), 0, None
    while turn < TURNS:
        async with opened(provider, api, gguf) as model, house(database, tmp_path, before=before, provider=model) as at:
            before = at
            for _ in range(chance.randint(3, 6)):
                turn += 1
                match chance.choice(["fact", "forget", "pin", "talk", "talk"]):
                    case "fact":
                        await at.say(f"/remember Number {turn} is green")
                    case "forget":
                        await at.say("/forget number")
                    case "pin":
                        tier = chance.choice([None, Tier.SMALL, Tier.DEFAULT, Tier.SMART])
                        async with database.write() as connection:
                            await connection.execute(sessions.update().values(pinned_tier=tier))
                    case _:
                        pass
                shown = await at.say(f"Turn {turn}. {LONG * chance.randint(1, 8)}Answer with one word: yes or no?")
                assert shown, turn
                at.clock.advance(minutes=1)
    assert await events(database, "chat.error") == []
    model_said = sa.select(messages.c.memory_trace).where(messages.c.model.is_not(None))
    used = [trace["usage"][0] for trace in await scalars(database, model_said)]
    assert len(used) == turn
    sizes = [each["input"] + each["cache_read"] + each["output"] for each in used]
    assert all(0 < size <= WIDER for size in sizes)
    assert all(each["output"] for each in used)
    assert not [request for request in api.requests if request.is_cut]
    assert all(recovered["success"] for recovered in await events(database, "chat.ptl_recovery"))
    assert {request.num_ctx for request in api.requests} <= {CONTEXT, WIDER}


@pytest.mark.parametrize("provider", ["ollama", "builtin"])
async def test_a_message_that_is_too_long_gets_an_answer_or_what_to_do(
    database: Database, tmp_path: Path, api: LocalOllama, gguf: Path, provider: Provider
) -> None:
    """It does not stand in the way of the next one."""
    async with opened(provider, api, gguf) as model, house(database, tmp_path, provider=model) as at:
        (said,) = await at.say("word " * 3000)
        assert provider == "builtin" or "too long for the model to read in one piece" in said
        assert (await at.say("Say one word."))[0]
    assert not [request for request in api.requests if request.is_cut]


FAULTS: list[tuple[FaultKind, int, Failure]] = [
    ("busy", 0, Failure.OVERLOADED),
    ("server_error", 0, Failure.OVERLOADED),
    ("disconnect", 0, Failure.UNREACHABLE),
    ("disconnect", 1, Failure.CUT),
    ("truncate", 1, Failure.CUT),
    ("stream_error", 1, Failure.CUT),
]
"""With how many pieces arrive before it."""


async def test_p32_a_fault_is_one_message_and_the_next_turn_goes_on(
    database: Database, tmp_path: Path, api: LocalOllama, gguf: Path
) -> None:
    """Before the first word and after it."""
    async with opened("ollama", api, gguf) as model, house(database, tmp_path, provider=model) as at:
        for kind, after, failure in FAULTS:
            api.fault(kind, None, path="/api/chat", after=after)
            assert await at.say(f"Name a fruit with {len(kind)} letters, in one word.")
            assert at.labels() == ["Try again"]
            assert (await events(database, "chat.error"))[-1]["failure"] == failure
            api.clear()
            assert await at.say("And a tree, in one word.")
            assert f"with {len(kind)} letters" in api.requests[-1].texts()
            at.clock.advance(minutes=1)
    assert len(await events(database, "chat.error")) == len(FAULTS)


async def test_whoever_stops_listening_stops_the_model(api: LocalOllama) -> None:
    """It is free for the next question at once."""
    model = OllamaModel(host=api.host, models=MODELS, num_ctx=CONTEXT)
    async with aclosing(
        model.stream(ModelRequest((user("Count from 1 to 500, with commas."),), max_tokens=400))
    ) as answer:
        assert isinstance(await anext(answer), TextDelta)
    finished = await asyncio.wait_for(complete(model, ModelRequest((user("Hello"),), max_tokens=5)), 20)
    assert finished.usage.output <= 5
    assert api.requests[0].end == "client left"
    await model.close()


async def test_an_answer_never_runs_out_of_the_window(api: LocalOllama) -> None:
    """A prompt that leaves less room than is wanted gets a shorter answer: the model forgets nothing meanwhile."""
    model = OllamaModel(host=api.host, models=MODELS, num_ctx=CONTEXT)
    request = ModelRequest((user(f"{LONG * 8}Count from 1 to 1000, with commas."),), max_tokens=8192)
    finished = await complete(model, request)
    assert finished.usage.input + finished.usage.output <= CONTEXT
    assert finished.stop in (StopReason.LENGTH, StopReason.END)
    await model.close()


async def test_hard_questions_go_to_the_other_local_model_and_tokens_are_counted_for_both(
    database: Database, tmp_path: Path, api: LocalOllama, gguf: Path
) -> None:
    async with (
        opened("ollama", api, gguf) as model,
        house(database, tmp_path, provider=model, owners=["fake:42"]) as at,
    ):
        await at.say("Which tree keeps its leaves in winter? One word, please.")
        await at.say("Weigh the risks and trade-offs of our migration strategy against a redesign. Two words, please.")
        routed = await events(database, "chat.model_auto_routed")
        assert [(each["selectedModel"], each["tier"]) for each in routed] == [(SMALL, "default"), (LARGE, "smart")]
        assert {request.body["model"] for request in api.requests} == {SMALL, LARGE}
        [usage] = await at.say("/usage")
        assert "token" in usage
        assert "$" not in usage.split("\n")[1]
        assert SMALL in usage
        assert LARGE in usage


@pytest.mark.skipif(not os.environ.get("MERK_TEST_TOOL_MODEL"), reason="names no GGUF file of a model with tools")
async def test_a_model_that_can_calls_a_tool_and_reads_its_result() -> None:
    """With Qwen2.5-Coder, whose own template writes calls as text, a `.jinja` file of the same name serves."""
    path = Path(os.environ["MERK_TEST_TOOL_MODEL"])
    template = path.with_suffix(".jinja")
    weights = Weights(path, template.read_text(encoding="utf-8") if template.is_file() else None)
    tool = ToolSpec(
        "weather", "Tell the weather of a city.", {"type": "object", "properties": {"city": {"type": "string"}}}
    )
    async with LocalOllama({"tools": weights}, [Installed("tools", ("completion", "tools"), 2048)]) as api:
        model = OllamaModel(host=api.host, models={Tier.DEFAULT: "tools"}, num_ctx=2048)
        asked = ModelRequest((user("What is the weather in Berlin?"),), tools=(tool,), max_tokens=200)
        finished: Finished = await complete(model, asked)
        assert finished.stop is StopReason.TOOLS
        assert finished.calls[0].name == "weather"
        assert "Berlin" in str(finished.calls[0].input)
        await model.close()
        assert api.violations == []
