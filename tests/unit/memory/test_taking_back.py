"""A message that its author deletes: its words and what was made of them go, and nobody else's."""

from typing import Any

import pytest

from memory.language.text import MARK
from memory.scope import Audience, sensitive_key
from memory.storage import log
from memory.storage.tables import facts
from memory.types import Session, Utterance
from tests.unit.memory.world import World


async def said(world: World, session: Session, who: Audience, ref: str, text: str, answer: str = "") -> int:
    """A message with the transport's id, and the answer to it."""
    world.clock.advance(seconds=1)
    inbox_id = len(await world.rows("messages")) + 100
    piece: dict[str, Any] = {"ref": ref, "at": 0, "length": len(text), "hash": "x"}
    common: dict[str, Any] = {"session_id": session.id, "inbox_id": inbox_id}
    mine = Utterance(
        role="user", speaker="A", text=text, user_id=who.user_id, external_ref=ref, blocks=[piece], **common
    )
    async with world.database.write() as connection:
        message = await log.append(connection, mine, world.now)
        if answer:
            await log.append(connection, Utterance(role="assistant", speaker="Merk", text=answer, **common), world.now)
    return message.id


async def test_its_words_go_from_log_answer_summary_and_disk(world: World) -> None:
    ada = await world.person("ada")
    session = await world.session(ada, title="Zwirbelwitz and the vet")
    await said(world, session, ada, "$1", "I want to go to the sea.", "Which sea?")
    await said(
        world, session, ada, "$2", "The vet of Zwirbelwitz called.", "So the vet of Zwirbelwitz called. And then?"
    )
    await world.memory.learn()
    assert b"zwirbelwitz" in world.bytes_on_disk().lower()
    receipt = await world.memory.take_back(ada.user_id, ada.chat_id, "$2")
    assert await world.texts(session) == ["I want to go to the sea.", "Which sea?", MARK, f"{MARK} And then?"]
    assert (receipt.messages_redacted, receipt.summaries_anew, receipt.facts) == (2, 1, 0)
    await world.memory.learn()
    assert b"zwirbelwitz" not in world.bytes_on_disk().lower()
    assert "sea" in (await world.rows("summaries"))[0]["text"]


async def test_a_fact_that_rests_on_it_alone_is_forgotten(world: World) -> None:
    ada = await world.person("ada")
    session = await world.session(ada)
    first = await said(world, session, ada, "$1", "My dog is called Bruno.", "Noted: your dog is called Bruno.")
    second = await said(world, session, ada, "$2", "My cat is called Mia.")
    third = await said(world, session, ada, "$3", "As I said, my cat is called Mia.")
    await world.fact(ada, "My dog is called Bruno", first)
    await world.fact(ada, "My cat is called Mia", second, third)
    assert (await world.memory.take_back(ada.user_id, ada.chat_id, "$1")).facts == 1
    assert (await world.memory.take_back(ada.user_id, ada.chat_id, "$2")).facts == 0
    (left,) = await world.memory.facts.list(ada)
    assert left.text == "My cat is called Mia"
    assert await world.texts(session) == [MARK, MARK, MARK, "As I said, my cat is called Mia."]


async def test_nobody_elses_words_are_lost_in_a_group(world: World) -> None:
    """Neither by the author's deletion, nor by a moderator who deletes somebody's message."""
    (ada, bob) = await world.in_group(await world.person("ada"), await world.person("bob"))
    session = await world.session(ada)
    source = await said(world, session, ada, "$1", "Our dog is called Bruno.", "Noted: your dog is called Bruno. Nice!")
    await said(world, session, bob, "$2", "Bruno is a fine name for our dog. Our dog is called Bruno.", "Indeed.")
    kept = await world.fact(bob, "Our dog is called Bruno", source)
    assert (await world.memory.take_back(bob.user_id, bob.chat_id, "$1")).messages_redacted == 0
    assert (await world.memory.take_back(ada.user_id, ada.chat_id, "$1")).messages_redacted == 2
    assert await world.texts(session) == [
        MARK,
        f"{MARK} Nice!",
        "Bruno is a fine name for our dog. Our dog is called Bruno.",
        "Indeed.",
    ]
    assert [fact.id for fact in await world.memory.facts.list(bob)] == [kept.id], "Bob asked for it"


async def test_a_second_time_and_in_another_chat_nothing_happens(world: World) -> None:
    ada = await world.person("ada")
    session = await world.session(ada)
    await said(world, session, ada, "$1", "Something of no consequence.", "Indeed.")
    assert (await world.memory.take_back(ada.user_id, ada.chat_id + 1, "$1")).messages_redacted == 0
    assert (await world.memory.take_back(ada.user_id, ada.chat_id, "$9")).messages_redacted == 0
    assert (await world.memory.take_back(ada.user_id, ada.chat_id, "$1")).messages_redacted == 1
    assert (await world.memory.take_back(ada.user_id, ada.chat_id, "$1")).messages_redacted == 0


@pytest.mark.parametrize("data", [{"text": "The vet of Zwirbelwitz called."}, {"message_id": 1}])
async def test_a_button_that_would_bring_it_back_goes(world: World, data: dict[str, Any]) -> None:
    ada = await world.person("ada")
    session = await world.session(ada)
    message_id = await said(world, session, ada, "$1", "The vet of Zwirbelwitz called.")
    if "message_id" in data:
        data = {"message_id": message_id}
    button = {"token": "t", "action": "answer_again", "user_id": ada.user_id, "session_id": session.id, "card": "c"}
    await world.insert("confirmations", **button, data=data, created_at=1, expires_at=2)
    await world.insert("confirmations", **button | {"token": "other"}, data={"id": 1}, created_at=1, expires_at=2)
    await world.memory.take_back(ada.user_id, ada.chat_id, "$1")
    assert [row["token"] for row in await world.rows("confirmations")] == ["other"]


async def test_a_sensitive_fact_goes_with_its_message_too(world: World) -> None:
    ada = await world.person("ada")
    session = await world.session(ada)
    source = await said(world, session, ada, "$1", "I am allergic to penicillin.")
    kept = await world.fact(ada, "I am allergic to penicillin", source)
    async with world.database.write() as connection:
        change = facts.update().where(facts.c.id == kept.id)
        await connection.execute(change.values(owner=sensitive_key(ada.user_id), scope="sensitive"))
    assert (await world.memory.take_back(ada.user_id, ada.chat_id, "$1")).facts == 1
    assert await world.rows("facts") == []
