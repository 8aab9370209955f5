"""The open piece of work: what closes it, what the person reads then, and what never gets into a model's context."""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa

from memory.ports import ModelRequest, TextBlock
from memory.storage.database import Database
from memory.storage.tables import messages, outbox, session_states
from tests.fakes.house import House, house
from tests.fakes.model import Says, Step, call

DRAFT = "Dear Mr Habicht, the heating has been cold since Tuesday."
UNRELATED = ("What is the capital of Peru?", "Name a prime number.", "Who painted Guernica?", "How tall is Everest?")


def draft(text: str = DRAFT, title: str = "Mail to the landlord") -> Step:
    return call("write_draft", title=title, text=text)


async def working_rows(opened: House) -> list[str]:
    async with opened.database.read() as connection:
        query = sa.select(messages.c.text).where(messages.c.is_ephemeral).order_by(messages.c.id)
        return list((await connection.execute(query)).scalars())


async def open_work(opened: House) -> list[str]:
    async with opened.database.read() as connection:
        return list((await connection.execute(sa.select(session_states.c.title))).scalars())


async def visible(opened: House) -> set[str]:
    """What the database says that can be seen in the chat."""
    async with opened.database.read() as connection:
        query = sa.select(outbox.c.refs).where(outbox.c.status == "sent")
        return {ref for refs in (await connection.execute(query)).scalars() for ref in refs}


def words(request: ModelRequest) -> str:
    return repr(request.messages) + repr(request.system)


async def test_a_working_card_is_seen_by_the_person_and_not_by_later_requests(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, draft(), "Here is a first draft.", "You are welcome.") as opened:
        said = await opened.say("Write a mail to my landlord about the cold heating")
        assert said[0] == "Here is a first draft."
        assert DRAFT in said[1]
        await opened.say("Thanks a lot for that")
        assert "Habicht" not in words(opened.model.requests[-1])
        assert await working_rows(opened) == [DRAFT]


async def test_while_work_is_open_the_model_is_told_in_at_most_300_characters(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, draft(title="Mail " * 100), "Done.") as opened:
        await opened.say("Write it")
        await opened.say("How is it?")
        newest = [block.text for block in opened.model.requests[-1].messages[-1].blocks if isinstance(block, TextBlock)]
        [note] = [text for text in newest if "Open work" in text]
        assert "read_work" in note
        assert "1 card visible" in note
        assert len(note) < 300 + len("<known open work>\n\n</known>")


async def test_read_work_shows_the_text_within_its_loop_only(database: Database, tmp_path: Path) -> None:
    script = (draft(), "Done.", call("read_work"), "It is polite.", "Yes.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write it")
        await opened.say("Is the mail polite?")
        assert "Habicht" in words(opened.model.requests[3])
        await opened.say("And the mail is short?")
        assert "Habicht" not in words(opened.model.requests[4])


async def test_turns_about_other_things_close_the_work_and_say_so(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, draft(), "Done.") as opened:
        await opened.say("Write a mail to my landlord")
        for question in UNRELATED[:3]:
            assert await opened.say(question) == ["Very well."]
            assert await open_work(opened) == ["Mail to the landlord"]
        said = await opened.say(UNRELATED[3])
        assert said[0] == "Very well."
        assert said[1] == "We moved on, so I closed: Mail to the landlord."
        assert await open_work(opened) == []
        assert await working_rows(opened) == []
        assert DRAFT not in "\n".join(opened.transport.texts())


@pytest.mark.parametrize(
    "touch", ["Make the mail to the landlord shorter", "The heating is still cold", "Habicht is his name"]
)
async def test_a_turn_about_the_work_begins_the_count_anew(database: Database, tmp_path: Path, touch: str) -> None:
    async with house(database, tmp_path, draft(), "Done.") as opened:
        await opened.say("Write it")
        for question in (*UNRELATED[:3], touch, *UNRELATED[:3]):
            await opened.say(question)
        assert await open_work(opened) == ["Mail to the landlord"]


async def test_a_reply_to_a_working_card_begins_the_count_anew(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, draft(), "Done.") as opened:
        await opened.say("Write it")
        card = next(shown.ref for shown in opened.transport.shown.values() if DRAFT in shown.text)
        for question in UNRELATED[:3]:
            await opened.say(question)
        await opened.say("Hm?", reply_to=card)
        for question in UNRELATED[:3]:
            await opened.say(question)
        assert await open_work(opened) == ["Mail to the landlord"]


async def test_another_tool_closes_the_work_of_the_first(database: Database, tmp_path: Path) -> None:
    script = (draft(), "Done.", call("propose_instructions", text="Answer briefly.", whose="me"), "Proposed.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write it")
        said = await opened.say("From now on answer briefly")
        assert "Something new began, so I closed: Mail to the landlord." in said[1]
        assert DRAFT not in await working_rows(opened)
        assert DRAFT not in "\n".join(opened.transport.texts())
        assert len(await open_work(opened)) == 1


async def test_a_new_piece_of_the_same_tool_closes_the_old_one(database: Database, tmp_path: Path) -> None:
    second = call("write_draft", title="Shopping list", text="Bread, milk", new=True)
    async with house(database, tmp_path, draft(), "Done.", second, "Done.") as opened:
        await opened.say("Write it")
        await opened.say("Now a shopping list")
        assert await working_rows(opened) == ["Bread, milk"]
        assert await open_work(opened) == ["Shopping list"]


