"""Forgetting: nothing of it is left anywhere, and nothing else is touched."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.ports import ModelRequest
from memory.storage import inbox
from memory.storage.backups import take_backup
from memory.storage.making import without_forgotten
from memory.storage.tables import metadata
from tests.fakes.index import ExactIndex
from tests.fakes.model import Says, ScriptedModel
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


async def test_p26_it_does_not_come_back(world: World) -> None:
    """Learned anew from what remains, re-indexed, recalled by words and by meaning: nothing of it."""
    ada = await world.person("ada")
    session = await world.talk(ada, "My dog is called Bruno. We fly to Lisbon in May.", "Bruno will miss you.")
    fact = await world.fact(ada, "My dog is called Bruno")
    await world.memory.learn()
    await world.memory.forget_facts(ada, [fact.id])
    found = await world.memory.recall(ada, 0, "What is my dog Bruno called?")
    assert (found.facts, found.recollections) == ((), ())
    assert await world.rows("summaries") == [], "stale text is not kept until it is rebuilt"
    assert await world.memory.learn() == 1
    (summary,) = await world.rows("summaries")
    assert summary["text"] == "We fly to Lisbon in May."
    assert await world.memory.reindex() == 1
    found = await world.memory.recall(ada, 0, "Bruno Lisbon")
    assert [each.session_id for each in found.recollections] == [session.id]
    assert "Bruno" not in found.recollections[0].text


async def test_what_was_replaced_is_forgotten_with_it(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "I live in Berlin.", "OK.", "I live in Hamburg now.", "You live in Hamburg.")
    old = await world.fact(ada, "I live in Berlin")
    edited = (await world.memory.facts.edit(ada, old.id, "I live in Kiel")).fact
    new = await world.fact(ada, "I live in Hamburg")
    await world.memory.facts.settle(ada, new.id, "new")
    receipt = await world.memory.forget_facts(ada, [new.id])
    assert receipt.facts == 3
    assert receipt.texts == ("I live in Hamburg",)
    assert await world.rows("facts") == []
    assert await world.texts(session) == ["[…]", "OK.", "[…]", "[…]"]
    assert edited.id != old.id


async def test_p02_two_people_say_the_same_and_one_forgets(world: World) -> None:
    ada, ben = await world.person("ada"), await world.person("ben")
    for person in (ada, ben):
        await world.talk(person, "My dog is called Bruno", "Your dog is called Bruno.", title="Bruno")
        await world.fact(person, "My dog is called Bruno")
    await world.memory.learn()
    before = await world.snapshot(ben.owner)
    (fact,) = await world.memory.facts.list(ada)
    receipt = await world.memory.forget_facts(ada, [fact.id])
    assert await world.snapshot(ben.owner) == before
    assert (receipt.facts, receipt.messages_redacted, receipt.summaries) == (1, 2, 1)
    found = await world.memory.recall(ben, 0, "What is my dog Bruno called?")
    assert len(found.facts) == len(found.recollections) == 1


async def test_p28_nobody_forgets_what_is_not_theirs(world: World) -> None:
    """Unknown, foreign and no ids change nothing at all, and the receipt says so."""
    ada, ben = await world.person("ada"), await world.person("ben")
    (ada_here,) = await world.in_group(ada)
    session = await world.talk(ada, "My dog is called Bruno", "OK")
    fact = await world.fact(ada, "My dog is called Bruno")
    before = await world.snapshot(ada.owner)
    for audience, ids in ((ben, [fact.id]), (ada_here, [fact.id]), (ada, [999]), (ada, list[int]())):
        receipt = await world.memory.forget_facts(audience, ids)
        assert (receipt.facts, receipt.messages_redacted, receipt.texts) == (0, 0, ())
    assert (await world.memory.forget_session(ben, session.id)).messages_redacted == 0
    assert await world.snapshot(ada.owner) == before


async def test_a_private_fact_is_not_sought_in_groups_nor_the_other_way_round(world: World) -> None:
    ada, ben = await world.person("ada"), await world.person("ben")
    ada_here, ben_here = await world.in_group(ada, ben)
    group = await world.session(ada_here)
    await world.say(group, "My dog is called Bruno", ada_here)
    await world.say(group, "My dog is called Bruno", ben_here)
    await world.say(group, "Bruno is cute", ben_here)
    private = await world.talk(ada, "My dog is called Bruno", "OK")
    fact = await world.fact(ada, "My dog is called Bruno")
    shared = await world.fact(ada_here, "My dog is called Bruno")
    await world.memory.forget_facts(ada, [fact.id])
    assert await world.texts(private) == ["[…]", "OK"]
    assert (await world.texts(group))[0] == "My dog is called Bruno"
    await world.memory.forget_facts(ada_here, [shared.id])
    assert await world.texts(group) == ["[…]", "My dog is called Bruno", "[…]"]


async def test_sources_elsewhere_are_not_touched(world: World) -> None:
    """A source id that points into somebody else's log is not followed."""
    ada, ben = await world.person("ada"), await world.person("ben")
    session = await world.talk(ben, "My dog is called Bruno", "OK")
    fact = await world.fact(ada, "My dog is called Bruno", *[each.id for each in await world.messages(session)])
    await world.memory.forget_facts(ada, [fact.id])
    assert await world.texts(session) == ["My dog is called Bruno", "OK"]


