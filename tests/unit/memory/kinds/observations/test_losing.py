"""Forgetting reaches observations: those that rest on the words, and those that are forgotten themselves."""

import pytest
import sqlalchemy as sa

from memory.kinds.observations.observation import Observation
from memory.memory import Memory
from memory.scope import MANAGE_OBSERVATIONS, PUBLIC, Audience
from memory.storage import members
from memory.storage.index.lexical import OBSERVATIONS
from tests.fakes.noticing import Noticing, noticed
from tests.unit.memory.world import World

RULES = {
    "Bruno": noticed("my dog is called Bruno", title="The dog", narrative="The speaker's dog has the name Bruno."),
    "Lisbon": noticed("we fly to Lisbon in May", "event", title="Trip", narrative="A flight to Lisbon in May."),
}


@pytest.fixture
async def memory(world: World) -> Memory:
    made = world.reborn(model=Noticing(dict(RULES)).model())
    await made.open()
    return made


async def _talked(world: World, audience: Audience, *texts: str) -> list[Observation]:
    for text in texts:
        await world.talk(audience, text, "OK, noted.")
    world.clock.advance(minutes=1)
    await world.memory.learn()
    return await _held(world, audience)


async def _held(world: World, audience: Audience) -> list[Observation]:
    return [*(await world.memory.observations.list(audience, limit=50)).observations]


async def _words(world: World) -> str:
    async with world.database.read() as connection:
        rows = (await connection.execute(sa.text(f"SELECT body FROM {OBSERVATIONS}"))).scalars().all()
    return " ".join(map(str, rows))


async def test_p26_forgetting_a_fact_takes_what_was_noticed_of_it_along(world: World, memory: Memory) -> None:
    ada = await world.person("ada")
    await _talked(world, ada, "By the way, my dog is called Bruno.", "So we fly to Lisbon in May.")
    fact = await world.fact(ada, "My dog is called Bruno")
    receipt = await memory.forget_facts(ada, [fact.id])
    assert (receipt.facts, receipt.observations, receipt.unfinished) == (1, 1, ())
    assert [each.title for each in await _held(world, ada)] == ["Trip"]
    assert "bruno" not in await _words(world)
    assert len(await world.vectors.ids("o.u1")) == 1
    assert b"Bruno" not in world.bytes_on_disk()
    world.clock.advance(minutes=5)
    await memory.learn()  # G5: it is not learned again from what is left
    assert [each.title for each in await _held(world, ada)] == ["Trip"]


async def test_forgetting_a_session_leaves_what_others_still_say(world: World, memory: Memory) -> None:
    ada = await world.person("ada")
    first = await world.talk(ada, "By the way, my dog is called Bruno.", "OK")
    await _talked(world, ada, "Again: my dog is called Bruno.", "So we fly to Lisbon in May.")
    [trip, dog] = sorted(await _held(world, ada), key=lambda each: -each.id)
    assert dog.proof_count == 2
    receipt = await memory.forget_session(ada, first.id)
    assert receipt.observations == 0
    [again] = [each for each in await _held(world, ada) if each.id == dog.id]
    assert (again.narrative, again.proof_count) == ("my dog is called Bruno", 1)  # made anew of what remains
    assert trip.id in [each.id for each in await _held(world, ada)]
    sessions = {row["id"] for row in await world.rows("sessions")}
    for session_id in sessions:
        await memory.forget_session(ada, session_id)
    assert await _held(world, ada) == []
    assert await world.rows("observations") == []
    assert b"Bruno" not in world.bytes_on_disk()


async def test_g1_forgetting_an_observation_erases_its_words_and_nobody_elses(world: World, memory: Memory) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    await _talked(world, bob, "By the way, my dog is called Bruno.")
    [dog] = await _talked(world, ada, "By the way, my dog is called Bruno.")
    before = await world.snapshot("u2")
    others = [row for row in await world.rows("observations") if row["owner"] == "u2"]
    receipt = await memory.forget_observations(ada, [dog.id, 999], key="once")
    assert (receipt.observations, receipt.messages_redacted, receipt.unfinished) == (1, 1, ())
    assert receipt.texts == (dog.narrative,)
    assert receipt.vectors > 0
    assert await _held(world, ada) == []
    assert await world.snapshot("u2") == before
    assert [row for row in await world.rows("observations") if row["owner"] == "u2"] == others
    again = await memory.forget_observations(ada, [dog.id], key="once")
    assert (again.observations, again.texts) == (1, ())
    assert (await memory.recall(ada, 0, "What is my dog called?")).observations == ()


async def test_only_who_said_it_or_manages_may_forget_it(world: World, memory: Memory) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    ada_there, bob_there = await world.in_group(ada, bob)
    session = await world.session(ada_there)
    await world.say(session, "By the way, my dog is called Bruno.", ada_there)
    await world.say(session, "Nice!")
    world.clock.advance(minutes=1)
    await memory.learn()
    [dog] = await _held(world, bob_there)
    assert (await memory.forget_observations(bob_there, [dog.id])).observations == 0
    assert await _held(world, bob_there) == [dog]
    async with world.database.write() as connection:
        await members.grant(connection, bob.user_id, MANAGE_OBSERVATIONS)
    assert (await memory.forget_observations(bob_there, [dog.id])).observations == 1
    assert b"Bruno" not in world.bytes_on_disk()


