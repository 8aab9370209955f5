"""Which model answers, what it costs, and what people are told of it: a whole Merk on fakes at its edges."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.config import Budget, Model
from memory.ports import Billed, Failure, ModelRequest, Purpose, Tier, ToolCall, ToolResult, Usage
from memory.storage.database import Database
from memory.storage.tables import messages, spend, telemetry_events
from tests.fakes.house import house
from tests.fakes.model import Calls, Fails, Says, call
from tests.unit.handlers.life import OWNER, life

SONNET, OPUS, HAIKU = "claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"
HARD = "Compare the two architectures, weigh the trade-offs and name the risks of each."
EASY = "What's the capital of Mongolia?"
BEN: dict[str, Any] = {"from": "43", "chat": "43"}
DEAR = Billed(SONNET, Usage(50_000, 0))
"""A tenth of a dollar."""


def says(text: str, model: str, *usage: int) -> Says:
    return Says(text, billed=Billed(model, Usage(*usage)))


async def rows(database: Database, query: sa.Select[Any]) -> list[Any]:
    async with database.read() as connection:
        return list((await connection.execute(query)).scalars())


# --- which model -----------------------------------------------------------------------------------


async def test_a_hard_question_goes_to_smart_and_a_plain_one_does_not(database: Database, tmp_path: Path) -> None:
    """What was chosen, why, and what it cost stand with the answer and in telemetry."""
    async with house(database, tmp_path, says("A", SONNET, 1000, 100), says("B", OPUS, 1000, 100)) as opened:
        await opened.say(EASY)
        await opened.say(HARD)
        assert [request.tier for request in opened.model.requests] == [Tier.DEFAULT, Tier.SMART]
    traces = await rows(database, sa.select(messages.c.memory_trace).where(messages.c.role == "assistant"))
    assert [trace["routing"]["tier"] for trace in traces] == ["default", "smart"]
    assert [trace["nano_usd"] for trace in traces] == [3_000_000, 6_000_000]
    events = await rows(
        database, sa.select(telemetry_events.c.data).where(telemetry_events.c.name == "chat.model_auto_routed")
    )
    assert [event["tier"] for event in events] == ["default", "smart"]
    assert all(event["selectedModel"] == "scripted" and 0 < event["confidence"] <= 1 for event in events)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.usefixtures("database")
async def test_a_matter_stays_with_its_model(tmp_path: Path, restarts: bool) -> None:
    """Also after a restart; another matter does not."""
    async with life(tmp_path, restarts=restarts) as lived:
        for text in (HARD, "and for three people?", EASY, "why?"):
            await lived.say(text)
        assert [request.tier for request in lived.requests] == [Tier.SMART, Tier.SMART, Tier.DEFAULT, Tier.DEFAULT]


@pytest.mark.usefixtures("database")
async def test_a_chat_can_be_pinned_and_let_go(tmp_path: Path) -> None:
    """By buttons or by a word; it holds over restarts, and for this chat alone."""
    async with life(tmp_path, restarts=True) as lived:
        [card] = await lived.say("/model")
        assert card == "scripted answers everything here: there is no other model to choose from."
        async with lived.open():
            lived.house.model.names = {Tier.SMART: "clever"}
        [card] = await lived.say("/model")
        assert "Each message goes to the model that fits it" in card
        await lived.press("Smart: clever")
        await lived.say("hi")
        await lived.say("/model small")
        await lived.say(HARD)
        await lived.say("/newchat")
        await lived.say(EASY)
        assert [request.tier for request in lived.requests] == [Tier.SMART, Tier.SMALL, Tier.DEFAULT]
        [refused] = await lived.say("/model huge")
        assert "/model auto, small, default or smart" in refused


async def test_trivial_goes_to_small_where_that_is_set(database: Database, tmp_path: Path) -> None:
    """And nothing else does."""
    async with house(database, tmp_path, models=Model(trivial_to_small=True)) as opened:
        for text in ("hi", EASY, "thanks!"):
            await opened.say(text)
        assert [request.tier for request in opened.model.requests] == [Tier.SMALL, Tier.DEFAULT, Tier.SMALL]


async def test_work_that_failed_once_gets_the_smart_model(database: Database, tmp_path: Path) -> None:
    """Until it goes well again."""
    script = (call("write_draft", title="Mail", text="Dear all"), "Here.", call("write_draft"), "Sorry.", "Better.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Draft a mail to my neighbours")
        await opened.say("Make it friendlier")
        await opened.say("Make the mail shorter")
        assert [request.tier for request in opened.model.requests][-1] is Tier.SMART


# --- advice ----------------------------------------------------------------------------------------


async def test_the_model_may_ask_for_advice_once(database: Database, tmp_path: Path) -> None:
    """The advisor sees the question, no tools and nothing of the chat; the second question of a turn is refused."""
    asked = {"question": "Sell or keep?", "context": "A house, two heirs"}
    script = (
        Calls((ToolCall("a", "consult_advisor", asked), ToolCall("b", "consult_advisor", asked))),
        says("Keep it.", OPUS, 200, 50),
        "You might keep it.",
    )
    async with house(database, tmp_path, *script, has_advisor=True) as opened:
        await opened.say("My brother is called Tim")
    first, advice, last = opened.model.requests
    assert any(tool.name == "consult_advisor" for tool in first.tools)
    assert (advice.tier, advice.tools, len(advice.messages)) == (Tier.ADVISOR, (), 1)
    assert "Tim" not in str(advice)
    results = {block.call_id: block for block in last.messages[-1].blocks if isinstance(block, ToolResult)}
    assert "Keep it." in str(results["a"])
    assert "may be called 1 times" in str(results["b"])
    assert await rows(database, sa.select(spend.c.purpose).order_by(spend.c.id)) == ["chat", "advisor", "chat"]
    [event] = await rows(
        database, sa.select(telemetry_events.c.data).where(telemetry_events.c.name == "chat.advisor_auto_triggered")
    )
    assert (event["trigger"], event["executorModel"], event["model"]) == ("tool", "scripted", OPUS)
    assert event["durationMs"] >= 0


async def test_the_smart_model_is_offered_no_advisor(database: Database, tmp_path: Path) -> None:
    """It would ask itself."""
    async with house(database, tmp_path, has_advisor=True) as opened:
        await opened.say(HARD)
        assert not any(tool.name == "consult_advisor" for tool in opened.model.requests[0].tools)


async def test_an_advisor_that_does_not_answer_costs_no_answer(database: Database, tmp_path: Path) -> None:
    """The model is told to decide by itself."""
    script = call("consult_advisor", question="Which?", context=""), Fails(Failure.OVERLOADED), "The first."
    async with house(database, tmp_path, *script, has_advisor=True) as opened:
        assert await opened.say("Which of the two colours?") == ["The first."]


# --- who answered ------------------------------------------------------------------------------------


async def test_a_stand_in_is_named_under_the_answer_and_not_in_the_log(database: Database, tmp_path: Path) -> None:
    """The person knows; the history that models see is not littered."""
    async with house(database, tmp_path, Says("Ulaanbaatar.", stand_in="Ollama (qwen3)")) as opened:
        [said] = await opened.say(EASY)
        assert "Ollama (qwen3)" in said
    assert await rows(database, sa.select(messages.c.text).where(messages.c.role == "assistant")) == ["Ulaanbaatar."]


def _in_the_background(request: ModelRequest) -> Says:
    """One and the same summary, and nothing worth observing."""
    if request.account.purpose is Purpose.EXTRACTION:
        return says(json.dumps({"observations": []}), HAIKU, 2000, 100)
    told = ("title", "text", "request", "investigated", "learned", "completed", "next_steps", "notes")
    return says(json.dumps(dict.fromkeys(told, "Mongolia")), HAIKU, 3000, 200)


# --- the bill ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("database")
async def test_the_bill_of_a_scripted_day_is_the_one_worked_out_by_hand(tmp_path: Path) -> None:
    """By person and purpose, to the nano dollar, over restarts, past midnight of the tenant's zone."""
    async with life(tmp_path, restarts=True, has_advisor=True, **OWNER) as lived:
        # Ada asks Sonnet: 1,200 in and 300 out, 5,000 written to an hour's cache: 2,400 + 3,000 + 20,000 millionths
        await lived.say(EASY, says("Ulaanbaatar.", SONNET, 1200, 300, 0, 5000, 5000))
        # Ben, in his own chat: 900 in, 150 out, 5,000 read: 1,800 + 1,500 + 500
        await lived.say("how long do I boil eggs?", says("Six minutes.", SONNET, 900, 150, 5000), **BEN)
        # Ada, something hard, of Opus: 2,000 in, 1,000 out, 6,000 written: 8,000 + 20,000 + 48,000
        await lived.say(HARD, says("The first.", OPUS, 2000, 1000, 0, 6000, 6000))
        # Ben's model consults: 1,000 in and 50 out (2,500); advice 400 in and 200 out of Opus (5,600); 1,500 in, 80 out
        # and 900 read (3,000 + 800 + 90)
        asked = ToolCall("c", "consult_advisor", {"question": "Which?", "context": "eggs"})
        await lived.say(
            "which pan for eggs?",
            Calls((asked,), billed=Billed(SONNET, Usage(1000, 50))),
            says("Iron.", OPUS, 400, 200),
            says("The iron one.", SONNET, 1500, 80, 900),
            **BEN,
        )
        # in the background Haiku condenses both chats, 3,000 in and 200 out each (300 + 100 millionths), and looks
        # through what is worth it for observations, 2,000 in and 100 out each time (200 + 50)
        async with lived.open():
            lived.house.clock.advance(minutes=10)
            lived.house.model.always = _in_the_background
            await lived.house.memory.learn()
        ada, ben, advice, background = 25_400_000 + 76_000_000, 3_800_000 + 2_500_000 + 3_890_000, 5_600_000, 800_000
        looked = 250_000 * sum(request.account.purpose is Purpose.EXTRACTION for request in lived.requests)
        assert looked
        shown = (await lived.say("/usage"))[-1]
        assert "Today: $0.10" in shown
        assert "Everybody, today: $0.12" in shown
        assert "Person 43: $0.02" in shown
        assert "advice: $0.0056" in shown
        assert "summaries: $0.0008" in shown
        [of_ben] = await lived.say("/usage", **BEN)
        assert "Today: $0.02" in of_ben
        assert "Everybody" not in of_ben
        by_person = sa.select(sa.func.sum(spend.c.nano_usd)).group_by(spend.c.user_id).order_by(spend.c.user_id)
        assert await lived.rows(by_person) == [background + looked, ada, ben + advice]
        by_purpose = sa.select(sa.func.sum(spend.c.nano_usd)).group_by(spend.c.purpose).order_by(spend.c.purpose)
        assert await lived.rows(by_purpose) == [advice, ada + ben, looked, background]
        async with lived.open():
            lived.house.clock.advance(hours=12)  # it was 12:10 UTC, 13:10 in Berlin
        shown = (await lived.say("/usage"))[-1]
        assert "Today: $0.00" in shown
        assert "This month: $0.10" in shown


