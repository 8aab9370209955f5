"""Two people at once, one person in two chats: nobody's words, facts or answers come to another."""

import asyncio
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from handlers.types import Place
from memory.storage.database import Database
from memory.storage.tables import facts, identities
from tests.fakes.house import House, house
from tests.fakes.model import Says, call
from tests.waiting import until

ADA, BOB = {"chat": "42", "from": "42"}, {"chat": "77", "from": "77"}


async def _owners(opened: House) -> dict[str, str]:
    """Each fact's text and whose it is."""
    mine = facts.c.owner == "u" + sa.cast(identities.c.user_id, sa.Text)
    query = sa.select(facts.c.text, identities.c.key).join(identities, mine)
    async with opened.database.read() as connection:
        return {row[0]: row[1] for row in (await connection.execute(query)).all()}


async def test_p03_a_fact_is_its_speakers_whoever_spoke_last(database: Database, tmp_path: Path) -> None:
    """Ada's turn is held up in the middle, Bob's comes and goes, and Ada's tool still writes for Ada."""
    gate = asyncio.Event()
    of_ada = replace(call("remember_fact", fact="The boat is blue"), text="One moment.", gate=gate)
    of_bob = call("remember_fact", fact="The boat is red")
    async with house(database, tmp_path, of_ada, of_bob, always="Noted.") as opened:
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"text": "my boat is blue", **ADA})
        await until(lambda: opened.model.requests, 10)
        await opened.transport.accept("b", {"text": "my boat is red", **BOB})
        async with asyncio.timeout(10):
            while not await _owners(opened):  # noqa: ASYNC110 - the row is what is waited for
                await asyncio.sleep(0.01)
        gate.set()
        await opened.settle()
        assert await _owners(opened) == {"The boat is blue": "fake:42", "The boat is red": "fake:77"}


async def test_p05_a_late_answer_goes_to_who_asked_for_it(database: Database, tmp_path: Path) -> None:
    """Whoever wrote in between: the place is fixed when the turn begins."""
    gate = asyncio.Event()
    async with house(database, tmp_path, Says("Your results are in.", gate=gate), always="Hello Bob.") as opened:
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"text": "are my results in?", **ADA})
        await until(lambda: opened.model.requests, 10)
        await opened.transport.accept("b", {"text": "hello, I am Bob", **BOB})
        await until(lambda: "Hello Bob." in opened.transport.texts(), 10)
        gate.set()
        await opened.settle()
        assert opened.transport.texts(Place("fake", "42", "")) == ["Your results are in."]
        assert opened.transport.texts(Place("fake", "77", "")) == ["Hello Bob."]


async def test_p08_each_thread_is_a_chat_of_its_own(database: Database, tmp_path: Path) -> None:
    """What was said in one is in the prompt of no other; the fact that was asked for is in all of them."""
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea", thread="a")
        await opened.say("the code word is lighthouse", thread="a")
        await opened.say("the code word is harbour", thread="b")
        await opened.say("which code word?", thread="b")
        of_b = str(opened.model.requests[-1].messages)
        assert "harbour" in of_b
        assert "lighthouse" not in of_b
        await opened.say("which code word?", thread="a")
        of_a = str(opened.model.requests[-1].messages)
        assert "lighthouse" in of_a
        assert "harbour" not in of_a
        assert "I like tea" in str(opened.model.requests[-1])
