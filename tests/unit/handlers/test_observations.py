"""What people see of observations: kept by hand, explained, listed, judged, shared, forgotten; by whom, and where."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from memory.kinds.observations.keeping import Wish, keep
from memory.kinds.observations.observation import Content, Trigger, Type
from memory.ports import ModelRequest, Purpose
from memory.scope import PUBLIC, VIEW_SENSITIVE
from memory.storage import members, people
from memory.storage.database import Database
from memory.storage.tables import messages, observation_feedback, observations
from tests.fakes.house import House, house
from tests.fakes.noticing import Noticing, noticed

BOB: dict[str, Any] = {"from": "7", "chat": "7"}
GROUP: dict[str, Any] = {"chat": "-5", "group": True}


async def owners(opened: House) -> list[str]:
    async with opened.database.read() as connection:
        query = sa.select(observations.c.owner).order_by(observations.c.id)
        return list((await connection.execute(query)).scalars())


async def kept(opened: House, text: str, ref: str = "r1", **where: Any) -> list[str]:
    """Say something, and have it kept by a reply."""
    await opened.say(text, ref=ref, **where)
    return await opened.say("/keep", reply_to=ref, **where)


async def opened_one(opened: House) -> str:
    """The card of the only observation, by way of /memory."""
    await opened.say("/memory")
    [card] = await opened.press("1")
    return card


async def stored(opened: House, value: str, *, confidence: float = 1.0, owner: str = "u1", user_id: int = 1) -> int:
    said = f"Ada lives in {value}."
    content = Content(Type.FACT, said, said, subject="person:1", attribute="home", value=value, confidence=confidence)
    now = int(opened.clock.now().timestamp() * 1000)
    async with opened.database.write() as connection:
        return (await keep(connection, Wish(content, owner, user_id, Trigger.MANUAL, quote=said), now)).id


# --- keep -----------------------------------------------------------------------------------------


async def test_keep_keeps_the_message_that_is_replied_to(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert await kept(opened, "My dog is called Bruno.") == ["Kept: My dog is called Bruno.\nOnly you"]
        assert opened.labels() == ["Undo", "Edit", "Who sees it"]
        assert "I have that already" in (await opened.say("/keep", reply_to="r1"))[0]
        assert await owners(opened) == ["u1"]


async def test_keep_finds_an_answer_of_merk_by_its_message(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "The museum opens at nine.") as opened:
        await opened.say("When does it open?")
        answer = next(ref for ref, shown in opened.transport.shown.items() if "museum" in shown.text)
        assert "museum opens at nine" in (await opened.say("/keep", reply_to=answer))[0]
        assert "museum" in (await opened.say("/keep"))[0]  # without a reply it is the last answer


async def test_keep_of_what_is_not_there_says_so(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert "do not find" in (await opened.say("/keep"))[0]
        await opened.say("My dog is called Bruno.", ref="r1")
        assert "do not find" in (await opened.say("/keep", reply_to="r1", **BOB))[0]
        assert await owners(opened) == []


async def test_undo_takes_back_and_edit_rewords(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        await opened.press("Edit")
        assert "Kept: My dog is called Bello" in (await opened.say("My dog is called Bello"))[0]
        assert await opened.press("Undo") == ["Undone; I do not keep it."]
        assert "Bruno" in (await opened.say("/memory"))[0]  # what it had replaced holds again


# --- memory ---------------------------------------------------------------------------------------


async def test_memory_pages_what_was_noticed_and_opens_one(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        for number in range(8):
            await kept(opened, f"Locker {number} is in the cellar number {number}.", f"r{number}")
        (page,) = await opened.say("/memory")
        assert page.startswith("I noticed 8 things")
        assert opened.labels() == ["1", "2", "3", "4", "5", "6", "Choose", "More ›", "What you asked me to keep"]
        (page,) = await opened.press("More ›")
        assert "8. Locker 0" in page
        (one,) = await opened.press("8")
        assert "Locker 0" in one
        (page,) = await opened.press("‹ Back")
        assert "8. Locker 0" in page


async def test_memory_shows_facts_first_and_leads_to_what_was_noticed(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea")
        await kept(opened, "My dog is called Bruno.")
        (page,) = await opened.say("/memory")
        assert page.startswith("I keep 1 fact")
        assert "Bruno" in (await opened.press("Noticed by myself: 1"))[0]
        assert "tea" in (await opened.press("What you asked me to keep"))[0]
        assert "Bruno" in (await opened.say("/memory dog"))[0]
        assert await opened.say("/memory submarine") == ["Nothing of what I keep matches “submarine”."]


async def test_memory_narrows_by_kind_and_scope(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        await opened.say("/memory")
        await opened.press("Choose")
        assert "Only you, when you ask for it" not in opened.labels()
        assert "Nothing noticed · Event" in (await opened.press("Event"))[0]
        await opened.press("Choose")
        assert "I noticed 1 thing" in (await opened.press("All that holds"))[0]


async def test_another_person_never_sees_a_private_observation(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        for words in ("/memory", "/memory dog", "/why"):
            assert "Bruno" not in " ".join(await opened.say(words, **BOB))
        await opened.say("hello", **GROUP)
        for words in ("/memory", "/memory dog", "/why"):
            assert "Bruno" not in " ".join(await opened.say(words, **GROUP))
        assert "Bruno" not in str([request.messages for request in opened.model.requests[1:]])


async def test_a_button_of_somebody_else_does_nothing(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "Our dog is called Bruno.", **GROUP)
        said = await opened.press("Undo", **{**GROUP, "from": "7"})
        assert len(await owners(opened)) == 1
        assert "Bruno" not in " ".join(said)


# --- judge ----------------------------------------------------------------------------------------


async def test_two_rejections_hide_and_restore_brings_back(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        await opened_one(opened)
        assert "once more" in (await opened.press("👎"))[0]
        assert "Hidden" in (await opened.press("👎"))[0]
        assert "👎" not in opened.labels(list(opened.transport.shown.values())[-1])
        assert "nothing about you yet" in (await opened.say("/memory"))[0]
        await opened.say("/remember I like tea")
        await kept(opened, "My cat is called Mia.", "r2")
        await opened.say("/memory")
        await opened.press("Noticed by myself: 1")
        await opened.press("Choose")
        assert "Bruno" in (await opened.press("Hidden"))[0]
        await opened.press("1")
        assert "holds again" in (await opened.press("Restore"))[0]


async def test_the_history_of_a_slot_is_told(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("hello")
        for city in ("Bonn", "Rome"):
            await stored(opened, city)
            opened.clock.advance(days=1)
        await opened_one(opened)
        (told,) = await opened.press("History")
        assert told.index("Bonn") < told.index("Rome")
        assert "Ada lives in Rome. (Mar 2, 2026) · holds" in told


async def test_forget_asks_and_tells_what_it_erased(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        await opened_one(opened)
        await opened.press("Forget")
        assert len(await owners(opened)) == 1
        (receipt,) = await opened.press("Yes, forget")
        assert "1 thing that I had noticed" in receipt
        assert await owners(opened) == []
        async with database.read() as connection:
            said = (await connection.execute(sa.select(messages.c.text))).scalars().all()
        assert not any("Bruno" in text for text in said)


# --- whose ----------------------------------------------------------------------------------------


async def test_widening_asks_and_narrowing_does_not(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("hi", **BOB)
        await kept(opened, "The museum opens at nine.")
        await opened.press("Who sees it")
        assert "More people would see this: Everybody here" in (await opened.press("Everybody here"))[0]
        assert await owners(opened) == ["u2"]
        await opened.press("Yes, share it")
        assert await owners(opened) == [PUBLIC]
        assert "museum" in (await opened.say("/memory", **BOB))[0]
        await opened_one(opened)
        await opened.press("Who sees it")
        assert "who sees it has changed" in (await opened.press("Only you"))[0]
        assert "museum" not in (await opened.say("/memory", **BOB))[0]


async def test_only_whose_it_is_may_change_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "The museum opens at nine.")
        await opened.press("Who sees it")
        await opened.press("Everybody here")
        await opened.press("Yes, share it")
        await opened.say("/memory", **BOB)
        await opened.press("1", **BOB)
        assert opened.labels(list(opened.transport.shown.values())[-1]) == ["👍", "👎", "‹ Back"]


async def test_a_group_sees_its_own_and_loses_what_becomes_private(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "The party is in the garden.", **GROUP)
        assert "garden" in (await opened.say("/memory", **{**GROUP, "from": "7"}))[0]
        await opened.say("/memory", **GROUP)
        await opened.press("1", **GROUP)
        await opened.press("Who sees it", **GROUP)
        said = await opened.press("Only you", **GROUP)
        assert said == ["Done: who sees it has changed."]
        assert "garden" not in (await opened.say("/memory", **GROUP))[0]
        assert "garden" in (await opened.say("/memory"))[0]


async def test_sensitive_is_shown_only_to_who_asks_with_the_grant_alone(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My blood type is zero.")
        async with database.write() as connection:
            await members.grant(connection, 1, VIEW_SENSITIVE)
        await opened_one(opened)
        await opened.press("Who sees it")
        await opened.press("Only you, when you ask for it")
        assert await owners(opened) == ["s1"]
        assert "blood" not in (await opened.say("/memory"))[0]
        await opened.say("/remember I like tea")
        await kept(opened, "My cat is called Mia.", "r2")
        await opened.say("/memory cat")
        await opened.press("Choose")
        assert "Nothing noticed" in (await opened.press("Only you, when you ask for it"))[0]
        await opened.say("/memory cat")
        await opened.press("Choose")
        await opened.press("All that holds")
        await opened.press("Choose")
        assert "blood" in (await opened.press("Only you, when you ask for it"))[0]


# --- why ------------------------------------------------------------------------------------------


async def test_why_names_what_was_used_and_each_can_be_judged(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea")
        await kept(opened, "My dog is called Bruno.")
        await opened.say("/newchat")
        opened.model.script.append("Bruno [o1].")
        await opened.say("What is my dog called?")
        (told,) = await opened.say("/why")
        assert "1. I like tea (you had me keep it" in told
        assert "2. My dog is called Bruno. (kept by hand, " in told
        assert told.count("used in the answer") == 1
        assert opened.labels()[-1] == "Keep this answer"
        await opened.press("2")
        assert "right" in (await opened.press("👍"))[0]
        assert "Bruno" in (await opened.press("‹ Back"))[0]
        async with database.read() as connection:
            found = (await connection.execute(sa.select(observation_feedback.c.kind))).scalars().all()
        assert found == ["confirmed"]


@pytest.mark.parametrize(
    ("language", "said", "asked", "named"),
    [
        ("English", "my dog is called Bruno", "What is my dog called?", "1. my dog is called Bruno (noticed in a chat"),
        ("Deutsch", "Mein Hund heißt Bruno", "Wie heißt mein Hund?", "1. Mein Hund heißt Bruno (in einem Chat bemerkt"),
        ("Русский", "Мою собаку зовут Бруно", "Как зовут собаку?", "1. Мою собаку зовут Бруно (замечено в чате"),
    ],
)
async def test_why_names_what_merk_noticed_by_itself(
    database: Database, tmp_path: Path, language: str, said: str, asked: str, named: str
) -> None:
    notices = Noticing({said: noticed(said)})

    def answer(request: ModelRequest) -> Any:
        return "Good." if request.account.purpose is Purpose.CHAT else notices(request)

    async with house(database, tmp_path, always=answer) as opened:
        await opened.say("/language")
        await opened.press(language)
        await opened.say(f"{said}, by the way.")
        opened.clock.advance(minutes=30)
        await opened.memory.learn()
        await opened.say("/newchat")
        await opened.say(asked)
        assert named in (await opened.say("/why"))[0]


async def test_why_of_a_reply_is_about_that_answer_and_a_stranger_to_it_gets_none(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, "One.", "Two.") as opened:
        await opened.say("first", ref="r1")
        await opened.say("second")
        assert "nothing came from memory" in (await opened.say("/why", reply_to="r1"))[0]
        assert "no answer of mine" in (await opened.say("/why", reply_to="r1", **BOB))[0]


# --- questions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("choice", "left"), [("The new one", ["Rome"]), ("Both", ["Bonn", "Rome"])])
async def test_a_contradiction_is_asked_once_at_the_end_of_a_later_turn(
    database: Database, tmp_path: Path, choice: str, left: list[str]
) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("hello")
        await stored(opened, "Bonn")
        await stored(opened, "Rome", confidence=0.3)
        assert len(await opened.say("hi", **BOB)) == 1
        assert len(await opened.say("hi", **GROUP)) == 1
        answer, asked = await opened.say("good morning")
        assert answer == "Very well."
        assert "New: Ada lives in Rome." in asked
        async with house(database, tmp_path, before=opened) as again:
            assert len(await again.say("and now?")) == 1
            await again.press(choice)
            async with database.read() as connection:
                holding = sa.select(observations.c.value).where(observations.c.valid_to.is_(None))
                found = (await connection.execute(holding.order_by(observations.c.id))).scalars().all()
            assert found == left


# --- an edited message ----------------------------------------------------------------------------


async def test_what_rested_on_the_old_words_of_an_edited_message_goes(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        await opened.say("My cat is called Mia.", ref="r1", edit=True)
        await opened.press("Answer again")
        assert await owners(opened) == []


async def test_the_same_words_again_are_no_new_observation_to_undo(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await kept(opened, "My dog is called Bruno.")
        await opened.press("Edit")
        assert "I have that already" in (await opened.say("My dog is called Bruno."))[0]
        assert "Undo" not in opened.labels()


async def test_erasing_a_person_ends_the_digest(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/digest on")
        await opened.memory.erase_user(1)
        async with database.read() as connection:
            assert await people.by_id(connection, 1) is None
        await opened.app.digests.send()
