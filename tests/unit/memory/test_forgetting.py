"""Forgetting: nothing of it is left anywhere, and nothing else is touched."""

import pytest

from tests.unit.memory.world import World

STORIES = [
    pytest.param(
        "My dog is called Bruno",
        ["Remember that my dog is called Bruno. Thanks!", "Noted: your dog is called Bruno.", "Bruno's leash broke."],
        ["[…] Thanks!", "[…]", "[…]"],
        ["What is my dog called?", "My cat likes fish.", "My brother is called Bruno."],
        id="en",
    ),
    pytest.param(
        "Mein Hund heißt Bruno",
        ["Merk dir, dass mein Hund Bruno heißt. Danke!", "Gemerkt: Dein Hund heißt Bruno.", "Brunos Leine ist weg."],
        ["[…] Danke!", "[…]", "[…]"],
        ["Wie heißt mein Hund?", "Meine Katze mag Fisch.", "Mein Bruder heißt Bruno."],
        id="de",
    ),
    pytest.param(
        "Мою собаку зовут Барсик",
        ["Запомни, что мою собаку зовут Барсик. Спасибо!", "Запомнил: твою собаку зовут Барсик.", "Гуляю с Барсиком."],
        ["[…] Спасибо!", "[…]", "[…]"],
        ["Как зовут мою собаку?", "Моя кошка любит рыбу.", "Моего брата зовут Барсик."],
        id="ru",
    ),
]


@pytest.mark.parametrize(("fact", "said", "left", "others"), STORIES)
async def test_words_go_where_they_were_said_and_nothing_else_does(
    world: World, fact: str, said: list[str], left: list[str], others: list[str]
) -> None:
    """In every role and form of the word; questions and statements about something else stay."""
    ada = await world.person("ada")
    session = await world.talk(ada, *said, "OK", *others)
    kept = await world.fact(ada, fact, (await world.messages(session))[0].id)
    receipt = await world.memory.forget_facts(ada, [kept.id])
    assert await world.texts(session) == [*left, "OK", *others]
    assert (receipt.facts, receipt.messages_redacted, receipt.texts) == (1, 3, (fact,))
    assert receipt.unfinished == ()
    assert await world.memory.facts.list(ada) == []


async def test_p26_no_byte_is_left_in_any_file(world: World) -> None:
    """Log, working output, blocks, title, prompt, buttons, queues, summary, words, history of the fact."""
    ada = await world.person("ada")
    marker = "Zwirbelwitz"
    session = await world.talk(ada, f"My dog is called {marker}.", f"Your dog is called {marker}.", title=f"{marker}")
    await world.say(session, f"Draft about {marker}", is_ephemeral=True, blocks=[{"type": "x", "text": f"{marker}!"}])
    await world.say(session, f"{marker} again", ada, inbox_id=7)
    await world.say(session, "OK.")
    payload = {"message": {"from": {"id": "ada"}, "chat": {"id": "ada"}, "text": f"/forget {marker}"}}
    await world.insert("inbox", transport="telegram", external_id="9", payload=payload, status="running", received_at=1)
    await world.insert(
        "outbox",
        transport="telegram",
        place={"chat": "ada", "thread": ""},
        lane="l",
        event={"kind": "text", "text": f"So, {marker}."},
        session_id=session.id,
        status="pending",
        created_at=1,
    )
    await world.insert(
        "confirmations",
        token="t",
        action="a",
        data={"text": f"{marker}"},
        user_id=ada.user_id,
        session_id=session.id,
        card="c",
        created_at=1,
        expires_at=2,
    )
    old = await world.fact(ada, f"My dog is called {marker}")
    new = await world.fact(ada, "My dog is called Rex")
    await world.memory.facts.settle(ada, new.id, "new")
    await world.memory.learn()
    assert marker.lower().encode() in world.bytes_on_disk().lower()
    receipt = await world.memory.forget_facts(ada, [new.id])
    assert marker.lower().encode() not in world.bytes_on_disk().lower()
    assert (receipt.facts, receipt.summaries, receipt.vectors) == (2, 1, 1)
    assert not world.vectors.has_residue
    assert old.id not in {row["id"] for row in await world.rows("facts")}
    (waiting,) = await world.rows("inbox")
    assert waiting["payload"]["message"]["text"] == "/forget […]"
    assert await world.rows("confirmations") == []
