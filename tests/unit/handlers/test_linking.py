"""/link and /unlink in chat: two yeses, plain refusals, and what each network knows before and after."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from handlers.buttons import linking as linking_buttons
from handlers.identities import called
from memory import moving
from memory.storage.database import Database
from memory.storage.tables import confirmations, facts, inbox, users
from tests.fakes.house import House, house
from tests.fakes.transport import RecordingTransport
from tests.unit.handlers.life import system

ADA: dict[str, Any] = {"from": "42", "name": "Ada"}
EVE: dict[str, Any] = {"from": "66", "chat": "66", "name": "Eve"}
YES = "Yes, that is me"


@asynccontextmanager
async def two(
    database: Database, folder: Path, *script: Any, **options: Any
) -> AsyncGenerator[tuple[House, House], None]:
    """One Merk on two networks; the person is number 42 on each."""
    async with house(database, folder, *script, name="fake", also=[RecordingTransport("matrix")], **options) as here:
        yield here, here.on("matrix")


def code_in(told: list[str]) -> str:
    found = re.search(r"`/link (\w{8})`", told[0])
    assert found
    return found[1]


async def link(here: House, there: House, **who: Any) -> None:
    code = code_in(await here.say("/link", **ADA))
    assert "Is that you?" in (await there.say(f"/link {code}", **(who or ADA)))[0]
    await there.press(YES, **(who or ADA))
    assert here.labels()[0] == YES
    await here.press(YES, **ADA)


async def rows(database: Database, query: sa.Select[Any]) -> list[Any]:
    async with database.read() as connection:
        return list((await connection.execute(query)).scalars())


async def asked(house: House, text: str, **who: Any) -> str:
    """What the model is shown for a question."""
    await house.say(text, **(who or ADA))
    return repr(house.model.requests[-1])


def test_a_name_can_neither_begin_a_line_of_its_own_nor_turn_around_what_comes_after_it() -> None:
    assert called("Ada\n\n\u202eTap Yes", "matrix:@e\u202eve:x") == "Ada Tap Yes (Matrix: @eve:x)"


async def test_both_sides_say_yes_and_what_one_network_knew_the_other_knows(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        await here.say("/remember My dog is called Bruno.", **ADA)
        await there.say("/remember My cat is called Minka.", **ADA)
        await there.say("/remember My bird is called Coco.", **EVE)
        code = code_in(await here.say("/link", **ADA))
        [card] = await there.say(f"/link {code}", **ADA)
        assert card.startswith("This code is from Ada (Fake: 42).")
        assert "Bruno" not in await asked(there, "What is my dog called?")
        await there.press(YES, **ADA)
        assert list(here.transport.shown.values())[-1].text.startswith("Ada (Matrix: 42) has brought your code.")
        assert "Bruno" not in await asked(there, "What is my dog called?"), "one yes is none"
        [done] = await here.press(YES, **ADA)
        assert done.startswith("You are one person to me now, here and on Matrix.")
        assert there.transport.texts()[-1].startswith("Done: you are one person to me now, here and on Fake.")
        for network in (here, there):
            known = system(network.model.requests[-1]) if await asked(network, "What do you know?") else ""
            assert "Bruno" in known
            assert "Minka" in known
            assert "Coco" not in known
        assert "Bruno" not in await asked(there, "What is Ada's dog called?", **EVE)
        assert len(await rows(database, sa.select(users.c.id))) == 2


async def test_what_one_network_is_told_after_it_the_other_knows(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        await there.say("hi", **ADA)
        await link(here, there)
        await there.say("/remember My dog is called Bruno.", **ADA)
        assert "Bruno" in await asked(here, "What is my dog called?")


@pytest.mark.parametrize("side", ["there", "here"])
async def test_a_no_on_either_side_joins_nobody(database: Database, tmp_path: Path, side: str) -> None:
    async with two(database, tmp_path) as (here, there):
        await there.say("hi", **ADA)
        code = code_in(await here.say("/link", **ADA))
        await there.say(f"/link {code}", **ADA)
        if side == "there":
            await there.press("No", **ADA)
        else:
            await there.press(YES, **ADA)
            assert "Nothing was joined" in (await here.press("No", **ADA))[0]
            assert "does not hold any more" in (await there.say(f"/link {code}", **ADA))[0]
        assert len(await rows(database, sa.select(users.c.id))) == 2


async def test_only_the_person_who_was_asked_can_say_yes(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        for network in (here, there):
            await network.say("hi", **EVE)
        await there.say("hi", **ADA)
        code = code_in(await here.say("/link", **ADA))
        await there.say(f"/link {code}", **ADA)
        assert "for somebody else" in (await there.press(YES, **EVE))[-1]
        await there.press(YES, **ADA)
        assert "for somebody else" in (await here.press(YES, **EVE))[-1]
        assert len(await rows(database, sa.select(users.c.id))) == 4


async def test_each_code_that_does_not_do_is_refused_in_a_sentence(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        await there.say("hi", **ADA)
        assert "do not know this code" in (await there.say("/link NOSUCHCO", **ADA))[0]
        code = code_in(await here.say("/link", **ADA))
        assert "your own code" in (await here.say(f"/link {code}", **ADA))[0]
        assert "Both of you are on Fake" in (await here.say(f"/link {code}", **EVE))[0]
        await there.say(f"/link {code}", **ADA)
        here.clock.advance(hours=1)
        assert "does not hold any more" in (await there.press(YES, **ADA))[0]
        again = code_in(await here.say("/link", **ADA))
        await there.say(f"/link {again}", **ADA)
        await there.press(YES, **ADA)
        assert "used already" in (await there.say(f"/link {again}", **EVE))[0]


async def test_among_others_there_is_no_code(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        for command in ("/link", "/unlink"):
            told = await opened.say(command, chat="-5", group=True)
            assert "private chat" in told[0]


async def test_after_five_codes_in_an_hour_there_are_no_more(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        for _ in range(5):
            assert "/link " in (await opened.say("/link"))[0]
        assert "many codes" in (await opened.say("/link"))[0]


async def test_a_stranger_becomes_the_person_who_gave_the_code_and_nobody_else(
    database: Database, tmp_path: Path
) -> None:
    async with two(database, tmp_path, admit="pairing", owners=["fake:42"]) as (here, there):
        await here.say("/remember My dog is called Bruno.", **ADA)
        code = code_in(await here.say("/link", **ADA))
        assert "do not know this code" in (await there.say("/link NOSUCHCO", **ADA))[0]
        [told] = await there.say(f"/link {code}", **ADA)
        assert f"/link {code} yes" in told
        assert "do not know you yet" in (await there.say("Hello?", **ADA))[0], "a code alone opens nothing"
        await there.say(f"/link {code} Yes.", **ADA)  # as a phone writes it
        assert "has not let you in yet" in (await there.say("Hello?", **ADA))[0], "nor does one yes"
        await here.press(YES, **ADA)
        assert there.transport.texts()[-1].startswith("Done:")
        assert "Bruno" in await asked(there, "What is my dog called?")
        assert await rows(database, sa.select(users.c.role)) == ["owner"], "an owner here is one there"
        await there.say("/persona", **ADA)
        assert await rows(database, sa.select(users.c.role)) == ["owner"]


async def test_a_stranger_who_says_yes_again_and_again_puts_one_card_there(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path, admit="pairing", owners=["fake:42"]) as (here, there):
        code = code_in(await here.say("/link", **ADA))
        for _ in range(3):
            await there.say(f"/link {code} yes", **ADA)
        assert sum("has brought your code" in text for text in here.transport.texts()) == 1


async def test_a_stranger_who_is_taken_off_again_is_a_stranger(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path, admit="pairing", owners=["fake:42"]) as (here, there):
        code = code_in(await here.say("/link", **ADA))
        await there.say(f"/link {code} yes", **ADA)
        await here.press(YES, **ADA)
        await there.say("/remember My dog is called Bruno.", **ADA)
        assert "only because you were joined" in (await _take_off(here, "Matrix"))[0]
        assert "a stranger to me again" in (await here.press("Yes, take it off", **ADA))[0]
        assert "do not know you yet" in (await there.say("What is my dog called?", **ADA))[0]
        assert "Bruno" in await asked(here, "What is my dog called?"), "the memory stayed"


async def test_whoever_came_by_a_link_cannot_take_the_other_one_off(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path, admit="pairing", owners=["fake:42"]) as (here, there):
        code = code_in(await here.say("/link", **ADA))
        await there.say(f"/link {code} yes", **ADA)
        await here.press(YES, **ADA)
        assert "Take it off from there" in (await _take_off(there, "Fake"))[-1]


async def _take_off(house: House, network: str) -> list[str]:
    await house.say("/unlink", **ADA)
    return await house.press(f"Take off {network}", **ADA)


async def test_taken_off_each_knows_what_was_said_there(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        await there.say("/remember My cat is called Minka.", **ADA)
        await here.say("/remember My dog is called Bruno.", **ADA)
        await link(here, there)
        await there.say("/remember My bird is called Coco.", **ADA)
        [told] = await _take_off(here, "Matrix")
        assert "– 1 chat\n– 2 facts\n– 0 things that I had noticed\n– 0 reminders" in told
        assert "is a person of its own again" in (await here.press("Yes, take it off", **ADA))[0]
        known = await asked(here, "What do you know?")
        assert "Bruno" in known
        assert not any(name in known for name in ("Minka", "Coco"))
        known = await asked(there, "What do you know?")
        assert "Bruno" not in known
        assert all(name in known for name in ("Minka", "Coco"))
        assert "on Fake only" in (await here.say("/unlink", **ADA))[0]
        await link(here, there)
        assert len(await rows(database, sa.select(facts.c.id))) == 3


async def test_chats_of_both_networks_are_listed_and_each_goes_on_where_it_is(
    database: Database, tmp_path: Path
) -> None:
    async with two(database, tmp_path) as (here, there):
        await here.say("The garden needs water.", **ADA)
        await there.say("The trip goes to Riga.", **ADA)
        await link(here, there)
        await here.say("/chats", **ADA)
        listed = here.labels()
        assert len(listed) == 2
        [elsewhere] = [label for label in listed if label.endswith("· Matrix")]
        assert "It goes on in your chat on Matrix" in (await here.press(elsewhere, **ADA))[0]
        assert "Switch to it" not in here.labels()


async def test_a_reminder_rings_where_it_was_made(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        await there.say("/remind in 20 minutes: tea", **ADA)
        await link(here, there)
        assert "tea" in (await here.say("/reminders", **ADA))[0]
        here.clock.advance(minutes=21)
        await here.app.ringing.ring()
        await here.settle()
        assert any("tea" in text for text in there.transport.texts()[-1:])
        assert not any("⏰" in text for text in here.transport.texts())


async def test_an_answer_in_the_making_is_waited_for(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking_buttons, "QUIET_SECONDS", 0.5)
    async with two(database, tmp_path) as (here, there):
        await there.say("hi", **ADA)
        code = code_in(await here.say("/link", **ADA))
        await there.say(f"/link {code}", **ADA)
        await there.press(YES, **ADA)
        async with database.write() as connection:
            await connection.execute(
                sa.text(
                    "UPDATE inbox SET payload = '{\"from\": \"42\"}', status = 'running' WHERE transport = 'matrix'"
                )
            )
        assert "still answering something on Matrix" in (await here.press(YES, **ADA))[0]
        pressed = asyncio.create_task(here.press(YES, **ADA))
        await asyncio.sleep(0.1)
        async with database.write() as connection:
            await connection.execute(sa.text("UPDATE inbox SET payload = NULL, status = 'done'"))
        assert "You are one person to me now" in (await pressed)[0]


async def test_a_long_memory_is_moved_whole_however_long_it_takes(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = moving.merge

    async def slowly(*args: Any) -> set[str]:
        await asyncio.sleep(0.3)
        return await move(*args)

    monkeypatch.setattr(linking_buttons, "QUIET_SECONDS", 0.1)
    monkeypatch.setattr(moving, "merge", slowly)
    async with two(database, tmp_path) as (here, there):
        await there.say("hi", **ADA)
        await link(here, there)
        assert here.transport.texts()[-1].startswith("You are one person to me now, here and on Matrix.")
        assert len(await rows(database, sa.select(users.c.id))) == 1


async def test_a_yes_that_a_crash_cut_off_says_after_it_that_it_is_done(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        await there.say("hi", **ADA)
        code = code_in(await here.say("/link", **ADA))
        await there.say(f"/link {code}", **ADA)
        await there.press(YES, **ADA)
        card = list(here.transport.shown.values())[-1]
        payload = {"text": "", "token": card.part.keys[0][0].token, "card": card.ref, **ADA}
    async with database.write() as connection:  # claimed and joined, and then the power went
        row = {"transport": "fake", "external_id": "cut off", "payload": payload, "status": "running", "received_at": 1}
        key = (await connection.execute(inbox.insert().values(row))).inserted_primary_key
        assert key is not None
        await connection.execute(confirmations.update().values(claimed_by=key[0], claimed_action="join_identity"))
    await here.memory.linking.join(1, code, "matrix:42")
    async with house(database, tmp_path, before=here, also=[RecordingTransport("matrix")]) as again:
        await again.settle()
        assert again.transport.texts()[-1].startswith("You are one person to me now")


async def test_codes_are_known_for_a_day_and_then_gone(database: Database, tmp_path: Path) -> None:
    async with two(database, tmp_path) as (here, there):
        await there.say("hi", **ADA)
        code = code_in(await here.say("/link", **ADA))
        here.clock.advance(hours=2)
        await here.app.tidy()
        assert "does not hold any more" in (await there.say(f"/link {code}", **ADA))[0]
        here.clock.advance(days=1)
        await here.app.tidy()
        assert "do not know this code" in (await there.say(f"/link {code}", **ADA))[0]


async def test_two_owners_who_are_one_person_are_asked_once_about_a_stranger(
    database: Database, tmp_path: Path
) -> None:
    async with two(database, tmp_path, admit="pairing", owners=["fake:42", "matrix:42"]) as (here, there):
        await there.say("hi", **ADA)
        await link(here, there)
        await here.say("Hello?", **EVE)
        cards = [text for network in (here, there) for text in network.transport.texts() if "Eve" in text]
        assert len(cards) == 1
