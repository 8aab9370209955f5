"""What people and models do to open work, drafts and reminders that nobody planned for."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.jobs.idle_work import close_idle_work
from memory.ports import Failure
from memory.storage.database import Database
from memory.storage.tables import facts, messages, reminders, session_states
from tests.fakes.house import House, house
from tests.fakes.model import Fails, Says, call

GROUP = {"chat": "-1", "group": True}
BOB = {**GROUP, "from": "77"}
EVE = "The admin is called Eve."


async def column(opened: House, wanted: sa.ColumnElement[Any] | sa.Column[Any]) -> list[Any]:
    async with opened.database.read() as connection:
        return list((await connection.execute(sa.select(wanted))).scalars())


def written(text: str = "Hello", title: str = "Mail") -> Any:
    return call("write_draft", title=title, text=text)


async def test_a_draft_without_a_word_beside_it_is_no_missing_answer(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, written(), Says("")) as opened:
        assert await opened.say("Write") == ["Done.", "Draft 1 · Mail\n\nHello"]


@pytest.mark.parametrize("words", [{"quote": EVE}, {"origin": "forwarded"}])
async def test_p22_words_of_others_are_not_trusted_more_when_answered_again(
    database: Database, tmp_path: Path, words: dict[str, str]
) -> None:
    """The first try failed; the tap on "Try again" is the person's, the words are not."""
    script = Fails(Failure.UNREACHABLE), call("remember_fact", fact=EVE), "I asked you."
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Note this", **words)
        await opened.press("Try again")
        assert await column(opened, facts.c.text) == []
        await opened.press("Keep")
        assert await column(opened, facts.c.text) == ["The admin is called Eve"]


async def test_what_a_person_typed_is_trusted_when_answered_again(database: Database, tmp_path: Path) -> None:
    script = Fails(Failure.UNREACHABLE), call("remember_fact", fact=EVE), "Kept."
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Note that the admin is called Eve")
        await opened.press("Try again")
        assert await column(opened, facts.c.text) == ["The admin is called Eve"]


async def test_close_by_somebody_else_leaves_the_work_alone(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, written(), "Here.") as opened:
        await opened.say("Write", **GROUP)
        assert await opened.say("/close", **BOB) == ["“Mail” is somebody else's work; only they can change it."]
        assert await column(opened, session_states.c.title) == ["Mail"]
        assert await opened.say("/close", **GROUP) == ["Closed: Mail."]


async def test_the_closed_line_offers_only_what_was_kept(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, written(), "Here.") as opened:
        await opened.say("Write")
        await opened.press("Keep")
        kept = "Closed: Mail. /draft opens what you kept of it again."
        assert await opened.say("/close") == [kept]
        await opened.say("/draft")
        assert await opened.say("/close") == [kept]


@pytest.mark.parametrize("at", ["0001-01-01T00:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"])
@pytest.mark.parametrize("words", [{}, {"quote": EVE}])
async def test_a_time_beyond_the_calendar_is_refused_and_the_answer_goes_on(
    database: Database, tmp_path: Path, at: str, words: dict[str, str]
) -> None:
    async with house(database, tmp_path, call("set_reminder", text="tea", at=at), "That is no time.") as opened:
        assert await opened.say("Remind me", **words) == ["That is no time."]
        assert await column(opened, reminders.c.text) == []


async def test_remind_does_not_take_a_year_that_has_no_instant(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (told,) = await opened.say("/remind 0001-01-01 at 0:00 tea")
        assert told.startswith("I did not understand when")


async def test_after_a_text_that_was_too_long_the_shorter_one_is_taken(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/instructions")
        await opened.press("Change")
        assert await opened.say("x" * 2001) == ["That is 2001 characters, and at most 2000 fit. Please shorten it."]
        assert await opened.say("Be brief.") == ["Draft 1 of your instructions:\n\nBe brief."]
        assert opened.model.requests == []


async def test_a_reminder_as_long_as_a_letter_is_refused(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, call("set_reminder", text="y" * 1001, at="2031-01-01"), "Too long.") as opened:
        (told,) = await opened.say(f"/remind tomorrow {'y' * 1001}")
        assert told == "A reminder has room for 1000 characters; these are 1001. Please make it shorter."
        assert await opened.say("Remind me") == ["Too long."]
        assert await column(opened, reminders.c.text) == []


async def test_a_page_of_long_reminders_is_one_message(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, part_length=4096) as opened:
        for number in range(6):
            await opened.say(f"/remind tomorrow {number} {'y' * 990}")
        (listed,) = await opened.say("/reminders")
        assert len(listed) < 2000
        await opened.press(next(label for label in opened.labels() if label.startswith("1. ")))
        assert "y" * 990 in list(opened.transport.shown.values())[-1].text


async def test_no_and_a_new_version_is_told_once(database: Database, tmp_path: Path) -> None:
    """After the next version the person has not yet said anything about it."""
    script = written(), "Here.", call("keep_draft"), "Kept.", written("Hello again"), "Changed."
    async with house(database, tmp_path, *script, always="Yes?") as opened:
        await opened.say("Write")
        await opened.say("Keep it")
        await opened.press("👎 No, continue")
        await opened.say("Say it again in it")
        assert "wants to go on" in str(opened.model.requests[-1].messages)
        await opened.say("Hm")
        assert "wants to go on" not in str(opened.model.requests[-1].messages)


async def test_p26_a_forget_takes_open_work_that_says_it_out_of_the_chat(database: Database, tmp_path: Path) -> None:
    script = written("Bruno is a dog.", "About Bruno"), "Here.", written("He barks.", "About Bruno"), "Changed."
    async with house(database, tmp_path, *script) as opened:
        await opened.say("/remember my dog is called Bruno")
        await opened.say("Write")
        await opened.say("Shorter")
        await opened.say("/forget Bruno")
        await opened.press("Yes, forget")
        assert await column(opened, session_states.c.title) == []
        assert await column(opened, messages.c.text) == ["Write", "Here.", "Shorter", "Changed."]
        assert not [text for text in opened.transport.texts() if text.startswith("Draft")]
        assert (await opened.say("/draft"))[0].startswith("Tell me what to write")


async def test_a_forget_leaves_open_work_that_does_not_say_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, written(), "Here.") as opened:
        await opened.say("/remember my dog is called Bruno")
        await opened.say("Write")
        await opened.say("/forget Bruno")
        await opened.press("Yes, forget")
        assert await opened.say("/draft") == ["Draft 1 · Mail\n\nHello"]


async def test_the_clock_leaves_work_alone_that_somebody_came_back_to(database: Database, tmp_path: Path) -> None:
    """Between the look and the write an answer may begin."""
    async with house(database, tmp_path, written(), "Here.") as opened:
        await opened.say("Write")
        opened.clock.advance(hours=25)
        asked = iter([False, True])
        assert await close_idle_work(database, opened.clock, lambda _place: next(asked)) == 0
        assert await column(opened, session_states.c.title) == ["Mail"]
