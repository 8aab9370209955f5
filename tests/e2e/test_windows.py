"""A long chat whose provider condenses nothing: the window is cut in steps, and a summary stands before it."""

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.models.ollama import OllamaModel
from memory.ports import Tier
from memory.storage.database import Database
from memory.storage.tables import compactions, telemetry_events
from tests.fakes.claude import claude_house
from tests.fakes.house import House, house
from tests.fakes.messages_api import MessagesApi, Reply, Request, texts
from tests.fakes.ollama_api import OllamaApi

SUMMARY = {
    "title": "The garden",
    "text": "They spoke of the garden.",
    "request": "To hear of the garden.",
    "investigated": "",
    "learned": "The pond is deep.",
    "completed": "",
    "next_steps": "",
    "notes": "",
}


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with MessagesApi() as api:
        api.on(background=True).reply(json=SUMMARY)
        yield api
        assert api.violations == []


async def talk(at: House, turns: range, *, minutes: float = 1) -> None:
    for number in turns:
        await at.say(f"Turn {number}: the garden needs water.")
        await at.memory.learn()
        at.clock.advance(minutes=minutes)


def chats(api: MessagesApi) -> list[Request]:
    return [request for request in api.requests if not request.scene.is_background]


async def broken(database: Database) -> list[str]:
    query = sa.select(telemetry_events.c.data).where(telemetry_events.c.name == "memory.cache_break")
    async with database.read() as connection:
        return [data["reason"] for data in (await connection.execute(query)).scalars()]


def begins(request: Request) -> str:
    """What stands before the history and its first message."""
    return str(request.messages[:2])


async def test_the_summary_stands_in_one_place_until_the_window_is_cut_again(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    """What a turn asks begins with all that the turn before asked, but for one in seven."""
    async with claude_house(database, tmp_path, api, betas=[]) as at:
        await talk(at, range(1, 31))
    asked = chats(api)
    assert "pond is deep" not in texts(asked[12])
    later = asked[13:]
    assert all("pond is deep" in str(request.messages[0]) for request in later)
    assert all("pond is deep" not in str(request.messages[-1]) for request in later)
    cuts = [at for at, (one, two) in enumerate(pairwise(later)) if begins(one) != begins(two)]
    assert cuts == [6, 13]
    assert all(14 <= len(request.messages) <= 26 for request in later)
    assert await broken(database) == ["history_cut"] * 3


async def test_a_cold_cache_is_the_time_to_cut(database: Database, tmp_path: Path, api: MessagesApi) -> None:
    """After a pause of an hour everything is written anew, so the window begins anew, too."""
    async with claude_house(database, tmp_path, api, betas=[]) as at:
        await talk(at, range(1, 17))
        assert len(chats(api)[-1].messages) == 18
        at.clock.advance(minutes=90)
        await talk(at, range(17, 18))
        assert len(chats(api)[-1].messages) == 14


async def test_p26_what_is_forgotten_goes_from_the_summary_before_the_window(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    """The copy of the summary goes with it, at once."""
    api.on(background=True).reply(
        fn=lambda request: Reply(
            json.dumps({**SUMMARY, "learned": "Ferdinand" if "Ferdinand" in texts(request) else ""})
        )
    )
    async with claude_house(database, tmp_path, api, betas=[]) as at:
        await at.say("/remember My cat is called Ferdinand")
        await at.say("My cat is called Ferdinand, what do you say?")
        await talk(at, range(1, 16))
        assert "Ferdinand" in begins(chats(api)[-1])
        await at.say("/forget Ferdinand")
        await at.press("Forget it") if "Forget it" in at.labels() else await at.press(at.labels()[0])
        async with database.read() as connection:
            assert (await connection.execute(sa.select(compactions.c.text))).scalars().all() == [None]
        await talk(at, range(16, 18))
        assert "Ferdinand" not in texts(chats(api)[-1])


async def test_a_window_outlives_a_restart(database: Database, tmp_path: Path, api: MessagesApi) -> None:
    async with claude_house(database, tmp_path, api, betas=[]) as at:
        await talk(at, range(1, 15))
    async with claude_house(database, tmp_path, api, betas=[], before=at) as again:
        await talk(again, range(15, 16))
    before, after = chats(api)[-2:]
    assert after.messages[: len(before.messages) - 1] == [
        *before.messages[:-2],
        # the breakpoint has moved on
        {**before.messages[-2], "content": [{"type": "text", "text": before.messages[-2]["content"][0]["text"]}]},
    ]


async def test_what_was_too_long_once_is_not_too_long_every_turn(database: Database, tmp_path: Path) -> None:
    """In a small context the window is cut where the prompt fits; the next turn begins there."""
    async with OllamaApi() as api:
        api.on().reply(fn=lambda request: None if request.body.get("format") else "Very well. " * 40)
        model = OllamaModel(host=api.host, models={Tier.DEFAULT: "qwen3:8b"}, num_ctx=4096)
        async with house(database, tmp_path, provider=model) as at:
            for number in range(24):
                assert (await at.say(f"Turn {number}. {'The garden needs water. ' * 20}"))[0].startswith("Very well.")
                await at.memory.learn()
                at.clock.advance(minutes=1)
        await model.close()
        assert not [request for request in api.requests if request.is_cut]
        async with database.read() as connection:
            query = sa.select(telemetry_events.c.data).where(telemetry_events.c.name == "chat.ptl_recovery")
            recovered = list((await connection.execute(query)).scalars())
        assert 1 <= len(recovered) <= 8
        assert all(each["success"] for each in recovered)


async def test_the_api_says_why_it_missed_its_cache_where_we_see_no_reason(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    """Told on request, by the id of the answer before; that the newest turn is a new one is no reason."""
    async with claude_house(database, tmp_path, api, diagnostics=True) as at:
        await talk(at, range(1, 3))
        assert "diagnostics" not in chats(api)[0].body
        asked = chats(api)[-1].body["diagnostics"]
        assert asked == {"previous_message_id": (chats(api)[0].reply or {})["id"]}
        assert await broken(database) == []
        before = api.model.diagnosis.answered[(chats(api)[-1].reply or {})["id"]]
        before.body["tools"] = before.body["tools"][1:]  # as if something on the way had changed them
        await talk(at, range(3, 4))
        assert await broken(database) == ["tools_changed"]