async def test_a_manager_who_forgets_what_was_shared_leaves_private_words_alone(world: World, memory: Memory) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    [dog] = await _talked(world, ada, "By the way, my dog is called Bruno.")
    await memory.observations.change_scope(ada, dog.id, PUBLIC, is_confirmed=True)
    async with world.database.write() as connection:
        await members.grant(connection, bob.user_id, MANAGE_OBSERVATIONS)
    said = await world.rows("messages")
    assert (await memory.forget_observations(bob, [dog.id])).observations == 1
    assert await world.rows("messages") == said


async def test_what_was_shared_goes_with_its_source(world: World, memory: Memory) -> None:
    """Derived text goes with the words it rests on, whatever its scope is by now."""
    ada, bob = await world.person("ada"), await world.person("bob")
    [dog] = await _talked(world, ada, "By the way, my dog is called Bruno.")
    await memory.observations.change_scope(ada, dog.id, PUBLIC, is_confirmed=True)
    await memory.learn()
    assert await _held(world, bob)
    fact = await world.fact(ada, "My dog is called Bruno")
    assert (await memory.forget_facts(ada, [fact.id])).observations == 1
    assert await _held(world, bob) == []
    assert await world.vectors.ids("o.p") == set()


async def test_p29_erasing_a_person_takes_all_of_theirs_and_nothing_of_others(world: World, memory: Memory) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    ada_there, bob_there = await world.in_group(ada, bob)
    await _talked(world, ada, "By the way, my dog is called Bruno.")
    session = await world.session(ada_there)
    await world.say(session, "So we fly to Lisbon in May.", ada_there)
    await world.say(session, "OK")
    await world.say(session, "By the way, my dog is called Bruno.", bob_there)
    await world.say(session, "OK")
    world.clock.advance(minutes=1)
    await memory.learn()
    await memory.observations.note_event("u1", hook="h", event_id="1", title="Invoice Zanzibar was paid", user_id=1)
    exported = (await memory.export(1))["observations"]
    assert {each["title"] for each in exported} == {"The dog", "Trip", "Invoice Zanzibar was paid"}
    assert all(quote["quote"] for each in exported for quote in each["evidence"])
    receipt = await memory.erase_user(1)
    assert (receipt.observations, receipt.unfinished) == (3, ())
    [left] = await world.rows("observations")
    assert (left["owner"], left["user_id"]) == (bob_there.owner, 2)
    for gone in (b"Zanzibar", b"Lisbon"):
        assert gone not in world.bytes_on_disk()
    assert await memory.export(1) == {}


async def test_an_index_that_was_down_is_swept_when_it_is_back(world: World, memory: Memory) -> None:
    ada = await world.person("ada")
    [dog] = await _talked(world, ada, "By the way, my dog is called Bruno.")
    world.vectors.down = True
    receipt = await memory.forget_observations(ada, [dog.id])
    assert receipt.unfinished == ("index",)
    await memory.learn()  # opens it again
    await memory.learn()
    assert await world.vectors.ids("o.u1") == set()
    assert all(row["key"] != "memory.unswept" for row in await world.rows("kept_values"))


async def test_everything_can_be_indexed_anew(world: World, memory: Memory) -> None:
    ada = await world.person("ada")
    await _talked(world, ada, "By the way, my dog is called Bruno.", "So we fly to Lisbon in May.")
    before = (await _words(world), await world.vectors.ids("o.u1"))
    async with world.database.write() as connection:
        await connection.execute(sa.text(f"DELETE FROM {OBSERVATIONS}"))
    await world.vectors.delete("o.u1", sorted(before[1]))
    await memory.reindex()
    assert (await _words(world), await world.vectors.ids("o.u1")) == before


async def test_the_nightly_round_makes_near_duplicates_one_and_resumes(world: World) -> None:
    says = ["my brown dog is called Bruno", "the dog called Bruno barks", "Bruno the called dog eats grass"]
    noticing = Noticing({words: noticed(words, narrative=f"{words}.") for words in says})
    memory = world.reborn(model=noticing.model())
    await memory.open()
    ada = await world.person("ada")
    await _talked(world, ada, *(f"Well, {words}" for words in says))
    assert len(await _held(world, ada)) == 3  # the model said no, or was not asked
    noticing.same = lambda _one, _other: True
    assert (await memory.consolidate(calls=1)).calls == 1
    rounds = 0
    while len(await _held(world, ada)) > 1:
        rounds += 1
        assert (await memory.consolidate(calls=5)).calls <= 5
        assert rounds < 4
    [one] = await _held(world, ada)
    assert one.proof_count == 3
    assert (await memory.consolidate(calls=5)).merged == 0
