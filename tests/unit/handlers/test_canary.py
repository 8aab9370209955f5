"""A canary in working output, looked for at every reader of the log."""

from pathlib import Path

import sqlalchemy as sa
from structlog.testing import capture_logs

from memory.ports import Json, ModelRequest
from memory.storage.database import Database
from memory.storage.tables import messages, metadata
from tests.fakes.embedder import WordEmbedder
from tests.fakes.house import House, house
from tests.fakes.model import call

CANARY = "quetzalcoatlus"
TITLE = "Letter"
SUMMARY: Json = {
    "title": "A letter",
    "text": "The person had a letter written.",
    "request": "A letter",
    "investigated": "",
    "learned": "",
    "completed": "",
    "next_steps": "",
    "notes": "",
}


def summarised(request: ModelRequest) -> Json | str:
    return SUMMARY if request.schema else "Very well."


async def tell(opened: House) -> None:
    """A chat with working output in it, open at its end, and enough words for a summary."""
    opened.model.script += [call("write_draft", title=TITLE, text=f"Dear {CANARY}."), "It is on its card."]
    await opened.say("Write a letter to the museum about the dinosaur exhibition next summer")
    await opened.say("The museum in Berlin has a new director, so mention her exhibition plans")


async def test_p16_a_canary_in_working_output_reaches_no_reader(database: Database, tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with house(database, tmp_path) as opened:
            await tell(opened)
            loop = len(opened.model.requests)
            opened.model.always = summarised
            await opened.memory.learn()
            await opened.say("/newchat")
            opened.model.script += [call("search_memory", query=f"letter museum {CANARY[:5]}"), "Found."]
            await opened.say("What did I have written for the museum?")
            await opened.say("Is the museum open?", chat="99", **{"from": "99"})
            await opened.memory.learn()
            later = opened.model.requests[loop:]
            assert later
            assert not [request for request in later if CANARY in repr(request)]
            embedder = opened.memory._embedder  # pyright: ignore[reportPrivateUsage]
            assert isinstance(embedder, WordEmbedder)
            assert not [text for text in embedder.seen if CANARY in text]
            assert not [text for text in opened.transport.texts() if CANARY in text]  # /newchat closed it
    assert not [entry for entry in logs if CANARY in repr(entry) and entry["log_level"] != "debug"]


async def test_while_the_work_is_open_its_text_stands_in_working_rows_only(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await tell(opened)
        opened.model.always = summarised
        await opened.memory.learn()
        places = await where(database, CANARY)
        assert places == {"messages"}
        async with database.read() as connection:
            query = sa.select(messages.c.is_ephemeral, messages.c.tool).where(messages.c.text.contains(CANARY))
            assert [tuple(row) for row in (await connection.execute(query)).all()] == [(True, "draft")]


async def test_after_closing_no_byte_of_it_is_in_the_database(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await tell(opened)
        await opened.say("/close")
        assert await where(database, CANARY) == set()
        await opened.memory.learn()
        await database.flush_deleted()
    await database.close()
    assert CANARY.encode() not in (tmp_path / "merk.db").read_bytes()


async def test_other_people_see_nothing_of_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await tell(opened)
        for command in ("/history", "/chats", "/memory", "/draft"):
            said = await opened.say(command, chat="99", **{"from": "99"})
            assert not [text for text in said if CANARY in text], command
        exported = repr(await opened.memory.export(2))
        assert CANARY not in exported
        assert CANARY in repr(await opened.memory.export(1))  # it is the first person's own


async def where(database: Database, word: str) -> set[str]:
    """The tables in which a word stands, in any column."""
    found: set[str] = set()
    async with database.read() as connection:
        for table in metadata.sorted_tables:
            for row in (await connection.execute(sa.select(table))).all():
                if word in repr(row):
                    found.add(table.name)
    return found