async def test_p27_an_index_that_is_down_is_swept_later(world: World) -> None:
    """The rows go at once; the receipt names the index; the next sweep finishes it."""
    ada = await world.person("ada")
    await world.talk(ada, "My dog is called Bruno", "OK")
    fact = await world.fact(ada, "My dog is called Bruno")
    await world.memory.learn()

    class Failing(ExactIndex):
        failing = True

        async def delete(self, owner: str, ids: Sequence[str]) -> int:
            if self.failing:
                raise OSError("the disk is gone")
            return await super().delete(owner, ids)

    failing = Failing()
    world.vectors = failing
    await world.reborn().open()
    await world.memory.reindex()
    receipt = await world.memory.forget_facts(ada, [fact.id])
    assert (receipt.unfinished, receipt.facts, receipt.vectors) == (("index",), 1, 0)
    assert await failing.count() == 1
    failing.failing = False
    await world.reborn().open()
    assert await failing.count() == 0
    assert not failing.has_residue
    assert [row for row in await world.rows("kept_values") if row["key"] == "memory.unswept"] == []


async def test_a_crash_between_rows_and_vectors_is_made_good(world: World) -> None:
    """The process dies right after the commit: the next one clears vectors and disk."""
    ada = await world.person("ada")
    await world.talk(ada, "My dog is called Zwirbelwitz", "OK")
    fact = await world.fact(ada, "My dog is called Zwirbelwitz")
    await world.memory.learn()

    class Dying(ExactIndex):
        dying = False

        async def delete(self, owner: str, ids: Sequence[str]) -> int:
            if self.dying:
                raise asyncio.CancelledError
            return await super().delete(owner, ids)

    world.vectors = dying = Dying()
    await world.reborn().open()
    await world.memory.reindex()
    dying.dying = True
    with pytest.raises(asyncio.CancelledError):
        await world.memory.forget_facts(ada, [fact.id])
    assert await dying.count() == 1
    dying.dying = False
    await world.reborn().open()
    assert await dying.count() == 0
    assert b"zwirbelwitz" not in world.bytes_on_disk().lower()


async def test_many_rows_on_split_pages_leave_no_copy(world: World) -> None:
    """Pages that were split keep copies of moved rows; they go, too."""
    ada = await world.person("ada")
    session = await world.session(ada)
    async with world.database.write() as connection:
        rows = [
            {
                "session_id": session.id,
                "role": "user",
                "speaker": "Ada",
                "user_id": ada.user_id,
                "text": f"{'Zwirbelwitz barks. ' if i % 50 == 0 else ''}{'filler words ' * (1 + i * 7919 % 60)}",
                "created_at": i,
            }
            for i in range(1500)
        ]
        await connection.execute(metadata.tables["messages"].insert(), rows)
    fact = await world.fact(ada, "My dog is called Zwirbelwitz")
    receipt = await world.memory.forget_facts(ada, [fact.id])
    assert receipt.messages_redacted == 30
    assert b"zwirbelwitz" not in world.bytes_on_disk().lower()


