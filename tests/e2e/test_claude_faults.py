"""A whole Merk at the strict Messages API when that fails, or when a prompt is too long: one message to the person."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from memory.ports import Failure
from memory.storage.database import Database
from memory.storage.tables import compactions, messages, telemetry_events
from tests.fakes.claude import claude_house
from tests.fakes.house import House
from tests.fakes.messages_api import MessagesApi, texts
from tests.fakes.messages_api.faults import FaultKind

SONNET = "claude-sonnet-5-5"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.models.anthropic._RETRY_AFTER_SECONDS", 0.0)


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with MessagesApi() as api:
        yield api
        assert api.violations == []


async def events(house: House, name: str) -> list[dict[str, object]]:
    query = sa.select(telemetry_events.c.data).where(telemetry_events.c.name == name)
    async with house.database.read() as connection:
        return list((await connection.execute(query)).scalars())


FAULTS: list[tuple[FaultKind, Failure]] = [
    ("rate_limit", Failure.RATE),
    ("overloaded", Failure.OVERLOADED),
    ("server_error", Failure.OVERLOADED),
    ("unauthorized", Failure.AUTH),
    ("billing", Failure.SPEND),
    ("spend_limit", Failure.SPEND),
    ("own_spend_limit", Failure.SPEND),
    ("stream_error", Failure.OVERLOADED),
    ("disconnect", Failure.CUT),
    ("truncate", Failure.CUT),
    ("malformed", Failure.CUT),
    ("empty", Failure.CUT),
]


@pytest.mark.parametrize(("kind", "failure"), FAULTS)
async def test_p32_a_fault_is_one_message_and_the_next_turn_goes_on(
    database: Database, tmp_path: Path, api: MessagesApi, kind: FaultKind, failure: Failure
) -> None:
    """Whatever fails for good, before any text."""
    async with claude_house(database, tmp_path, api) as house:
        await house.say("Good morning to you")
        api.fault(kind, None, retry_after=0.01, after=0)
        (said,) = await house.say("What is a quince?")
        assert house.labels() == ["Try again"]
        assert [each["failure"] for each in await events(house, "chat.error")] == [failure]
        assert "Echo" not in said
        api.clear()
        (said,) = await house.say("Are you there now?")
        assert said.startswith("Echo: ")
        assert "What is a quince?" in texts(api.requests[-1])


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "disconnect", "truncate", "malformed", "stale_thinking"])
async def test_what_passes_is_not_noticed(
    database: Database, tmp_path: Path, api: MessagesApi, kind: FaultKind
) -> None:
    async with claude_house(database, tmp_path, api) as house:
        api.fault(kind, 1, retry_after=0.01, after=0)
        assert await house.say("What is a quince?") == ["Echo: What is a quince?"]


@pytest.mark.parametrize("kind", ["stream_error", "disconnect", "truncate", "malformed"])
async def test_what_was_shown_is_kept_and_said_to_be_cut(
    database: Database, tmp_path: Path, api: MessagesApi, kind: FaultKind
) -> None:
    """A break after the first words is never asked for again."""
    async with claude_house(database, tmp_path, api) as house:
        api.fault(kind, None, after=1)
        shown = await house.say("What is a quince, and what is it good for?")
        assert sum("Echo:" in text for text in shown) == 1
        assert len(api.requests) == 1
        api.clear()
        assert (await house.say("Go on"))[0].startswith("Echo: ")


async def test_a_refused_message_is_kept_from_the_model(database: Database, tmp_path: Path, api: MessagesApi) -> None:
    async with claude_house(database, tmp_path, api) as house:
        await house.say("Good morning to you")
        api.fault("refusal", 1, after=1)
        (said,) = await house.say("Something improper, please")
        assert "Echo" not in said
        await house.say("Good evening then")
        assert "improper" not in texts(api.requests[-1])


HARD = "Weigh the risks and trade-offs of our migration strategy against a redesign."


@pytest.mark.parametrize("kind", ["not_found", "forbidden"])
async def test_a_smart_model_that_is_not_for_us_is_asked_once_and_said_once(
    database: Database, tmp_path: Path, api: MessagesApi, kind: FaultKind
) -> None:
    """The default model answers what was meant for it, and no turn is lost."""
    api.on(model="opus").fault(kind, None)
    async with claude_house(database, tmp_path, api) as house:
        (first,) = await house.say(HARD)
        assert first.startswith(f"Echo: {HARD}")
        assert "claude-opus-5-5 cannot be used with this account" in first
        (second,) = await house.say(f"{HARD} Once more!")
        assert "cannot be used" not in second
        assert [request.model for request in api.requests] == ["claude-opus-5-5", SONNET, SONNET]
        missing = {"model": "claude-opus-5-5", "instead": SONNET}
        assert await events(house, "chat.model_missing") == [missing]
        assert [each["selectedModel"] for each in await events(house, "chat.model_auto_routed")] == [SONNET, SONNET]
        (said,) = await house.say("/model")
        assert "opus" not in said
    assert "cannot be used" not in texts(api.requests[-1])


async def test_a_key_that_no_model_takes_is_a_matter_of_the_key(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    api.fault("forbidden", None)
    async with claude_house(database, tmp_path, api) as house:
        (said,) = await house.say("What is a quince?")
        assert "does not accept our key" in said
        api.clear()
        await house.say("And now?")
        assert api.requests[-1].model == SONNET


# --- too long ----------------------------------------------------------------------------------------


async def talk(house: House, turns: int, *, length: int = 400) -> None:
    for number in range(turns):
        await house.say(f"Turn {number}: {'the garden needs water. ' * (length // 24)}")
        house.clock.advance(minutes=1)  # nobody types faster


async def test_a_prompt_that_is_too_long_is_made_shorter_before_it_is_sent(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    """Counted when near, at no cost; the person notices nothing."""
    api.shrink(SONNET, 5500)
    async with claude_house(database, tmp_path, api, betas=[]) as house:
        await talk(house, 9, length=1200)
        assert {request.status for request in api.requests} == {200}
        assert (await house.say("What was my first turn?"))[0].startswith("Echo: ")
        assert api.counted
        recovered = await events(house, "chat.ptl_recovery")
        assert recovered
        assert all(each["success"] and each["attempts"] == 1 for each in recovered)


@pytest.mark.parametrize("kind", ["too_long", "too_large"])
async def test_a_prompt_that_was_refused_as_too_long_is_sent_once_more(
    database: Database, tmp_path: Path, api: MessagesApi, kind: FaultKind
) -> None:
    async with claude_house(database, tmp_path, api, betas=[]) as house:
        await talk(house, 6)
        before = len(api.requests)
        api.on(background=False).fault(kind)
        assert await house.say("And now?") == ["Echo: And now?"]
        assert "Turn 0" not in texts(api.requests[-1])
        assert [r.status for r in api.requests[before:] if not r.scene.is_background] == [
            400 if kind == "too_long" else 413,
            200,
        ]


async def test_a_model_that_can_condenses_what_does_not_fit(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    async with claude_house(database, tmp_path, api) as house:
        await talk(house, 6)
        api.on(background=False).fault("too_long")
        assert await house.say("And now?") == ["Echo: And now?"]
        assert api.requests[-1].messages[0]["content"][0]["type"] == "compaction"
        assert len(await events(house, "chat.compaction_fired")) == 1


async def test_a_single_message_that_is_too_long_is_answered_with_what_to_do(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    """It does not stand in the way of the next one."""
    for model in (SONNET, "claude-opus-5-5"):
        api.shrink(model, 6000)
    async with claude_house(database, tmp_path, api) as house:
        (said,) = await house.say("word " * 8000)
        assert "too long for the model to read in one piece: it has" in said
        assert house.labels() == []
        assert await house.say("Short?") == ["Echo: Short?"]


# --- compaction --------------------------------------------------------------------------------------


async def condensed(house: House) -> list[tuple[object, str | None]]:
    async with house.database.read() as connection:
        rows = (await connection.execute(sa.select(compactions.c.block, compactions.c.text))).all()
    return [(row[0], row[1]) for row in rows]


async def test_a_long_chat_is_condensed_beside_its_answers(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    """The block goes back as it came, also after a restart, and what it stands for does not."""
    async with claude_house(database, tmp_path, api, compact_from=2000) as house:
        await talk(house, 16, length=600)
        await house.app.past.settled()
        [(block, _)] = await condensed(house)
    async with claude_house(database, tmp_path, api, compact_from=2000, before=house) as again:
        assert (await again.say("And now?"))[0].startswith("Echo: ")
        request = api.requests[-1]
        assert request.messages[0] == {"role": "assistant", "content": [block]}
        assert request.betas == {"compact-2026-09-04"}
        assert "Turn 0:" not in str(request.messages[1:])
        assert await events(again, "chat.compaction_fired")
        assert "compacted" in [each["reason"] for each in await events(again, "memory.cache_break")]


async def test_p26_what_is_forgotten_goes_from_a_compaction_too(
    database: Database, tmp_path: Path, api: MessagesApi
) -> None:
    """The block is dropped, with one that is being made; what it stood for is condensed anew."""
    api.on(background=True).reply(fn=lambda r: f"Ada: {texts(r)[:200]}" if "compaction" in r.body else None)
    async with claude_house(database, tmp_path, api, compact_from=2000) as house:
        await house.say("/remember My cat is called Ferdinand")
        await house.say("My cat is called Ferdinand, what do you say?")
        await talk(house, 16, length=600)
        await house.app.past.settled()
        [(block, _)] = await condensed(house)
        assert block
        await house.say("/forget Ferdinand")
        await house.press("Forget it") if "Forget it" in house.labels() else await house.press(house.labels()[0])
        assert await condensed(house) == [(None, None)]
        await house.say("What do you know?")
        await house.app.past.settled()
        assert "Ferdinand" not in str(await condensed(house))
        async with house.database.read() as connection:
            said = list((await connection.execute(sa.select(messages.c.text))).scalars())
        assert not any("Ferdinand" in text for text in said)


async def test_a_compaction_that_fails_costs_no_answer(database: Database, tmp_path: Path, api: MessagesApi) -> None:
    """Then the window is cut, and the summary stands in."""
    api.on(background=True).fault("compaction_unavailable", None)
    async with claude_house(database, tmp_path, api, compact_from=2000) as house:
        await talk(house, 26, length=600)
        await house.app.past.settled()
        assert [block for block, _ in await condensed(house) if block] == []
        chat = [request for request in api.requests if not request.scene.is_background]
        assert "Turn 3:" not in texts(chat[-1])
        assert (await house.say("And now?"))[0].startswith("Echo: ")
