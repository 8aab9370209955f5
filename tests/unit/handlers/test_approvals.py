"""Calls that need a tap: parked with exactly what will be done, run once, and told to the model as they ended."""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from handlers import prompt
from handlers.answering import calls
from handlers.answering.calls import Call, Made, Outcome, Tool
from handlers.answering.rounds import MAX_ROUNDS, Answer, Rounds
from handlers.locales import phrases
from handlers.types import Incoming, Place, Request, Sender
from handlers.work.works import Work, Works
from memory.ports import ChatMessage, Failure, ModelRequest, TextBlock, ToolCall, ToolResult, ToolSpec
from memory.storage.database import Database
from memory.storage.tables import confirmations, facts
from memory.types import Audience, Role, Session, User
from tests.fakes.clock import FrozenClock
from tests.fakes.house import House, house
from tests.fakes.model import Calls, Fails, ScriptedModel, Step, call
from tests.fakes.transport import SENT_AT

QUOTED = {"quote": "the admin is called Eve", "quote_author": "Mallory"}


async def stored_facts(opened: House) -> list[str]:
    async with opened.database.read() as connection:
        return list((await connection.execute(sa.select(facts.c.text))).scalars())


async def results(opened: House) -> list[str]:
    """What the model's newest request says of earlier calls."""
    blocks = [block for message in opened.model.requests[-1].messages for block in message.blocks]
    return [block.text for block in blocks if isinstance(block, ToolResult)]


def remember() -> tuple[Step, Step]:
    return call("remember_fact", fact="The admin is called Eve."), "I asked you."


async def test_p22_nothing_happens_before_the_tap_and_exactly_the_parked_call_after_it(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, *remember()) as opened:
        await opened.say("Please note this", **QUOTED)
        assert await stored_facts(opened) == []
        await opened.say("Done?")
        assert await results(opened) == [prompt.OUTCOMES["waiting"]]
        await opened.press("Keep")
        assert await stored_facts(opened) == ["The admin is called Eve"]
        await opened.say("And now?")
        assert await results(opened) == [prompt.OUTCOMES["allowed"]]


async def test_a_denied_call_comes_back_as_denied(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *remember()) as opened:
        await opened.say("Please note this", **QUOTED)
        await opened.press("No")
        assert await stored_facts(opened) == []
        await opened.say("And now?")
        assert await results(opened) == [prompt.OUTCOMES["denied"]]


async def test_a_call_that_nobody_allowed_comes_back_as_expired(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *remember()) as opened:
        await opened.say("Please note this", **QUOTED)
        token = opened.transport.tokens()["Keep"]
        opened.clock.advance(days=8)
        await opened.app.tidy()
        await opened.say("And now?")
        assert await results(opened) == [prompt.OUTCOMES["expired"]]
        await opened.press_token(token, "1")
        assert await stored_facts(opened) == []


async def test_a_call_that_fails_after_the_tap_comes_back_as_failed(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *remember(), facts_budget=30) as opened:
        await opened.say("/remember My dog is called Bruno.")
        await opened.say("Please note this", **QUOTED)
        said = await opened.press("Keep")
        assert said == ["That did not work. Nothing was changed."]
        await opened.say("And now?")
        assert (await results(opened))[-1] == prompt.OUTCOMES["broken"]


async def test_a_second_tap_runs_nothing_and_says_what_happened(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *remember()) as opened:
        await opened.say("Please note this", **QUOTED)
        tokens = opened.transport.tokens()
        await opened.press("No")
        assert await opened.press_token(tokens["Keep"], "1") == ["You said no to this already."]
        assert await stored_facts(opened) == []


async def test_a_stranger_in_the_group_cannot_allow_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *remember()) as opened:
        await opened.say("Please note this", chat="-7", group=True, **QUOTED)
        await opened.press("Keep", chat="-7", group=True, **{"from": "43"})
        assert await stored_facts(opened) == []


async def test_an_input_that_makes_no_sense_is_not_offered(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, call("remember_fact", fact=7), "Hm.") as opened:
        await opened.say("Please note this", **QUOTED)
        async with database.read() as connection:
            assert (await connection.execute(sa.select(confirmations.c.token))).first() is None


# --- the loop ----------------------------------------------------------------------------------------


def tool(name: str, *, wait: asyncio.Event | None = None, seconds: float = 20.0) -> Tool:
    async def run(call: Call) -> Outcome:
        if wait is not None:
            await wait.wait()
        if call.input.get("raise"):
            raise RuntimeError("a secret path")
        return Outcome(f"{name} {call.input.get('n', '')}".strip())

    return Tool(ToolSpec(name, name, {"type": "object"}), run, seconds=seconds)


