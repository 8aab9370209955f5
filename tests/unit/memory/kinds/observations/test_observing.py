"""What is noticed in a conversation, what becomes of it, and whose it is."""

from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from memory.kinds.observations.observation import Observation, Trigger, Type
from memory.kinds.observations.prompt import PROMPT_VERSION
from memory.memory import Memory
from memory.ports import Failure, ModelRequest, Purpose
from memory.scope import PUBLIC, VIEW_SENSITIVE, Audience, Scope, own_key, sensitive_key, team_key
from memory.storage import log, members
from memory.storage.tables import messages
from memory.types import ObservationRefused, Origin
from tests.fakes.model import Fails, ScriptedModel
from tests.fakes.noticing import Noticing, noticed, shown_to_extractor
from tests.unit.memory.world import World

DOG = noticed("my dog is called Bruno", title="The dog", narrative="Ada's dog is called Bruno.", concepts=["dog"])
BERLIN = noticed(
    "I live in Berlin", narrative="Ada lives in Berlin.", subject="speaker", attribute="home", value="Berlin"
)
HAMBURG = noticed(
    "I moved to Hamburg", narrative="Ada moved to Hamburg.", subject="speaker", attribute="home", value="Hamburg"
)
RULES = {"Bruno": DOG, "Berlin": BERLIN, "Hamburg": HAMBURG}


@pytest.fixture
async def watching(world: World) -> Memory:
    memory = world.reborn(model=Noticing(dict(RULES)).model())
    await memory.open()
    return memory


async def learn(world: World) -> None:
    world.clock.advance(minutes=1)
    await world.memory.learn()


async def held(world: World, audience: Audience, *, sensitive: bool = False) -> list[Observation]:
    page = await world.memory.observations.list(audience, limit=100, sensitive=sensitive)
    return sorted(page.observations, key=lambda each: each.id)


