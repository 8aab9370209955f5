"""/forget finds what was kept and what was noticed, by one rule, within the asker's scope; and says what else to do."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from memory.ports import ChatMessage, TextBlock, ToolResult
from memory.scope import VIEW_SENSITIVE
from memory.storage import members
from memory.storage.database import Database
from memory.storage.tables import facts, messages, observations
from tests.fakes.house import House, house
from tests.fakes.model import call

BOB: dict[str, Any] = {"from": "7", "chat": "7"}
GROUP: dict[str, Any] = {"chat": "-5", "group": True}


def seen(message: ChatMessage) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock | ToolResult))


async def count(opened: House, table: sa.Table) -> int:
    async with opened.database.read() as connection:
        return int((await connection.execute(sa.select(sa.func.count()).select_from(table))).scalar_one())


async def kept(opened: House, text: str, ref: str = "r1", **where: Any) -> None:
    """An observation: somebody says something and has the message kept."""
    await opened.say(text, ref=ref, **where)
    await opened.say("/keep", reply_to=ref, **where)


async def test_what_was_noticed_is_found_named_and_erased_on_yes(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, always="Fine.") as opened:
        await kept(opened, "My dog is called Bruno.")
        (asked,) = await opened.say("/forget dogs")  # another form of the word
        assert asked == "Forget this for good?\nMy dog is called Bruno.\nnoticed · Fact · Only you"
        assert await count(opened, observations) == 1
        (receipt,) = await opened.press("Yes, forget")
        assert "1 thing that I had noticed" in receipt
        assert "message" in receipt
        assert await count(opened, observations) == 0
        async with opened.database.read() as connection:
            said = " ".join((await connection.execute(sa.select(messages.c.text))).scalars())
        assert "Bruno" not in said


async def test_facts_and_observations_stand_in_one_list_and_all_takes_a_second_yes(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like green tea")
        await kept(opened, "The tea shop closes at six.")
        (asked,) = await opened.say("/forget tea")
        assert "1. I like green tea · kept" in asked
        assert "2. The tea shop closes at six. · noticed · Fact · Only you" in asked
        await opened.press("All of them")
        assert (await count(opened, facts), await count(opened, observations)) == (1, 1)
        (receipt,) = await opened.press("Yes, forget all 2")
        assert "1 fact" in receipt
        assert "1 thing that I had noticed" in receipt
        assert (await count(opened, facts), await count(opened, observations)) == (0, 0)


async def test_what_was_noticed_in_the_words_of_a_fact_goes_with_it(database: Database, tmp_path: Path) -> None:
    script = (call("remember_fact", fact="My dog is called Bruno"), "I keep that.")
    async with house(database, tmp_path, *script) as opened:
        await kept(opened, "Please keep in mind that my dog is called Bruno.")
        (asked,) = await opened.say("/forget Bruno")
        assert asked == "Forget this for good?\nMy dog is called Bruno"
        (receipt,) = await opened.press("Yes, forget")
        assert "1 fact" in receipt
        assert "1 thing that I had noticed" in receipt
        assert (await count(opened, facts), await count(opened, observations)) == (0, 0)


async def test_in_a_group_only_ones_own_is_offered_and_others_is_said(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.", **GROUP)
        there = {**GROUP, "from": "7"}
        (said,) = await opened.say("/forget Bruno", **there)
        assert "somebody else" in said
        (asked,) = await opened.say("/forget Bruno", **GROUP)
        token = next(iter(await _tokens(opened, "Yes, forget")))
        await opened.press_token(token, list(opened.transport.shown)[-1], **there)  # it is not for them
        assert await count(opened, observations) == 1
        assert "My dog is called Bruno" in asked
        await opened.press("Yes, forget", **GROUP)
        assert await count(opened, observations) == 0


async def test_another_person_finds_nothing_of_ones_own(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        assert "nobody said it" in (await opened.say("/forget Bruno", **BOB))[0]
        await opened.say("hello", **GROUP)
        assert "nobody said it" in (await opened.say("/forget Bruno", **GROUP))[0]


async def test_what_is_sensitive_is_found_by_the_command_but_not_by_the_model(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My clinic is in Porto.")
        async with opened.database.write() as connection:
            await members.grant(connection, 1, VIEW_SENSITIVE)
        async with opened.database.write() as connection:
            await connection.execute(observations.update().values(owner="s1", scope="sensitive"))
        opened.model.script += [call("forget_fact", query="clinic"), "No."]
        await opened.say("forget the clinic")
        assert "Nothing that is kept" in seen(opened.model.requests[-1].messages[-1])
        (asked,) = await opened.say("/forget clinic")
        assert "My clinic is in Porto" in asked
        await opened.press("Yes, forget")
        assert await count(opened, observations) == 0


async def test_words_that_were_only_said_lead_to_the_chat_that_holds_them(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("The submarine leaves from Kiel.")
        (said,) = await opened.say("/forget submarines")
        assert said.startswith("I keep nothing about “submarines”, but it was said in one chat.")
        assert opened.labels()[-1] == "Leave it"
        await opened.press(opened.labels()[0])
        (receipt,) = await opened.press("Yes, delete")
        assert "message" in receipt
        assert "nobody said it" in (await opened.say("/forget submarine"))[0]


async def test_search_memory_shows_what_was_noticed(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        opened.model.script += [call("search_memory", query="dog Bruno"), "Here."]
        said = await opened.say("what do you know about my dog?")
        assert any("1. My dog is called Bruno." in each for each in said)
        assert '"type": "fact"' in seen(opened.model.requests[-1].messages[-1])
        (one,) = await opened.press("1. My dog is called Bruno.")
        assert "My dog is called Bruno." in one


async def _tokens(opened: House, label: str) -> list[str]:
    shown = list(opened.transport.shown.values())[-1]
    return [key.token for row in shown.part.keys for key in row if key.label == label]