async def test_a_model_without_a_price_is_said_to_have_none(database: Database, tmp_path: Path) -> None:
    """Tokens in the place of an amount that nobody knows."""
    async with house(database, tmp_path) as opened:
        await opened.say(EASY)
        [shown] = await opened.say("/usage")
        assert "No price is known for scripted" in shown
        assert "$" not in shown.split("Left")[0]


# --- limits ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("database")
async def test_a_persons_limit_warns_once_stops_and_holds_over_two_restarts(tmp_path: Path) -> None:
    """At 80 % a word, at 100 % a sentence with what to do; nothing is asked any more, the message is kept."""
    options: dict[str, Any] = OWNER | {"budget": Budget(per_user_daily_usd=0.5)}
    async with life(tmp_path, restarts=True, **options) as lived:
        await lived.say("hi")  # the owner has a chat of their own
        for number in range(5):
            said = await lived.say(f"{EASY} {number}", Says("Ulaanbaatar.", billed=DEAR), **BEN)
            assert any("80%" in text for text in said) is (number == 3)
        asked = len(lived.requests)
        for _ in range(2):
            said = await lived.say(EASY, **BEN)
            assert any("Your budget for today is used up" in text for text in said)
        assert len(lived.requests) == asked
        told = [shown for shown in lived.shown.values() if "Person 43 has used up the budget" in shown.text]
        assert [shown.place.chat for shown in told] != ["43"]
        assert len(told) == 1
        await lived.press("Lift for today")
        said = await lived.press("Try again", **BEN)
        assert "Very well." in said
        async with lived.open():
            lived.house.clock.advance(hours=24)
        await lived.say(EASY, *[Says("U.", billed=replace(DEAR, usage=Usage(300_000, 0)))], **BEN)
        said = await lived.say(EASY, **BEN)
        assert any("Your budget for today is used up" in text for text in said)  # lifted for a day, not for ever


