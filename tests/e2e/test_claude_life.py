"""A whole Merk against the strict Messages API: random lives, of which no request is refused and no turn is lost.

`LIFE_TURNS=30 pytest tests/e2e/test_claude_life.py` lives a short life.
"""

import os
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from memory.storage.database import Database
from memory.storage.tables import messages, sessions, telemetry_events
from tests.fakes.claude import claude_house
from tests.fakes.house import House
from tests.fakes.messages_api import MessagesApi, Reply, Request

TURNS = int(os.environ.get("LIFE_TURNS", "200"))
TOOLS: dict[str, dict[str, Any]] = {
    "search_memory": {"query": "the garden"},
    "remember_fact": {"text": "I have a garden"},
    "read_work": {},
    "list_reminders": {},
}
LONG = "The garden needs water, light and patience, and so do I. "


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.models.anthropic._RETRY_AFTER_SECONDS", 0.0)


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with MessagesApi() as api:
        yield api


async def scalars(database: Database, query: sa.Select[Any]) -> list[Any]:
    async with database.read() as connection:
        return list((await connection.execute(query)).scalars())


async def events(database: Database, name: str) -> list[dict[str, Any]]:
    return await scalars(database, sa.select(telemetry_events.c.data).where(telemetry_events.c.name == name))


class Life:
    """A session of random turns: whatever happens, each is answered."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.turn = 0

    def reply(self, request: Request) -> Any:
        """Call tools in some turns, several rounds of them sometimes."""
        if request.body.get("compaction") is not None or request.schema is not None:
            return None
        if not request.tools or request.body.get("tool_choice"):
            return f"Answer {self.turn}."
        offered = [name for name in TOOLS if any(tool["name"] == name for tool in request.tools)]
        if self.random.random() < 0.3:
            names = self.random.sample(offered, self.random.randint(1, min(2, len(offered))))
            return Reply("Let me see." if self.random.random() < 0.5 else "", tuple((n, TOOLS[n]) for n in names))
        return f"Answer {self.turn}."

    async def step(self, house: House) -> None:
        """One turn, and what happens around it."""
        self.turn += 1
        what = self.random.choice(["fact", "forget", "pin", "pause", "learn", *["talk"] * 5])
        match what:
            case "fact":
                await house.say(f"/remember Number {self.turn} is {self.random.choice(['red', 'blue', 'green'])}")
            case "forget":
                await house.say("/forget number")
            case "pin":
                tier = self.random.choice([None, "small", "default", "smart"])
                async with house.database.write() as connection:
                    await connection.execute(sessions.update().values(pinned_tier=tier))
            case "pause":
                house.clock.advance(minutes=self.random.choice([1, 10, 90, 3000]))
            case "learn":
                await house.memory.learn()
            case _:
                pass
        said = f"Turn {self.turn}. {LONG * self.random.randint(1, 12)}"
        shown = await house.say(said)
        assert any(f"Answer {self.turn}." in text for text in shown), (self.turn, what, shown)


@pytest.mark.parametrize(("seed", "betas"), [(1, ["compact-2026-09-04"]), (2, ["compact-2026-01-12"]), (3, [])])
async def test_p56_a_long_life_is_never_refused_and_no_turn_is_lost(
    database: Database, tmp_path: Path, api: MessagesApi, monkeypatch: pytest.MonkeyPatch, seed: int, betas: list[str]
) -> None:
    """Tools, model switches, changing facts, restarts and compactions, on one history."""
    monkeypatch.setattr("bot.models.anthropic._LEAST_THRESHOLD", 4000)
    for name, spec in api.models.items():
        api.models[name] = replace(spec, least_trigger=4000)
    life = Life(seed)
    api.on(background=None).reply(fn=life.reply)
    house = None
    while life.turn < TURNS:
        async with claude_house(database, tmp_path, api, before=house, betas=betas, compact_from=2000) as house:
            for _ in range(life.random.randint(5, 15)):
                await life.step(house)
                if life.random.random() < 0.5:
                    await house.app.past.settled()
    assert api.violations == []
    model_said = sa.select(messages.c.id).where(messages.c.role == "assistant", messages.c.model.is_not(None))
    assert len(await scalars(database, model_said)) == life.turn
    fired = await events(database, "chat.compaction_fired")
    assert bool(fired) is bool(betas)
    assert await events(database, "chat.error") == []