async def test_work_in_progress_is_lost_and_begun_anew(world: World) -> None:
    """A summary that is being written from the old text is dropped."""
    asked, gate = asyncio.Event(), asyncio.Event()

    def slow(request: ModelRequest) -> Says:
        assert request.schema is not None
        asked.set()
        return Says('{"text": "Ada has a dog called Bruno."}', gate=gate)

    memory = world.reborn(model=ScriptedModel(slow, {"text": "Ada talked about the weather."}))
    ada = await world.person("ada")
    await world.talk(ada, "My dog is called Bruno. It rains.", "Indeed.")
    fact = await world.fact(ada, "My dog is called Bruno")
    learning = asyncio.create_task(memory.learn())
    await asked.wait()
    assert (await memory.forget_facts(ada, [fact.id])).pending == 1
    gate.set()
    assert await learning == 0
    assert await world.rows("summaries") == []
    assert await memory.learn() == 1
    assert [row["text"] for row in await world.rows("summaries")] == ["Ada talked about the weather."]


async def test_a_session_is_forgotten_with_all_that_hangs_on_it(world: World) -> None:
    ada = await world.person("ada")
    other = await world.talk(ada, "The fence needs paint", "OK")
    session = await world.talk(ada, "Zwirbelwitz is hungry", "OK", title="Zwirbelwitz")
    message = (await world.messages(session))[0].id
    fact = await world.fact(ada, "I like tea", message)
    payload = {"message": {"text": "Zwirbelwitz again"}}
    await world.insert("inbox", transport="t", external_id="1", payload=payload, status="running", received_at=1)
    (waiting,) = await world.rows("inbox")
    await world.say(session, "Zwirbelwitz again", ada, inbox_id=waiting["id"])
    await world.insert(
        "confirmations",
        token="t",
        action="a",
        data={},
        user_id=ada.user_id,
        session_id=session.id,
        card="c",
        created_at=1,
        expires_at=2,
    )
    await world.memory.learn()
    receipt = await world.memory.forget_session(ada, session.id)
    assert (receipt.messages_redacted, receipt.summaries, receipt.vectors) == (3, 1, 1)
    assert receipt.pending == 3, "the button, the update that was being worked on, and what was to be learned"
    assert [row["id"] for row in await world.rows("sessions")] == [other.id]
    assert (await world.memory.facts.by_id(ada, fact.id)) == replace(fact, source_message_ids=())
    assert await world.vectors.ids(ada.owner) == {f"{other.id}.0"}
    assert b"zwirbelwitz" not in world.bytes_on_disk().lower()
    assert (await world.rows("inbox"))[0]["status"] == "done"


async def test_p29_the_receipt_names_the_backups_that_may_hold_it(world: World) -> None:
    ada = await world.person("ada")
    fact = await world.fact(ada, "My dog is called Bruno")
    take_backup(world.data_dir / "merk.db", "0002", world.clock.now())
    receipt = await world.memory.forget_facts(ada, [fact.id])
    assert receipt.backups == ("merk-before-0002-2026-03-01.db (2026-03-08)",)


async def test_other_peoples_messages_on_the_way_are_left_alone(world: World) -> None:
    """Rows that wait are told apart by who sent them and whom they answer, not by their words."""
    ada, ben = await world.person("ada"), await world.person("ben")
    texts: dict[str, Any] = {name: {"message": {"from": {"id": name}, "text": "Bruno!"}} for name in ("ada", "ben")}
    texts["cat"] = {"message": {"from": {"id": "ben"}, "text": "Bruno!", "reply_to_message": {"from": {"id": "ada"}}}}
    for name, payload in texts.items():
        await world.insert(
            "inbox", transport="telegram", external_id=name, payload=payload, status="new", received_at=1
        )
        await world.insert(
            "outbox",
            transport="telegram",
            place={"chat": name, "thread": ""},
            lane=name,
            event={"kind": "notice", "text": "Bruno!"},
            user_id=ada.user_id if name == "ada" else ben.user_id,
            status="pending",
            created_at=1,
        )
    fact = await world.fact(ada, "My dog is called Bruno")
    assert (await world.memory.forget_facts(ada, [fact.id])).pending == 2
    assert [row["payload"]["message"]["text"] for row in await world.rows("inbox")] == ["[…]", "Bruno!", "Bruno!"]
    assert [row["event"]["text"] for row in await world.rows("outbox")] == ["[…]", "Bruno!", "Bruno!"]