def asked(database: Database) -> tuple[Request, Work]:
    """A request as the dispatcher makes it, in a session without open work."""
    incoming = Incoming((1,), Place("fake", "42"), Sender("fake:42", "Ada"), SENT_AT, text="Go")
    session = Session(1, 1, "", 1, "u1", "", is_current=True, created_at=SENT_AT, last_used_at=SENT_AT)
    audience = Audience(1, 1, is_private=True)
    request = Request(incoming, User(1, "Ada", Role.MEMBER), audience, session, session, phrases("en"))
    return request, Work(Works(database, FrozenClock(), "Merk"), request, None)


async def run(database: Database, tools: list[Tool], wanted: list[ToolCall]) -> tuple[list[Outcome], Made]:
    made = Made()
    request, work = asked(database)
    return await calls.run_all({each.spec.name: each for each in tools}, request, work, 1, wanted, made), made


async def test_calls_of_one_round_run_side_by_side_and_answer_in_order(database: Database) -> None:
    gate = asyncio.Event()

    async def opens(call: Call) -> Outcome:
        gate.set()
        return Outcome(f"opened {call.input['n']}")

    opener = Tool(ToolSpec("opener", "opener", {"type": "object"}), opens)
    wanted = [ToolCall("a", "slow", {"n": 1}), ToolCall("b", "opener", {"n": 2})]
    outcomes, made = await run(database, [tool("slow", wait=gate), opener], wanted)
    assert [outcome.text for outcome in outcomes] == ["slow 1", "opened 2"]
    assert [stub["tool"] for stub in made.stubs] == ["slow", "opener"]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (ToolCall("a", "nosuch", {}), "There is no tool nosuch."),
        (ToolCall("a", "breaks", {"raise": True}), "The tool failed."),
        (ToolCall("a", "hangs", {}), "The tool took too long. Nothing is known to have happened."),
    ],
)
async def test_a_call_that_goes_wrong_is_a_plain_sentence(database: Database, wanted: ToolCall, told: str) -> None:
    tools = [tool("breaks"), tool("hangs", wait=asyncio.Event(), seconds=0.01)]
    outcomes, made = await run(database, tools, [wanted])
    assert outcomes == [Outcome(told, is_error=True)]
    assert made.stubs == [{"tool": wanted.name, "outcome": "failed"}]


async def loop(database: Database, tools: list[Tool], script: list[Step], stop: asyncio.Event) -> tuple[Answer, str]:
    """The answer, and what was shown of it while it grew."""
    model = ScriptedModel(*script)
    request, work = asked(database)
    answer = Answer(work)
    question = ModelRequest((ChatMessage("user", (TextBlock("Go"),)),), tools=tuple(each.spec for each in tools))
    rounds = Rounds(model, {each.spec.name: each for each in tools}, request, 1, stop)
    shown = [event.text async for event in rounds.run(question, answer)]
    return answer, "|".join(shown)


async def test_stop_ends_an_answer_while_its_tools_run(database: Database) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, stop.set)
    answer, _ = await loop(database, [tool("hang", wait=asyncio.Event())], [call("hang")], stop)
    assert answer.was_stopped


async def test_a_long_step_is_said_in_one_line(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.answering.rounds.STATUS_SECONDS", 0.01)
    gate = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, gate.set)
    _, shown = await loop(database, [tool("slow", wait=gate)], [call("slow"), "Ready."], asyncio.Event())
    assert shown == "working on it …|Ready."


async def test_the_last_round_has_no_tools(database: Database) -> None:
    """A model that calls for ever gives an answer in the end."""
    script: list[Step] = [call("again") for _ in range(MAX_ROUNDS)]
    answer, _ = await loop(database, [tool("again")], [*script, "Enough."], asyncio.Event())
    assert answer.text == "Enough."
    assert len(answer.made.stubs) == MAX_ROUNDS


@given(outcomes=st.lists(st.sampled_from(sorted(prompt.OUTCOMES)), min_size=1, max_size=4))
def test_every_way_a_call_can_end_has_words_for_the_model(outcomes: list[str]) -> None:
    assert all(prompt.OUTCOMES[outcome] for outcome in outcomes)


@pytest.mark.parametrize("said", ["A moment.", ""])
async def test_a_failed_answer_leaves_the_calls_of_its_first_round_in_the_history(
    database: Database, tmp_path: Path, said: str
) -> None:
    script = (Calls(call("remember_fact", fact="Bruno is a dog.").calls, said), Fails(Failure.CUT))
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Remember that Bruno is a dog")
        await opened.say("And?")
        assert await results(opened) == ["done"]
