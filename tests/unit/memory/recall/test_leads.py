"""Observations as keys: what was noticed leads to the messages it rests on, within what the asker may see anyway."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.kinds.observations import store
from memory.kinds.observations.observation import Content, Trigger, Type
from memory.recall.views import key_views
from memory.scope import PUBLIC, Audience
from memory.types import Lead
from tests.unit.memory.recall.shelves import shelf
from tests.unit.memory.world import World

FLOOR = 0.1


def cosines(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(values, dtype=np.float32)


def test_an_observation_leads_to_its_messages_and_their_session() -> None:
    found = key_views(shelf([1, 1, 2]), [Lead((2,), 0.5, 0.0)], cosines(0.1, 0.2, 0.5), FLOOR)
    assert found["keys"].tolist() == [0, 1, 0]
    assert found["keyed"].tolist() == [1, 1, 0]


def test_a_better_observation_leads_further() -> None:
    leads = [Lead((3,), 0.5, 0.0), Lead((1,), 0.5, 0.0)]
    found = key_views(shelf([1, 1, 2]), leads, cosines(0.1, 0.2, 0.5), FLOOR)
    assert found["keys"][2] > found["keys"][0] > found["keys"][1] == 0
    assert found["keyed"][2] > found["keyed"][0]


def test_the_best_of_bad_observations_leads_nowhere() -> None:
    """The one thing that was ever noticed is not what every question is about."""
    assert key_views(shelf([1, 2]), [Lead((1,), 0.05, 0.1)], cosines(0.3, 0.4), FLOOR) == {}
    weak = key_views(shelf([1, 2]), [Lead((1,), 0.13, 0.0)], cosines(0.3, 0.4), FLOOR)
    assert 0 < weak["keys"][0] < 0.3


def test_without_an_embedder_words_lead() -> None:
    found = key_views(shelf([1, 2]), [Lead((1,), None, 0.6)], None, FLOOR)
    assert found["keys"].tolist() == [1, 0]
    assert key_views(shelf([1, 2]), [Lead((1,), None, 0.0)], None, FLOOR) == {}


def test_messages_that_are_not_there_are_led_to_by_nothing() -> None:
    assert key_views(shelf([1, 2]), [Lead((7, 9), 0.5, 1.0)], cosines(0.1, 0.5), FLOOR) == {}


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 10), st.none() | st.floats(-1, 1), st.floats(0, 1)), max_size=12),
)
def test_a_key_is_between_0_and_1(sessions: list[int], found: list[tuple[int, float | None, float]]) -> None:
    leads = [Lead((message,), cosine, words) for message, cosine, words in found]
    for view in key_views(shelf(sessions), leads, None, FLOOR).values():
        assert len(view) == len(sessions)
        assert view.min() >= 0
        assert view.max() <= 1


async def notice(world: World, audience: Audience, owner: str, text: str, message_id: int) -> int:
    async with world.database.write() as connection:
        made = await store.insert(
            connection,
            Content(Type.FACT, "", text),
            owner,
            user_id=audience.user_id,
            session_id=None,
            trigger=Trigger.CHAT,
            now=world.now,
        )
        await store.add_evidence(connection, made, message_id, text)
    return made


async def lines(world: World, audience: Audience, question: str) -> list[str]:
    recall = await world.memory.recall(audience, 0, question)
    return [line.text for each in recall.recollections for line in each.lines]


async def test_a_message_is_found_by_what_was_noticed_in_it(world: World) -> None:
    """Its own words have nothing to do with the question, and neither has its vector."""
    ada = await world.person("ada")
    for number in range(6):
        await world.talk(ada, f"The shed number {number} needs paint.", "OK")
    session = await world.talk(ada, "He growls at the postman whenever it rings.", "I see.")
    [message, _] = await world.messages(session)
    await notice(world, ada, ada.owner, "Bruno, the dog of Ada, is loud and unfriendly.", message.id)
    await world.memory.learn()
    recall = await world.memory.recall(ada, 0, "Is the dog Bruno loud and unfriendly?")
    best = recall.trace["candidates"][0]
    assert best["message"] == message.id
    assert best["views"]["keys"] > 0


async def test_what_is_replaced_or_hidden_leads_nowhere(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "He growls at the postman whenever it rings.", "I see.")
    [message, _] = await world.messages(session)
    made = await notice(world, ada, ada.owner, "Bruno the dog is loud.", message.id)
    await world.memory.learn()
    assert (await world.memory.recall(ada, 0, "Is Bruno loud?")).trace["candidates"][0]["views"].get("keys")
    async with world.database.write() as connection:
        await store.supersede(connection, [made], made, world.now, world.now)
    assert not (await world.memory.recall(ada, 0, "Is Bruno loud?")).trace["candidates"][0]["views"].get("keys")


async def test_p01_what_everybody_may_know_leads_nobody_to_somebody_elses_words(world: World) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    session = await world.talk(ada, "He growls at the postman whenever it rings.", "I see.")
    await world.talk(bob, "The fence needs paint.", "OK")
    [message, _] = await world.messages(session)
    await notice(world, ada, PUBLIC, "Bruno the dog of Ada is loud.", message.id)
    await world.memory.learn()
    recall = await world.memory.recall(bob, 0, "Is Bruno the dog loud?")
    assert [each.text for each in recall.observations] == ["Bruno the dog of Ada is loud."]
    assert all(each["message"] != message.id for each in recall.trace["candidates"])
    assert await lines(world, bob, "Is Bruno the dog loud?") == []