async def test_a_turn_is_noticed_with_its_words(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    [found] = await held(world, ada)
    assert (found.title, found.narrative) == ("The dog", "Ada's dog is called Bruno.")
    assert (found.owner, found.scope, found.user_id, found.session_id) == ("u1", Scope.PRIVATE, 1, session.id)
    assert (found.type, found.trigger_source, found.proof_count) == (Type.FACT, Trigger.CHAT, 1)
    assert found.prompt_version == PROMPT_VERSION
    assert found.cost_tokens > 0
    [evidence] = found.evidence
    assert (evidence.quote, evidence.user_id) == ("my dog is called Bruno", 1)
    recall = await watching.recall(ada, 0, "What is my dog called?")
    [used] = recall.observations
    assert (used.id, used.text, used.source) == (found.id, found.narrative, f"chat:{session.id}")
    assert recall.trace["observations"][0]["id"] == found.id
    assert await watching.extraction_of(session.id, evidence.message_id or 0) == "done"


async def test_p11_what_is_still_in_the_window_is_not_recalled(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    assert (await watching.recall(ada, session.id, "What is my dog called?")).observations == ()
    for number in range(13):
        await world.say(session, f"Line {number}?", ada)
        await world.say(session, "OK.")
    assert (await watching.recall(ada, session.id, "What is my dog called?")).observations


@pytest.mark.usefixtures("watching")
async def test_p10_the_extractor_sees_only_what_people_typed(world: World) -> None:
    ada = await world.person("ada")
    session = await world.session(ada)
    await world.say(session, "I live in Berlin and that is typed", ada)
    for origin in (Origin.FORWARDED, Origin.QUOTED, Origin.FILE, Origin.TOOL):
        await world.say(session, f"{origin} Bruno: my dog is called Bruno", ada, origin=origin)
    await world.say(session, "working output: my dog is called Bruno", ada, is_ephemeral=True)
    await world.say(session, "The assistant says my dog is called Bruno")
    await learn(world)
    [shown] = shown_to_extractor(world.model)
    assert "Bruno" not in shown
    assert [each.content.value for each in await held(world, ada)] == ["Berlin"]


@pytest.mark.usefixtures("watching")
async def test_the_names_of_attached_files_are_not_typed(world: World) -> None:
    ada = await world.person("ada")
    session = await world.session(ada)
    text = "[my dog is called Bruno.pdf]\nPlease read this report for me"
    await world.say(session, text, ada, blocks=[{"ref": "1", "at": text.index("Please"), "length": 31, "hash": ""}])
    await world.say(session, "OK.")
    await learn(world)
    assert await held(world, ada) == []
    assert all("Bruno" not in shown for shown in shown_to_extractor(world.model))


@pytest.mark.usefixtures("watching")
async def test_w6_reading_twice_changes_nothing(world: World) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    before = await held(world, ada)
    async with world.database.write() as connection:
        await connection.execute(sa.text("UPDATE learning SET watermark = 0 WHERE kind = 'observations'"))
    await learn(world)
    assert await held(world, ada) == before


async def test_w3_paraphrases_are_one_row_with_their_sources(world: World) -> None:
    """In one batch and over sessions; the doubtful ones are asked about."""
    says = ["my dog is called Bruno", "the dog is called Bruno by me", "Bruno is what my dog is called"]
    rules = {words: noticed(words, narrative=f"{words}.") for words in says}
    memory = world.reborn(model=Noticing(dict(rules), same=lambda _a, _b: True).model())
    await memory.open()
    ada = await world.person("ada")
    await world.talk(ada, f"So {says[0]}.", "OK", f"Well {says[1]}.", "OK")
    await world.talk(ada, f"Hey {says[2]}.", "OK")
    await world.talk(ada, f"Again {says[0]}.", "OK")
    await learn(world)
    [found] = await held(world, ada)
    assert found.proof_count == 4
    assert len({each.message_id for each in found.evidence}) == 4


async def test_what_is_only_similar_stays_two(world: World) -> None:
    rules = {
        "Lisbon": noticed("we fly to Lisbon on 3 May", "event"),
        "Porto": noticed("we fly to Porto on 5 May", "event"),
        "tea": noticed("I like green tea a lot", "preference"),
        "hate": noticed("I do not like green tea a lot", "preference"),
    }
    memory = world.reborn(model=Noticing(dict(rules), same=lambda _a, _b: True).model())
    await memory.open()
    ada = await world.person("ada")
    await world.talk(ada, "So we fly to Lisbon on 3 May", "OK", "And we fly to Porto on 5 May", "OK")
    await world.talk(ada, "I like green tea a lot", "OK", "hate: I do not like green tea a lot", "OK")
    await learn(world)
    assert len(await held(world, ada)) == 4


async def test_c1_a_new_value_takes_the_old_ones_place(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "I live in Berlin you know", "OK")
    await world.talk(ada, "By the way, my dog is called Bruno.", "OK")
    await learn(world)
    await world.talk(ada, "I moved to Hamburg you know", "OK")
    await learn(world)
    values = {each.content.value: each for each in await held(world, ada)}
    assert set(values) == {"", "Hamburg"}
    history = await watching.observations.history_of_slot(ada, values["Hamburg"].id)
    assert [each.content.value for each in history] == ["Berlin", "Hamburg"]
    assert history[0].superseded_by == history[1].id
    assert history[0].valid_to == history[1].valid_from
    again = await watching.recall(ada, 0, "Do I live in Berlin?")
    assert all("Berlin" not in each.text for each in again.observations)
    undone = await watching.observations.undo(ada, history[1].id)
    assert undone.content.value == "Hamburg"
    assert {each.content.value for each in await held(world, ada)} == {"", "Berlin"}


async def test_c1_what_was_said_earlier_and_read_later_is_history(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    older = await world.session(ada)
    await world.say(older, "I live in Berlin you know", ada)
    await world.talk(ada, "I moved to Hamburg you know", "OK")
    await learn(world)
    await world.say(older, "OK, noted late.")
    await learn(world)
    [now] = await held(world, ada)
    assert now.content.value == "Hamburg"
    assert [each.content.value for each in await watching.observations.history_of_slot(ada, now.id)] == [
        "Berlin",
        "Hamburg",
    ]


async def test_an_unsure_value_asks_once_and_ends_nothing(world: World) -> None:
    unsure = {**HAMBURG, "confidence": 0.4}
    memory = world.reborn(model=Noticing({"Berlin": BERLIN, "Hamburg": unsure}).model())
    await memory.open()
    ada = await world.person("ada")
    await world.talk(ada, "I live in Berlin you know", "OK")
    await learn(world)
    await world.talk(ada, "Perhaps I moved to Hamburg in a dream", "OK")
    await learn(world)
    [question] = await memory.observations.questions(ada)
    assert (question.old.content.value, question.new.content.value) == ("Berlin", "Hamburg")
    assert len(await held(world, ada)) == 2
    await memory.observations.asked([question.new.id])
    assert await memory.observations.questions(ada) == ()
    [left] = await memory.observations.settle(ada, question.new.id, "old")
    assert left.content.value == "Berlin"
    assert [each.content.value for each in await held(world, ada)] == ["Berlin"]


@pytest.mark.usefixtures("watching")
async def test_p06_what_two_people_say_of_themselves_stays_two(world: World) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    ada_there, bob_there = await world.in_group(ada, bob)
    session = await world.session(ada_there)
    await world.say(session, "I live in Berlin you know", ada_there)
    await world.say(session, "OK")
    await world.say(session, "I moved to Hamburg you know", bob_there)
    await world.say(session, "OK")
    await learn(world)
    found = await held(world, ada_there)
    assert {(each.user_id, each.content.value) for each in found} == {(1, "Berlin"), (2, "Hamburg")}
    assert {each.owner for each in found} == {ada_there.owner}


async def test_c5_what_is_over_is_not_recalled(world: World) -> None:
    item = noticed("I am on holiday until Friday", narrative="Ada is on holiday until Friday.")
    memory = world.reborn(model=Noticing({"holiday": item}).model())
    await memory.open()
    ada = await world.person("ada")
    await world.talk(ada, "I am on holiday until Friday", "Enjoy!")
    await learn(world)
    assert (await memory.recall(ada, 0, "Am I on holiday?")).observations
    world.clock.advance(days=7)
    assert (await memory.recall(ada, 0, "Am I on holiday?")).observations == ()
    assert (await memory.consolidate()).expired == 1
    [over] = (await memory.observations.list(ada, state="expired")).observations
    assert over.content.narrative == item["narrative"]
    assert await world.rows("observations") != []
    assert await world.vectors.ids("o.u1") == set()


async def test_without_a_model_that_follows_a_schema_nothing_is_noticed_and_that_is_said(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    assert world.model.requests == []
    [line] = [each for each in await world.memory.health() if each.name == "observations"]
    assert line.detail.startswith("off")
    assert await world.memory.extraction_of(session.id, 1) == "off"
    capable = world.reborn(model=Noticing(dict(RULES)).model())
    await learn(world)  # a capable model catches up by itself
    assert len(await held(world, ada)) == 1
    assert capable.observations is world.memory.observations


async def test_p19_a_failure_keeps_the_watermark_and_backs_off(world: World) -> None:
    failing = ScriptedModel(always=Fails(Failure.OVERLOADED))
    memory = world.reborn(model=failing)
    ada = await world.person("ada")
    session = await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    assert await memory.extraction_of(session.id, 1) == "failed"
    [line] = [each for each in await memory.health() if each.name == "observations"]
    assert not line.ok
    world.reborn(model=Noticing(dict(RULES)).model())
    world.clock.advance(minutes=2)
    await learn(world)
    assert len(await held(world, ada)) == 1


async def test_w8_a_message_that_cannot_be_read_is_passed_over(world: World) -> None:
    noticing = Noticing(dict(RULES))

    def answer(request: ModelRequest) -> Any:
        text = str(request.messages)
        return Fails(Failure.BAD_REQUEST) if "poison" in text else noticing(request)

    world.reborn(model=ScriptedModel(always=answer))
    ada = await world.person("ada")
    await world.talk(ada, "This poison is strong stuff", "OK", "By the way, my dog is called Bruno.", "OK")
    for _ in range(4):
        await learn(world)
        world.clock.advance(hours=2)
    assert len(await held(world, ada)) == 1


async def test_a_budget_that_is_used_up_stops_the_sweep(world: World) -> None:
    world.reborn(model=ScriptedModel(always=Fails(Failure.BUDGET)))
    ada = await world.person("ada")
    for _ in range(3):
        await world.talk(ada, "By the way, my dog is called Bruno.", "OK")
    await learn(world)
    asked = [each for each in world.model.requests if each.account.purpose == "extraction"]
    assert len(asked) == 1


async def test_what_was_forgotten_while_it_was_read_is_not_kept(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "By the way, my dog is called Bruno.", "OK")
    noticing = Noticing(dict(RULES))

    async def forget() -> None:
        async with world.database.write() as connection:
            await connection.execute(messages.update().values(text="[…]"))

    class Late(ScriptedModel):
        def stream(self, request: ModelRequest):
            return self._late(request)

        async def _late(self, request: ModelRequest):
            if request.account.purpose is Purpose.EXTRACTION:
                await forget()
            async for event in ScriptedModel.stream(self, request):
                yield event

    world.reborn(model=Late(always=noticing))
    await learn(world)
    assert await held(world, ada) == []
    assert await world.memory.extraction_of(session.id, 1) == "refused"


async def test_c7_an_edited_message_takes_its_observation_along(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "I live in Berlin you know", "OK")
    await learn(world)
    async with world.database.write() as connection:
        await log.amend(connection, (await world.messages(session))[0].id, "I moved to Hamburg you know")
    await watching.observations.reconsider((await world.messages(session))[0].id)
    assert await held(world, ada) == []
    await learn(world)
    assert [each.content.value for each in await held(world, ada)] == ["Hamburg"]


# --- what people do about it ------------------------------------------------------------------------


async def test_rejected_twice_hides_until_restored(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    [found] = await held(world, ada)
    observations = watching.observations
    assert not await observations.reject(ada, found.id, 1)
    assert not await observations.reject(ada, found.id, 1)  # the same answer, tapped twice
    assert await observations.reject(ada, found.id, 2)
    assert await held(world, ada) == []
    assert (await watching.recall(ada, 0, "What is my dog called?")).observations == ()
    await world.talk(ada, "Again: my dog is called Bruno.", "Nice!")
    await learn(world)
    assert await held(world, ada) == []  # what a person hid does not come back by itself
    await observations.restore(ada, found.id)
    assert [each.id for each in await held(world, ada)] == [found.id]
    await watching.learn()
    assert (await watching.recall(ada, 0, "What is my dog called?")).observations


async def test_use_and_confirmation_are_counted(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    [found] = await held(world, ada)
    answer = (await world.messages(session))[1].id
    await watching.observations.used(ada, [found.id], "retrieved", answer)
    await watching.observations.used(ada, [found.id], "cited", answer)
    await watching.observations.confirm(ada, found.id, answer)
    [found] = await held(world, ada)
    assert found.relevance_count == 2
    assert [row["kind"] for row in await world.rows("observation_feedback")] == ["retrieved", "cited", "confirmed"]


async def test_keep_takes_any_message_of_ones_own_chat(world: World, watching: Memory) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    session = await world.session(ada)
    message = await world.say(
        session, "The plumber is Kurt Weber.\nHe comes on Tuesdays.", ada, origin=Origin.FORWARDED
    )
    kept, is_new = await watching.observations.keep(ada, message)
    assert (kept.title, is_new, kept.trigger_source) == ("The plumber is Kurt Weber.", True, Trigger.MANUAL)
    assert (await watching.observations.keep(ada, message))[1] is False
    with pytest.raises(ObservationRefused, match="gone"):
        await watching.observations.keep(bob, message)
    with pytest.raises(ObservationRefused, match="empty"):
        await watching.observations.keep(ada, await world.say(session, "OK!"))


async def test_events_are_noted_once(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    note = partial(watching.observations.note_event, PUBLIC, hook="shop", event_id="42", title="Order 42 completed")
    first = await note()
    assert first is not None
    assert await note() is None
    [found] = await held(world, ada)
    assert (found.id, found.type, found.scope, found.user_id) == (first, Type.EVENT, Scope.PUBLIC, None)
    with pytest.raises(ValueError, match="scope"):
        await watching.observations.note_event("everybody", hook="shop", event_id="43", title="x y z")


async def test_an_edit_takes_the_old_ones_place(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    [found] = await held(world, ada)
    new = await watching.observations.edit(ada, found.id, "The dog is called Bruno the Second.")
    assert [each.id for each in await held(world, ada)] == [new.id]
    old = await watching.observations.by_id(ada, found.id)
    assert old is not None
    assert old.superseded_by == new.id


async def test_search_finds_by_words_and_else_by_meaning(world: World, watching: Memory) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!", "I live in Berlin you know", "OK")
    await learn(world)
    page = await watching.observations.search(ada, "Bruno")
    assert (page.total, page.observations[0].title) == (1, "The dog")
    assert (await watching.observations.search(bob, "Bruno")).total == 0
    assert (await watching.observations.search(ada, "hello")).total == 0
    assert (await watching.observations.list(ada, kinds=(Type.TASK,))).total == 0


async def test_a_batch_of_a_bad_prompt_is_purged(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    assert await watching.observations.purge("other") == 0
    assert await watching.observations.purge(PROMPT_VERSION) == 1
    assert await held(world, ada) == []
    assert await world.rows("observation_evidence") == []
    assert await world.vectors.ids("o.u1") == set()


# --- scopes -------------------------------------------------------------------------------------------


async def test_narrowing_is_done_and_widening_is_asked(world: World, watching: Memory) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    [found] = await held(world, ada)
    observations = watching.observations
    assert (await observations.change_scope(ada, found.id, PUBLIC)).outcome == "ask"
    assert await held(world, bob) == []
    assert (await observations.change_scope(ada, found.id, PUBLIC, is_confirmed=True)).outcome == "done"
    await watching.learn()
    assert [each.id for each in (await watching.recall(bob, 0, "What is the dog called?")).observations] == [found.id]
    with pytest.raises(ObservationRefused, match="others"):
        await observations.change_scope(bob, found.id, own_key(bob.user_id))
    assert (await observations.change_scope(ada, found.id, own_key(ada.user_id))).outcome == "done"
    await watching.learn()
    assert (await watching.recall(bob, 0, "What is the dog called?")).observations == ()
    assert (await watching.recall(ada, 0, "What is the dog called?")).observations


async def test_what_is_sensitive_is_shown_only_when_asked_for_and_granted(world: World, watching: Memory) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "By the way, my dog is called Bruno.", "Nice!")
    await learn(world)
    [found] = await held(world, ada)
    key = sensitive_key(ada.user_id)
    with pytest.raises(ObservationRefused, match="grant"):
        await watching.observations.change_scope(ada, found.id, key)
    async with world.database.write() as connection:
        await members.grant(connection, ada.user_id, VIEW_SENSITIVE)
    assert (await watching.observations.change_scope(ada, found.id, key)).outcome == "done"
    await watching.learn()
    assert await held(world, ada) == []
    assert (await watching.recall(ada, 0, "What is my dog called?")).observations == ()
    assert [each.id for each in await held(world, ada, sensitive=True)] == [found.id]
    [there] = await world.in_group(ada)
    assert await held(world, there, sensitive=True) == []


async def test_teams_see_what_is_theirs_and_groups_only_what_all_may_see(world: World, watching: Memory) -> None:
    ada, bob, eve = [await world.person(name) for name in ("ada", "bob", "eve")]
    ada_there, bob_there, _ = await world.in_group(ada, bob, eve)
    async with world.database.write() as connection:
        team = await members.create_team(connection, "Kitchen", ada.user_id, world.now)
        await members.add_to_team(connection, team.id, bob.user_id)
        await members.note(connection, ada_there.chat_id, "telegram:ada", world.now)
        await members.note(connection, ada_there.chat_id, "telegram:bob", world.now)
    await watching.observations.note_event(team_key(team.id), hook="h", event_id="1", title="The oven was repaired")
    await watching.observations.note_event(PUBLIC, hook="h", event_id="2", title="The office moved to Ulm")

    async def titles(audience: Audience) -> set[str]:
        return {each.title for each in await held(world, audience)}

    both = {"The oven was repaired", "The office moved to Ulm"}
    assert await titles(ada) == await titles(bob) == await titles(bob_there) == both
    assert await titles(eve) == {"The office moved to Ulm"}
    async with world.database.write() as connection:
        await members.note(connection, ada_there.chat_id, "telegram:eve", world.now)
    assert await titles(bob_there) == {"The office moved to Ulm"}  # eve reads along now
    async with world.database.write() as connection:
        await members.left(connection, ada_there.chat_id, "telegram:eve")
        await members.note(connection, ada_there.chat_id, "telegram:a stranger", world.now)
    assert await titles(bob_there) == set()  # not even what is public in the tenant
    async with world.database.write() as connection:
        await members.remove_from_team(connection, team.id, bob.user_id)
    assert await titles(bob) == {"The office moved to Ulm"}


async def test_a_member_sees_the_groups_observations_in_private_until_they_leave(
    world: World, watching: Memory
) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    ada_there, _ = await world.in_group(ada, bob)
    async with world.database.write() as connection:
        for name in ("ada", "bob"):
            await members.note(connection, ada_there.chat_id, f"telegram:{name}", world.now)
    session = await world.session(ada_there)
    await world.say(session, "By the way, my dog is called Bruno.", ada_there)
    await world.say(session, "Nice!")
    await learn(world)
    assert (await watching.recall(bob, 0, "What is the dog called?")).observations
    async with world.database.write() as connection:
        await members.left(connection, ada_there.chat_id, "telegram:bob")
    assert (await watching.recall(bob, 0, "What is the dog called?")).observations == ()
    assert (await watching.recall(ada, 0, "What is the dog called?")).observations
