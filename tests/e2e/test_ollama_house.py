"""A whole Merk on the Ollama adapter: a window by its real context size, and never a prompt that is cut unseen."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa

from bot.models.ollama import OllamaModel
from memory.ports import Tier
from memory.storage.database import Database
from memory.storage.tables import messages, telemetry_events
from tests.fakes.house import house
from tests.fakes.ollama_api import OllamaApi

TURNS = 40


@pytest.fixture
async def api() -> AsyncIterator[OllamaApi]:
    async with OllamaApi() as api:
        yield api
        assert api.violations == []


async def scalars(database: Database, query: sa.Select[Any]) -> list[Any]:
    async with database.read() as connection:
        return list((await connection.execute(query)).scalars())


async def test_no_prompt_is_cut_unseen_and_no_turn_is_lost(database: Database, tmp_path: Path, api: OllamaApi) -> None:
    """Long messages in a small context, with facts and restarts; what went in is counted."""
    chance = random.Random(7)
    api.on().reply(fn=lambda request: None if request.body.get("format") else "Very well. " * 30)
    model = OllamaModel(host=api.host, models={Tier.DEFAULT: "qwen3:8b"}, num_ctx=8192)
    opened, turn = None, 0
    while turn < TURNS:
        async with house(database, tmp_path, before=opened, provider=model) as opened:
            for _ in range(chance.randint(5, 12)):
                turn += 1
                if chance.random() < 0.3:
                    await opened.say(f"/remember Number {turn} is green")
                shown = await opened.say(f"Turn {turn}. " + "The garden needs water. " * chance.randint(1, 120))
                assert shown[0].startswith("Very well."), (turn, shown)
                opened.clock.advance(minutes=1)
    await model.close()
    assert not [request for request in api.requests if request.is_cut]
    query = sa.select(messages.c.memory_trace).where(messages.c.model.is_not(None))
    traces = await scalars(database, query)
    assert len(traces) == turn
    assert all(trace["usage"][0]["input"] > 0 and trace["usage"][0]["output"] > 0 for trace in traces)
    recovered = sa.select(telemetry_events.c.data).where(telemetry_events.c.name == "chat.ptl_recovery")
    assert all(cast("dict[str, Any]", data)["success"] for data in await scalars(database, recovered))


async def test_a_message_that_does_not_fit_is_answered_with_what_to_do(
    database: Database, tmp_path: Path, api: OllamaApi
) -> None:
    model = OllamaModel(host=api.host, models={Tier.DEFAULT: "qwen3:8b"}, num_ctx=8192)
    async with house(database, tmp_path, provider=model) as opened:
        (said,) = await opened.say("word " * 8000)
        assert "too long for the model to read in one piece" in said
        assert (await opened.say("Short?"))[0]
    await model.close()