words = st.sampled_from(["Bruno", "Minka", "Lisbon", "tea", "green", "dog", "rain"])
said = st.lists(st.tuples(st.sampled_from(["ada", "ben", "here"]), words, words), min_size=1, max_size=6)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said, st.sampled_from(["My dog is called Bruno", "I live in Lisbon", "My favourite colour is green"]))
async def test_s1_rows_of_every_other_owner_are_byte_identical(
    world: World, said: list[tuple[str, str, str]], text: str
) -> None:
    """Property: whatever was said where, a forget changes its own owner's rows only."""
    ada, ben = await world.person("ada"), await world.person("ben")
    here, _ = await world.in_group(ada, ben)
    places = {"ada": ada, "ben": ben, "here": here}
    for place, one, other in said:
        await world.talk(places[place], f"{text}. {one} and {other}!", f"So {one}.", title=one)
    facts = {place: await world.fact(audience, text) for place, audience in places.items()}
    await world.memory.learn()
    before = {place: await world.snapshot(places[place].owner) for place in ("ben", "here")}
    vectors = {place: await world.vectors.ids(places[place].owner) for place in ("ben", "here")}
    await world.memory.forget_facts(ada, [facts["ada"].id])
    for place in ("ben", "here"):
        assert await world.snapshot(places[place].owner) == before[place]
        assert await world.vectors.ids(places[place].owner) == vectors[place]


async def test_d3_what_is_in_the_making_is_redacted_as_it_is_written(world: World) -> None:
    """An answer that grows and a message that waits in line hold the name; the disk never does."""
    ada, ben = await world.person("ada"), await world.person("ben")
    for number, (name, text) in enumerate(
        [("ada", "Tell a story"), ("ada", "Zwirbelwitz wants a bone"), ("ben", "Hello")], start=1
    ):
        payload = {"message": {"from": {"id": name}, "text": text}}
        await world.insert(
            "inbox",
            id=number,
            transport="telegram",
            external_id=str(number),
            payload=payload,
            status="running",
            received_at=1,
        )
    session = await world.talk(ada, "Tell a story")
    fact = await world.fact(ada, "My dog is called Zwirbelwitz")
    await world.memory.forget_facts(ada, [fact.id])
    answer = "Once upon a time there was Zwirbelwitz. The end."
    await world.say(session, answer, inbox_id=1, blocks=[{"kind": "piece", "text": "Zwirbelwitz!"}])
    await world.say(session, "Zwirbelwitz wants a bone", ada, inbox_id=2)
    others = await world.session(ben)
    await world.say(others, "Zwirbelwitz is the dog of a neighbour", ben, inbox_id=3)
    assert await world.texts(session) == ["Tell a story", "[…] The end.", "[…]"]
    assert (await world.messages(session))[1].blocks == [{"kind": "piece", "text": "[…]"}]
    assert await world.texts(others) == ["Zwirbelwitz is the dog of a neighbour"]
    async with world.database.write() as connection:
        waiting = {"kind": "text", "text": answer}
        assert without_forgotten(connection, 1, waiting) == {"kind": "text", "text": "[…] The end."}
        assert without_forgotten(connection, None, waiting) == waiting
        await inbox.finish(connection, (1,), world.now)
    await world.memory.learn()
    async with world.database.write() as connection:
        assert without_forgotten(connection, 1, answer) == answer, "what is done needs nothing noted"
        assert without_forgotten(connection, 2, "Zwirbelwitz") == "[…]"


async def test_d3_what_is_said_after_the_forget_is_kept_as_it_is(world: World) -> None:
    ada = await world.person("ada")
    session = await world.session(ada)
    fact = await world.fact(ada, "My dog is called Bruno")
    await world.memory.forget_facts(ada, [fact.id])
    payload = {"message": {"from": {"id": "ada"}, "text": "Bruno is back"}}
    await world.insert("inbox", transport="telegram", external_id="9", payload=payload, status="new", received_at=2)
    (row,) = await world.rows("inbox")
    await world.say(session, "Bruno is back", ada, inbox_id=row["id"])
    assert await world.texts(session) == ["Bruno is back"]


