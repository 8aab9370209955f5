"""Writing a longer text together: versions that go, one text that stays, and a model that never sees the drafts."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from handlers.work import draft
from memory.ports import Failure, ModelRequest, StopReason, ToolResult
from memory.storage.database import Database
from memory.storage.tables import messages, session_states, sessions, users
from memory.types import Audience
from tests.fakes.house import House, house
from tests.fakes.model import TRAITS, Fails, Says, call

FIRST = "Dear Ms Krause, the heating is cold."
SECOND = "Dear Ms Krause, the heating is cold since Monday."
TITLE = "Mail to Ms Krause"


async def texts(opened: House, *, working: bool = False) -> list[str]:
    query = sa.select(messages.c.text).where(messages.c.is_ephemeral == working).order_by(messages.c.id)
    async with opened.database.read() as connection:
        return list((await connection.execute(query)).scalars())


async def state(opened: House) -> dict[str, Any] | None:
    async with opened.database.read() as connection:
        row = (await connection.execute(sa.select(session_states))).mappings().first()
    return dict(row) if row else None


def written(text: str, **more: Any) -> Any:
    return call("write_draft", title=TITLE, text=text, **more)


def result(request: ModelRequest) -> str:
    block = request.messages[-1].blocks[0]
    assert isinstance(block, ToolResult)
    return block.text


TWO = (written(FIRST), "Here it is.", written(SECOND), "I added the day.")


async def write_two(opened: House) -> list[str]:
    await opened.say("Write to Ms Krause")
    return await opened.say("Say since when")


async def test_each_version_is_a_working_card_with_its_buttons(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        assert await opened.say("Write to Ms Krause") == ["Here it is.", f"Draft 1 · {TITLE}\n\n{FIRST}"]
        assert opened.labels() == ["Keep", "Discard"]
        assert await opened.say("Say since when") == ["I added the day.", f"Draft 2 · {TITLE}\n\n{SECOND}"]
        assert opened.labels() == ["Keep", "Show changes", "Discard"]
        assert await texts(opened, working=True) == [FIRST, SECOND]
        stands = await state(opened)
        assert stands is not None
        assert (stands["tool"], stands["title"], stands["step"]) == ("draft", TITLE, "draft 2")


async def test_the_changes_are_shown_and_the_card_can_be_kept(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        await write_two(opened)
        (changes,) = await opened.press("Show changes")
        assert changes.startswith("What changed from draft 1 to 2:")
        assert "since Monday" in changes
        assert opened.labels() == ["Keep", "Discard"]
        kept, asked = await opened.press("Keep")
        assert (kept, asked) == (SECOND, "Is this what you wanted?")


async def test_a_spent_card_says_where_its_buttons_are(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        await write_two(opened)
        card = list(opened.transport.shown.values())[-1]
        keep = next(key.token for row in card.part.keys for key in row if key.label == "Keep")
        await opened.press("Show changes")
        assert await opened.press_token(keep, card.ref) == ["The changes are shown already, with the same buttons."]


async def test_yes_leaves_the_kept_text_and_one_line(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        await write_two(opened)
        await opened.press("Show changes")
        await opened.press("Keep")
        assert await opened.press("👍 Yes, close") == [f"Kept: “{TITLE}”."]
        shown = opened.transport.texts()
        assert shown == ["Here it is.", "I added the day.", SECOND, f"Kept: “{TITLE}”."]
        assert await texts(opened, working=True) == []
        assert (await texts(opened))[-2:] == [SECOND, f"Kept: “{TITLE}”."]
        assert await state(opened) is None


async def test_no_leaves_everything_and_the_work_goes_on(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO, written("Third."), "Shorter.") as opened:
        await write_two(opened)
        await opened.press("Keep")
        assert await opened.press("👎 No, continue") == ["All right, we go on with it."]
        assert FIRST in str(opened.transport.texts())
        await opened.say("Make it shorter")
        assert "Draft 3" in opened.transport.texts()[-1]
        assert await texts(opened, working=True) == [FIRST, SECOND, "Is this what you wanted?", "Third."]


async def test_what_is_kept_twice_is_one_message(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        await write_two(opened)
        await opened.press("Keep")
        await opened.press("👎 No, continue")
        await opened.say("/draft")
        assert await opened.press("Keep") == ["Is this what you wanted?"]
        assert (await texts(opened)).count(SECOND) == 1


async def test_the_pressed_version_is_the_one_that_is_kept(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        await write_two(opened)
        first = next(shown for shown in opened.transport.shown.values() if "Draft 1" in shown.text)
        keep = next(key.token for row in first.part.keys for key in row if key.label == "Keep")
        assert (await opened.press_token(keep, first.ref))[0] == FIRST


async def test_drafts_reach_the_model_only_in_the_loop_that_made_them(database: Database, tmp_path: Path) -> None:
    canary = "the xylophone is cold"
    script = (written(canary), "Here.", "Later.", call("keep_draft"), "Kept it.", "Yes?")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write to Ms Krause")
        assert canary in str(opened.model.requests[1])
        await opened.say("What day is it?")
        assert canary not in str(opened.model.requests[2])
        assert f"Open work of draft: {TITLE}, draft 1, 1 card visible to the person" in str(opened.model.requests[2])
        said = await opened.say("Keep the mail")
        assert said == ["Kept it.", canary, "Is this what you wanted?"]
        await opened.press("👍 Yes, close")
        await opened.say("Thanks")
        assert str(opened.model.requests[-1]).count(canary) == 1


async def test_the_model_reads_the_whole_newest_text_again(database: Database, tmp_path: Path) -> None:
    long = "A sentence of the text. " * (draft.LONGEST // 24)
    script = (written("Short."), "One.", written(long), "Two.", call("read_work"), "Read.")
    async with house(database, tmp_path, *script, part_length=10_000) as opened:
        await opened.say("Write to Ms Krause")
        await opened.say("Longer")
        await opened.press("Show changes")
        await opened.say("What does it say?")
        assert long.strip() in result(opened.model.requests[-1])


async def test_earlier_versions_are_read_only_where_they_are_asked_for(database: Database, tmp_path: Path) -> None:
    script = (*TWO, call("read_work"), "Read.", call("read_work", earlier=True), "Read.")
    async with house(database, tmp_path, *script) as opened:
        await write_two(opened)
        await opened.say("What does it say?")
        assert SECOND in result(opened.model.requests[-1])
        assert FIRST not in result(opened.model.requests[-1])
        assert "Left out: 1 earlier." in result(opened.model.requests[-1])
        await opened.say("What did the first draft say?")
        assert FIRST in result(opened.model.requests[-1])


async def test_another_text_closes_the_open_one(database: Database, tmp_path: Path) -> None:
    script = (*TWO, call("write_draft", title="Shopping list", text="Milk", new=True), "A list.")
    async with house(database, tmp_path, *script) as opened:
        await write_two(opened)
        said = await opened.say("Now a shopping list")
        closed = f"Something new began, so I closed: {TITLE}."
        assert said == ["A list.", closed, "Draft 1 · Shopping list\n\nMilk"]
        assert await texts(opened, working=True) == ["Milk"]
        assert FIRST not in str(opened.transport.texts())


async def test_another_title_alone_renames_the_text(database: Database, tmp_path: Path) -> None:
    script = (written(FIRST), "Here.", call("write_draft", title="Complaint", text=SECOND), "Renamed.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write to Ms Krause")
        assert (await opened.say("Call it a complaint"))[1] == f"Draft 2 · Complaint\n\n{SECOND}"
        assert await texts(opened, working=True) == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"title": "T", "text": "x" * 7001}, "A draft has at most 7000 characters, this one has 7001"),
        ({"title": "T", "text": "  "}, "A draft needs some text"),
        ({"title": "T"}, "title and text must be strings"),
        ({"title": "T", "text": "x", "new": "yes"}, "new true or false"),
    ],
)
async def test_input_that_is_no_draft_is_explained(
    database: Database, tmp_path: Path, arguments: dict[str, Any], told: str
) -> None:
    async with house(database, tmp_path, call("write_draft", **arguments), "I see.") as opened:
        assert await opened.say("Write") == ["I see."]
        assert told in result(opened.model.requests[1])
        assert await state(opened) is None


async def test_nothing_is_kept_where_no_draft_is_open(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, call("keep_draft"), "There is none.") as opened:
        await opened.say("Keep it")
        assert result(opened.model.requests[1]) == "No draft is open in this chat."


async def test_a_long_text_is_kept_as_a_file(database: Database, tmp_path: Path) -> None:
    long = "A sentence of the text. " * 200
    async with house(database, tmp_path, written(long), "Here.", "Yes.", part_length=10_000) as opened:
        await opened.say("Write to Ms Krause")
        (kept, _) = await opened.press("Keep")
        assert kept == f"“{TITLE}”, as a file."
        files = [shown.part.file for shown in opened.transport.shown.values() if shown.part.file]
        assert files == [("mail-to-ms-krause.md", long.strip())]
        await opened.press("👍 Yes, close")
        await opened.say("Thanks")
        assert long.strip() in str(opened.model.requests[-1])


@pytest.mark.parametrize(
    ("title", "name"), [("Письмо хозяину!", "письмо-хозяину.md"), ("../etc/passwd", "etc-passwd.md"), ("…", "draft.md")]
)
def test_a_file_is_named_after_the_title(title: str, name: str) -> None:
    assert draft.file_name(title) == name


async def test_discarding_asks_first(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        await write_two(opened)
        (asked,) = await opened.press("Discard")
        assert asked.startswith(f"Throw away all drafts of “{TITLE}”?")
        assert await opened.press("No") == ["All right, we go on with it."]
        await opened.say("/draft")
        await opened.press("Discard")
        closed = f"Closed: {TITLE}."
        assert await opened.press("Yes, discard") == [closed]
        assert await texts(opened, working=True) == []
        assert opened.transport.texts() == ["Here it is.", "I added the day.", closed]


async def test_a_draft_is_revised_and_kept_after_a_restart(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, written(FIRST), "Here.") as opened:
        await opened.say("Write to Ms Krause")
    script = (call("read_work"), written(SECOND), "Done.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Say since when")
        assert await texts(opened, working=True) == [FIRST, SECOND]
        assert FIRST in result(opened.model.requests[1])
        assert (await opened.press("Keep"))[0] == SECOND


async def test_a_kept_text_is_taken_up_again(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *TWO) as opened:
        await write_two(opened)
        await opened.press("Keep")
        await opened.press("👍 Yes, close")
        assert await opened.say("/draft") == [f"Draft 1 · {TITLE}\n\n{SECOND}"]
        assert await texts(opened, working=True) == [SECOND]


async def test_the_command_alone_says_how_to_begin(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (said,) = await opened.say("/draft")
        assert said.startswith("Tell me what to write: /draft a mail")


# --- by command: any model will do ---------------------------------------------------------------------


async def test_a_model_without_tools_writes_revises_and_keeps(database: Database, tmp_path: Path) -> None:
    plain = replace(TRAITS, can_call_tools=False)
    async with house(database, tmp_path, FIRST, SECOND, "Gladly.", traits=plain) as opened:
        assert await opened.say("/draft a mail to Ms Krause") == [f"Draft 1 · a mail to Ms Krause\n\n{FIRST}"]
        assert await opened.say("/draft say since when") == [f"Draft 2 · a mail to Ms Krause\n\n{SECOND}"]
        assert "revise" not in str(opened.model.requests[0])
        assert [message.role for message in opened.model.requests[1].messages] == ["user", "assistant", "user"]
        assert FIRST in str(opened.model.requests[1].messages[1])
        await opened.press("Show changes")
        assert (await opened.press("Keep"))[0] == SECOND
        await opened.press("👍 Yes, close")
        await opened.say("What did you write?")
        assert str(opened.model.requests[-1]).count(SECOND) == 1
        assert FIRST not in str(opened.model.requests[-1])


async def test_the_command_shows_the_model_nothing_of_the_chat(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "Noted.", FIRST) as opened:
        await opened.say("The safe is behind the mirror")
        await opened.say("/draft a mail", quote="We meet at <noon>")
        asked = str(opened.model.requests[1])
        assert "mirror" not in asked
        assert "We meet at ‹noon›" in asked


async def test_a_failing_model_is_asked_again_by_a_tap(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, FIRST, Fails(Failure.OVERLOADED), SECOND) as opened:
        await opened.say("/draft a mail")
        assert await opened.say("/draft say since when") == [
            "The model is overloaded right now. Please try again in a moment."
        ]
        said = await opened.press("Try again")
        assert said == ["Answering again.", f"Draft 2 · a mail\n\n{SECOND}"]
        assert "say since when" in str(opened.model.requests[-1])


async def test_stop_ends_the_writing_and_leaves_what_was_there(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, FIRST, Says("Dear Ms Krause", gate=asyncio.Event())) as opened:
        await opened.say("/draft a mail")
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"text": "/draft say since when"})
        async with asyncio.timeout(5):
            while len(opened.model.requests) == 1:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        await opened.say("/stop")
        assert opened.transport.texts()[-1] == "Stopped."
        assert await texts(opened, working=True) == [FIRST]
        assert opened.model.abandoned == 1


async def test_a_kept_text_loses_what_was_forgotten_while_it_was_made(database: Database, tmp_path: Path) -> None:
    gate = asyncio.Event()
    script = (written("Bruno my dog is called Bruno. The rest stays."), call("keep_draft"), Says("Kept it.", gate=gate))
    async with house(database, tmp_path, *script) as opened:
        await opened.say("/remember My dog is called Bruno")
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"text": "Write about my dog and keep it"})
        async with asyncio.timeout(5):
            while len(opened.model.requests) < 3:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        async with opened.database.read() as connection:
            query = sa.select(users.c.id, sessions.c.chat_id).select_from(users.join(sessions))
            user, chat = (await connection.execute(query)).one()
        whose = Audience(user, chat, is_private=True)
        facts = await opened.memory.facts.list(whose)
        await opened.memory.forget_facts(whose, [facts[0].id])
        gate.set()
        await opened.settle()
        assert "The rest stays." in (await texts(opened))[-1]
        assert "Bruno" not in str(await texts(opened)) + str(await texts(opened, working=True))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Says("", StopReason.REFUSED), "The model declined to answer this."),
        (Says("  "), "I have no answer to that. Could you say it in other words?"),
        (Says("x" * 7001), "A draft has at most 7000 characters, this one has 7001. Make it shorter, or in parts."),
    ],
)
async def test_an_answer_that_is_no_draft_is_said_so(
    database: Database, tmp_path: Path, answer: Says, told: str
) -> None:
    async with house(database, tmp_path, answer) as opened:
        assert await opened.say("/draft a mail") == [told]
        assert await state(opened) is None


async def test_a_text_that_was_cut_is_shown_and_said_to_be_cut(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, Says("Dear", StopReason.LENGTH)) as opened:
        assert await opened.say("/draft a mail") == [
            "Draft 1 · a mail\n\nDear",
            "The answer was too long and ends here.",
        ]


async def test_a_request_that_is_too_long_is_explained(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (said,) = await opened.say("/draft " + "x" * 8001)
        assert said.startswith("After /draft I read at most 8000 characters; these are 8001.")
        assert opened.model.requests == []


async def test_in_a_group_a_draft_is_revised_only_by_who_began_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, FIRST) as opened:
        await opened.say("/draft a mail", group=True, chat="g")
        refused = ["“a mail” is somebody else's work; only they can change it."]
        stranger: dict[str, Any] = {"from": "77", "group": True, "chat": "g"}
        assert await opened.say("/draft say since when", **stranger) == refused
        assert await opened.say("/draft", **stranger) == refused
        assert await opened.press("Keep", **stranger) == ["These buttons are for somebody else."]