@pytest.mark.parametrize("command", ["/close", "/newchat"])
async def test_commands_close_the_work(database: Database, tmp_path: Path, command: str) -> None:
    async with house(database, tmp_path, draft(), "Done.") as opened:
        await opened.say("Write it")
        said = await opened.say(command)
        assert said[0].startswith("Closed: Mail to the landlord.")
        assert await working_rows(opened) == []
        assert DRAFT not in "\n".join(opened.transport.texts())


async def test_closing_when_nothing_is_open_says_so(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert await opened.say("/close") == ["Nothing is open in this chat."]


async def test_deleting_the_chat_takes_its_working_output_out_of_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, draft(), "Done.") as opened:
        await opened.say("Write it")
        await opened.say("/chats")
        await opened.press(opened.labels()[0])
        await opened.press("Delete")
        await opened.press("Yes, delete")
        assert await working_rows(opened) == []
        assert DRAFT not in "\n".join(opened.transport.texts())


async def test_a_day_untouched_closes_the_work(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, draft(), "Done.") as opened:
        await opened.say("Write it")
        opened.clock.advance(hours=23)
        await opened.app.sweep()
        assert await open_work(opened) == ["Mail to the landlord"]
        opened.clock.advance(hours=2)
        await opened.app.sweep()
        await opened.settle()
        assert await working_rows(opened) == []
        assert opened.transport.texts()[-1].startswith("Untouched for a day, so I closed: Mail to the landlord.")
        assert DRAFT not in "\n".join(opened.transport.texts())


async def test_yes_removes_exactly_the_working_output_and_leaves_one_line(database: Database, tmp_path: Path) -> None:
    script = (draft(), "One.", draft("Dear landlord, it is cold."), "Two.", call("keep_draft"), "Kept.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write it")
        await opened.say("Shorter")
        await opened.say("Keep it")
        assert "Is this what you wanted?" in opened.transport.texts()
        await opened.press("👍 Yes, close")
        texts = opened.transport.texts()
        assert not any(DRAFT in text or "Is this what you wanted?" in text for text in texts)
        assert texts[:2] == ["One.", "Two."]
        assert any("Dear landlord, it is cold." in text for text in texts)
        assert await working_rows(opened) == []
        assert await open_work(opened) == []
        assert await visible(opened) == set(opened.transport.shown)


async def test_no_leaves_all_and_the_model_is_told(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, draft(), "One.", call("keep_draft"), "Kept.") as opened:
        await opened.say("Write it")
        await opened.say("Keep it")
        before = await working_rows(opened)
        await opened.press("👎 No, continue")
        assert await working_rows(opened) == before
        assert await open_work(opened) == ["Mail to the landlord"]
        await opened.say("The mail, once more")
        assert "wants to go on" in words(opened.model.requests[-1])


async def test_a_second_press_is_told_what_happened(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, draft(), "One.", call("keep_draft"), "Kept.") as opened:
        await opened.say("Write it")
        await opened.say("Keep it")
        tokens = opened.transport.tokens()
        await opened.press("👍 Yes, close")
        for label in ("👍 Yes, close", "👎 No, continue"):
            said = await opened.press_token(tokens[label], "1")
            assert said == ["This piece of work is closed already."]


async def test_buttons_of_the_work_are_for_the_person_they_were_shown_to(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, draft(), "One.", call("keep_draft"), "Kept.") as opened:
        await opened.say("Write it", chat="-7", group=True)
        await opened.say("Keep it", chat="-7", group=True)
        rows = await working_rows(opened)
        said = await opened.press("👍 Yes, close", chat="-7", group=True, **{"from": "43"})
        assert said == ["These buttons are for somebody else."]
        assert await working_rows(opened) == rows


async def test_a_press_waits_for_the_answer_that_is_being_made(database: Database, tmp_path: Path) -> None:
    """Never silently in the middle of an answer."""
    gate = asyncio.Event()
    script = (draft(), "One.", call("keep_draft"), "Kept.", Says("Two words.", gate=gate))
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write it")
        await opened.say("Keep it")
        token = opened.transport.tokens()["👍 Yes, close"]
        assert opened.transport.accept is not None
        await opened.transport.accept("late-1", {"text": "And what is the time?"})
        await opened.transport.accept("late-2", {"text": "", "token": token, "card": "1"})
        for _ in range(50):
            await asyncio.sleep(0.002)
        assert await open_work(opened) == ["Mail to the landlord"]
        gate.set()
        await opened.settle()
        assert await open_work(opened) == []
        texts = opened.transport.texts()
        assert "Two words." in texts
        assert texts.index("Two words.") < len(texts) - 1


async def test_every_step_survives_a_restart(database: Database, tmp_path: Path) -> None:
    script = (draft(), "One.", draft("Second."), "Two.", call("keep_draft"), "Kept.")
    opened: House | None = None
    for step in ("Write it", "Shorter", "Keep it", "yes"):
        async with house(database, tmp_path, *(script if opened is None else ()), before=opened) as now:
            await (now.press("👍 Yes, close") if step == "yes" else now.say(step))
            opened = now
    assert opened is not None
    assert await working_rows(opened) == []
    assert await visible(opened) == set(opened.transport.shown)
