"""Looking back: a chat's history for its person, and the search of what is kept and what was talked about."""

from pathlib import Path

import sqlalchemy as sa

from memory.ports import ToolResult
from memory.storage.database import Database
from memory.storage.tables import messages
from tests.fakes.house import House, house
from tests.fakes.model import call

SUMMARY = {
    "title": "Trip to Lisbon",
    "text": "They plan a trip to Lisbon in May.",
    "request": "",
    "investigated": "",
    "learned": "",
    "completed": "",
    "next_steps": "",
    "notes": "",
}


async def working(opened: House) -> list[str]:
    query = sa.select(messages.c.text).where(messages.c.is_ephemeral)
    async with opened.database.read() as connection:
        return list((await connection.execute(query)).scalars())


async def test_an_empty_chat_has_no_history(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert await opened.say("/history") == ["Nothing has been said in this chat yet."]


async def test_the_history_shows_both_sides_and_marks_working_output(database: Database, tmp_path: Path) -> None:
    script = (call("write_draft", title="A mail", text="Dear all"), "Here it is.")
    async with house(database, tmp_path, *script, part_length=4000) as opened:
        await opened.say("Write a mail")
        (page,) = await opened.say("/history")
        lines = page.split("\n\n")
        assert lines[0] == "“New chat” so far:"
        assert [line.split("\n")[1] for line in lines[1:]] == ["Write a mail", "Here it is.", "Dear all"]
        assert ["working output" in line for line in lines[1:]] == [False, False, True]
        assert lines[1].startswith("Person 42, ")


async def test_the_newest_page_comes_first_and_each_reads_downwards(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, part_length=4000) as opened:
        for number in range(7):
            await opened.say(f"word {number} " + "and more " * 100)
        (page,) = await opened.say("/history")
        assert page.index("word 2") < page.index("word 6")
        assert "word 1" not in page
        assert len(page) < 4096
        (page,) = await opened.press("More ›")
        assert page.index("word 0") < page.index("word 1")
        assert "word 2" not in page
        (page,) = await opened.press("‹ Back")
        assert "word 6" in page


async def test_the_history_goes_with_the_work_that_it_quotes(database: Database, tmp_path: Path) -> None:
    script = (call("write_draft", title="A mail", text="Dear all"), "Here it is.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write a mail")
        await opened.say("/history")
        await opened.say("/close")
        assert await working(opened) == []
        assert "Dear all" not in str(opened.transport.texts())


async def test_the_history_is_nothing_that_the_model_reads(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "First.", call("read_work"), "Second.") as opened:
        await opened.say("the safe is behind the mirror")
        await opened.say("/history")
        await opened.say("what is open?")
        assert "so far:" not in str(opened.model.requests[-1])


async def test_an_export_marks_working_output(database: Database, tmp_path: Path) -> None:
    script = (call("write_draft", title="A mail", text="Dear all"), "Here it is.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("Write a mail")
        await opened.say("/history")
        await opened.press("Export")
        (file,) = [shown.part.file for shown in opened.transport.shown.values() if shown.part.file]
        heads = [line for line in file[1].split("\n") if line.startswith("**")]
        assert [line.endswith(" · working output") for line in heads] == [False, False, True]


async def test_a_search_finds_facts_and_earlier_chats(database: Database, tmp_path: Path) -> None:
    script = ("Nice.", SUMMARY, call("search_memory", query="Lisbon trip"), "I found these.", "And?")
    async with house(database, tmp_path, *script, part_length=4000) as opened:
        await opened.say("I plan a trip to Lisbon in May")
        await opened.memory.learn()
        await opened.say("/remember My hotel in Lisbon is the Avenida")
        await opened.say("/newchat")
        answer, listing = await opened.say("What do you know of Lisbon?")
        assert answer == "I found these."
        assert listing.startswith(
            "2 finds for “Lisbon trip”:\n\n1. My hotel in Lisbon is the Avenida\n2. the chat “Trip"
        )
        result = opened.model.requests[-1].messages[-1].blocks[0]
        assert isinstance(result, ToolResult)
        assert "the Avenida" in result.text
        assert "They plan a trip to Lisbon" in result.text
        assert await working(opened) == [listing]
        await opened.say("thanks")
        assert "2 finds" not in str(opened.model.requests[-1])
        (fact,) = await opened.press("1. My hotel in Lisbon is the Avenida")
        assert fact.startswith("My hotel in Lisbon is the Avenida\nPerson 42")


async def test_a_search_without_finds_shows_no_card(database: Database, tmp_path: Path) -> None:
    script = (call("search_memory", query="submarine"), "Nothing.", call("search_memory", query=" "), "What?")
    async with house(database, tmp_path, *script) as opened:
        assert await opened.say("What do you know of submarines?") == ["Nothing."]
        assert await opened.say("Search") == ["What?"]
        told = [str(opened.model.requests[at].messages[-1]) for at in (1, 3)]
        assert "Nothing was found." in told[0]
        assert "query must be a few words" in told[1]


async def test_p01_a_search_in_a_group_finds_nothing_private(database: Database, tmp_path: Path) -> None:
    script = (call("search_memory", query="diary"), "Nothing.")
    async with house(database, tmp_path, *script) as opened:
        await opened.say("/remember My diary is under the bed")
        assert await opened.say("search my diary", group=True, chat="g") == ["Nothing."]
        assert "bed" not in str(opened.model.requests)
