"""Live quality: what answers cited and people confirmed is asked again, and only figures are kept."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memory.kinds.observations import changing, store
from memory.kinds.observations.observation import Content, Trigger, Type
from memory.recall import fitting, quality
from memory.recall.fusion import WEIGHTS
from memory.scope import Audience
from memory.storage import kept, log
from memory.storage.labelled import labelled
from memory.types import MemorySettings, Session, Utterance
from tests.unit.memory.world import World

DOGS = ("My dog is called Bruno.", "The fence needs blue paint.", "We fly to Lisbon in May.")


async def asked(
    world: World, audience: Audience, question: str, *, cites: list[int], session: Session | None = None
) -> tuple[int, int]:
    """A question and its answer, which cites messages; returns the ids of both."""
    session = session or await world.session(audience)
    inbox_id = world.now
    question_id = await world.say(session, question, audience, inbox_id=inbox_id)
    world.clock.advance(seconds=1)
    trace: dict[str, Any] = {"cited": {"messages": cites, "observations": []}}
    utterance = Utterance(session.id, "assistant", "Merk", "So I heard.", inbox_id=inbox_id, memory_trace=trace)
    async with world.database.write() as connection:
        return question_id, (await log.append(connection, utterance, world.now)).id


async def noticed(
    world: World, audience: Audience, text: str, message_id: int, superseded_by: int | None = None
) -> int:
    async with world.database.write() as connection:
        made = await store.insert(
            connection,
            Content(Type.FACT, "", text),
            audience.owner,
            user_id=audience.user_id,
            session_id=None,
            trigger=Trigger.CHAT,
            now=world.now,
        )
        await store.add_evidence(connection, made, message_id, text)
        if superseded_by is not None:
            await store.supersede(connection, [made], superseded_by, world.now, world.now)
    return made


async def judge(world: World, audience: Audience, observation_id: int, kind: changing.Feedback, answer: int) -> None:
    async with world.database.write() as connection:
        await changing.feed_back(connection, observation_id, audience, kind, answer, world.now)


async def told(world: World, audience: Audience) -> dict[str, int]:
    """Earlier chats; each text with its message."""
    for text in DOGS:
        await world.talk(audience, text, "OK")
    return {row["text"]: row["id"] for row in await world.rows("messages")}


async def test_a_cited_message_is_a_question_with_its_evidence(world: World) -> None:
    ada = await world.person("ada")
    ids = await told(world, ada)
    await asked(world, ada, "What is my dog called?", cites=[ids[DOGS[0]]])
    await asked(world, ada, "Which paint for the fence?", cites=[ids[DOGS[1]]])
    await world.memory.learn()
    [event] = await world.memory.quality.run()
    assert (event.user_id, event.questions) == (ada.user_id, 2)
    assert (event.recall_at_1, event.recall_at_10) == (1.0, 1.0)
    assert (event.updates, event.update_precedence, event.judged, event.rejected_share) == (0, None, 0, None)
    [row] = [row for row in await world.rows("telemetry_events") if row["name"] == "memory.recall_quality"]
    assert row["data"]["recallAt1"] == 1.0


async def test_a_question_is_asked_of_what_was_said_before_it_and_elsewhere(world: World) -> None:
    """The same words later, or in the session of the question, do not push its evidence down."""
    ada = await world.person("ada")
    ids = await told(world, ada)
    await asked(world, ada, "What is my dog called?", cites=[ids[DOGS[0]]])
    for _ in range(12):
        await world.talk(ada, "My dog, what is my dog called? My dog is called.", "OK")
    await world.memory.learn()
    [event] = await world.memory.quality.run()
    assert event.recall_at_1 == 1.0


async def test_what_is_far_down_is_counted_as_such(world: World) -> None:
    ada = await world.person("ada")
    ids = await told(world, ada)
    await asked(world, ada, "What is my dog called?", cites=[ids[DOGS[0]], ids[DOGS[2]]])
    await world.memory.learn()
    [event] = await world.memory.quality.run()
    assert event.recall_at_1 == 0.5


async def test_confirmed_observations_lead_to_their_messages_and_rejected_ones_are_a_share(world: World) -> None:
    ada = await world.person("ada")
    ids = await told(world, ada)
    _, answer = await asked(world, ada, "What is my dog called?", cites=[])
    dog = await noticed(world, ada, "Ada's dog is called Bruno.", ids[DOGS[0]])
    fence = await noticed(world, ada, "The fence needs blue paint.", ids[DOGS[1]])
    await judge(world, ada, dog, "confirmed", answer)
    await judge(world, ada, fence, "cited", answer)
    await judge(world, ada, fence, "rejected", answer)
    await world.memory.learn()
    [event] = await world.memory.quality.run()
    assert (event.questions, event.recall_at_1) == (1, 1.0)
    assert (event.judged, event.rejected_share) == (2, 0.5)


async def test_what_replaced_something_is_to_be_found_before_it(world: World) -> None:
    ada = await world.person("ada")
    first = await world.talk(ada, "I live in Berlin.", "OK")
    second = await world.talk(ada, "I moved, I live in Hamburg.", "OK")
    old_message, new_message = (await world.messages(first))[0].id, (await world.messages(second))[0].id
    _, answer = await asked(world, ada, "Where do I live?", cites=[])
    new = await noticed(world, ada, "Ada lives in Hamburg.", new_message)
    await noticed(world, ada, "Ada lives in Berlin.", old_message, superseded_by=new)
    await judge(world, ada, new, "cited", answer)
    await world.memory.learn()
    [event] = await world.memory.quality.run()
    assert (event.updates, event.update_precedence) == (1, 1.0)


async def test_p01_only_what_somebody_asked_in_private_is_measured(world: World) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    ids = await told(world, ada)
    [in_group, _] = await world.in_group(ada, bob)
    await asked(world, in_group, "What is my dog called?", cites=[ids[DOGS[0]]])
    await asked(world, bob, "What is my dog called?", cites=[ids[DOGS[0]]])
    await world.memory.learn()
    async with world.database.search() as connection:
        found = await labelled(connection, 0, 10)
    assert set(found) == {bob.user_id}  # whoever cites what is not theirs finds nothing of it
    assert await world.memory.quality.run() == []


async def test_nothing_is_measured_without_the_embedder(world: World) -> None:
    ada = await world.person("ada")
    ids = await told(world, ada)
    await asked(world, ada, "What is my dog called?", cites=[ids[DOGS[0]]])
    world.embedder.down = True
    assert await world.memory.quality.run() == []


@pytest.mark.parametrize("learns", [True, False])
async def test_weights_are_learned_where_that_is_asked_for_and_outlive_a_start(
    world: World, monkeypatch: pytest.MonkeyPatch, learns: bool
) -> None:
    better = dict(WEIGHTS) | {"meaning": 9.0}
    monkeypatch.setattr(quality, "refit", learning(fitting.Refit(better, 0.5, 0.6)))
    assert (await after_a_night(world, learns=learns))["meaning"] == (9.0 if learns else WEIGHTS["meaning"])


async def test_weights_that_do_worse_are_not_taken_and_former_ones_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.database.write() as connection:
        await kept.put(connection, "memory.fusion_weights", {"weights": {"meaning": 9.0}}, 0)
    worse = dict(WEIGHTS) | {"meaning": 0.1}
    monkeypatch.setattr(quality, "refit", learning(fitting.Refit(worse, 0.5, 0.5)))
    assert await after_a_night(world, learns=True) == WEIGHTS


def learning(found: fitting.Refit) -> Callable[[Sequence[fitting.Sample]], fitting.Refit]:
    """What is learned, whatever the questions."""

    def learn(samples: Sequence[fitting.Sample]) -> fitting.Refit:
        assert samples
        return found

    return learn


async def after_a_night(world: World, *, learns: bool) -> dict[str, float]:
    """The weights with which the next process ranks."""
    settings = MemorySettings(learn_after=0.01, refit=learns)
    ada = await world.person("ada")
    ids = await told(world, ada)
    await asked(world, ada, "What is my dog called?", cites=[ids[DOGS[0]]])
    before = world.reborn(settings=settings)
    await before.open()
    await before.learn()
    await before.quality.run()
    after = world.reborn(settings=settings)
    await after.open()
    return dict(after.quality.weights)