async def test_an_owner_who_lifts_their_own_limit_need_not_ask_again(database: Database, tmp_path: Path) -> None:
    """The message that was not answered is answered by the next tap."""
    options: dict[str, Any] = OWNER | {"budget": Budget(per_user_daily_usd=0.0)}
    async with house(database, tmp_path, **options) as opened:
        await opened.say(EASY)
        assert opened.labels() == ["Lift for today", "Try again"]
        await opened.press("Lift for today")
        assert opened.labels() == ["Try again"]
        assert "Very well." in await opened.press("Try again")


async def test_only_an_owner_lifts_a_limit(database: Database, tmp_path: Path) -> None:
    """A guest's press on the owner's card does nothing; the button acts only for the owner."""
    options: dict[str, Any] = OWNER | {"budget": Budget(per_user_daily_usd=0.0)}
    async with house(database, tmp_path, **options) as opened:
        await opened.say("/help")
        await opened.say(EASY, **BEN)
        await opened.press("Lift for today", **BEN)
        said = await opened.say(EASY, **BEN)
        assert any("Your budget for today is used up" in text for text in said)
        assert opened.model.requests == []


async def test_p55_background_work_that_reached_its_limit_is_told_to_an_owner(
    database: Database, tmp_path: Path
) -> None:
    """Memory goes on without a model; the owner hears of it once and can lift it."""
    options: dict[str, Any] = OWNER | {"budget": Budget(background_daily_usd=0.0)}
    async with house(database, tmp_path, **options) as opened:
        said = await opened.say("I moved to Hamburg with my two kids in May")
        assert any("Work in the background" in text for text in said)
        opened.clock.advance(minutes=10)
        before = len(opened.model.requests)
        assert await opened.memory.learn() == 1
        assert len(opened.model.requests) == before
        assert not any("Work in the background" in text for text in await opened.say("hello my friend"))
        await opened.press("Lift for today")
        [shown] = await opened.say("/usage")
        assert "Background today" not in shown


async def test_who_writes_too_fast_is_answered_later(database: Database, tmp_path: Path) -> None:
    """What was written is kept, one sentence says so, and a tap answers it."""
    async with house(database, tmp_path, budget=Budget(messages_per_minute=2)) as opened:
        for text in ("one", "two"):
            assert await opened.say(text) == ["Very well."]
        [told] = await opened.say("three")
        assert "More than 2 messages a minute" in told
        assert await opened.say("four") == []
        assert await rows(database, sa.select(sa.func.count()).where(messages.c.role == "user")) == [4]
        assert "Very well." in await opened.press("Answer now")
        opened.clock.advance(seconds=61)
        assert await opened.say("five") == ["Very well."]


async def test_amounts_are_nobody_elses_business(database: Database, tmp_path: Path) -> None:
    """In a group an owner sees their own spending and no list of people."""
    async with house(database, tmp_path, **OWNER) as opened:
        await opened.say(EASY)
        [shown] = await opened.say("/usage", chat="-5", group=True)
        assert "Everybody" not in shown