async def test_d11_asked_again_after_a_crash_a_forget_returns_its_first_receipt(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "My dog is called Zwirbelwitz", "OK")
    fact = await world.fact(ada, "My dog is called Zwirbelwitz")
    await world.memory.learn()
    first = await world.memory.forget_facts(ada, [fact.id], key="7")
    assert (first.facts, first.messages_redacted, first.summaries, first.vectors) == (1, 1, 1, 1)
    await world.reborn().open()
    assert await world.memory.forget_facts(ada, [fact.id], key="7") == replace(first, texts=())
    assert (await world.memory.forget_facts(ada, [fact.id], key="8")).facts == 0
    gone = await world.memory.forget_session(ada, session.id, key="9")
    assert gone.messages_redacted == 2
    await world.reborn().open()
    assert await world.memory.forget_session(ada, session.id, key="9") == gone
    assert b"zwirbelwitz" not in world.bytes_on_disk().lower()
    world.clock.advance(hours=25)
    await world.memory.learn()
    assert [row for row in await world.rows("kept_values") if row["key"].startswith("memory.receipt.")] == []


async def test_d11_the_receipt_is_there_from_the_moment_of_the_erasure(world: World) -> None:
    """The process dies between the rows and the vectors: the figures are kept, and the vectors go."""
    ada = await world.person("ada")
    await world.talk(ada, "My dog is called Zwirbelwitz", "OK")
    fact = await world.fact(ada, "My dog is called Zwirbelwitz")

    class Dying(ExactIndex):
        dying = True

        async def ids(self, owner: str) -> set[str]:
            if self.dying:
                raise asyncio.CancelledError
            return await super().ids(owner)

    world.vectors = dying = Dying()
    await world.reborn().open()
    with pytest.raises(asyncio.CancelledError):
        await world.memory.forget_facts(ada, [fact.id], key="7")
    dying.dying = False
    opening = asyncio.create_task(world.reborn().open())
    await asyncio.sleep(0)  # the press is taken up while the index is being opened
    receipt = await world.memory.forget_facts(ada, [fact.id], key="7")
    await opening
    assert (receipt.facts, receipt.messages_redacted, receipt.unfinished) == (1, 1, ())


async def test_d21_only_the_summaries_of_sessions_that_stay_are_made_anew(world: World) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "My dog is called Bruno. It rains.", "OK")
    fact = await world.fact(ada, "My dog is called Bruno")
    await world.memory.learn()
    receipt = await world.memory.forget_facts(ada, [fact.id])
    assert (receipt.summaries, receipt.summaries_anew) == (1, 1)
    session = await world.talk(ada, "The fence needs paint.", "OK")
    await world.memory.learn()
    receipt = await world.memory.forget_session(ada, session.id)
    assert (receipt.summaries, receipt.summaries_anew) == (1, 0)


async def test_instructions_in_force_stay_and_the_receipt_says_so(world: World) -> None:
    """A person's explicit word is theirs to change; what held before is rewritten."""
    ada = await world.person("ada")
    kept = await world.fact(ada, "My dog is called Bruno")
    for text in ("Ask about Bruno, my dog is called Bruno.", "Be brief. My dog is called Bruno."):
        await world.insert("instructions", subject=ada.owner, text=text, user_id=ada.user_id, created_at=1)
    receipt = await world.memory.forget_facts(ada, [kept.id])
    assert receipt.still_said == ("instructions",)
    async with world.database.read() as connection:
        texts = list((await connection.execute(sa.select(metadata.tables["instructions"].c.text))).scalars())
    assert "Bruno" not in texts[0]
    assert texts[1] == "Be brief. My dog is called Bruno."


async def test_erasing_a_person_leaves_the_persona_they_set(world: World) -> None:
    ada = await world.person("ada")
    for subject in (ada.owner, "persona"):
        await world.insert("instructions", subject=subject, text="Be brief.", user_id=ada.user_id, created_at=1)
    await world.memory.erase_user(ada.user_id)
    async with world.database.read() as connection:
        left = list((await connection.execute(sa.select(metadata.tables["instructions"].c.subject))).scalars())
    assert left == ["persona"]
