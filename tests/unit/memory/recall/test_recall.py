"""Recall: the right sessions for the right people, in time, whatever is broken."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from memory.ports import EmbedderError, Vector, VectorHit
from memory.scope import Audience
from memory.types import MemorySettings, Recall, Session
from tests.fakes.embedder import WordEmbedder
from tests.fakes.index import ExactIndex
from tests.unit.memory.world import World


async def _recalled(world: World, audience: Audience, text: str, session_id: int = 0) -> list[int]:
    found = await world.memory.recall(audience, session_id, text)
    return [each.session_id for each in found.recollections]


async def _learned(world: World, audience: Audience, *texts: str) -> list[Session]:
    sessions = [await world.talk(audience, text, "OK.", title=f"title {i}") for i, text in enumerate(texts)]
    await world.memory.learn()
    return sessions


async def test_facts_come_in_full_and_sessions_by_what_they_are_about(world: World) -> None:
    ada = await world.person("ada")
    fact = await world.fact(ada, "I like tea")
    lisbon, _fence = await _learned(world, ada, "We fly to Lisbon in May.", "The fence needs paint.")
    found = await world.memory.recall(ada, 0, "When do we fly to Lisbon?")
    assert found.facts == (fact,)
    (recollection,) = found.recollections
    assert (recollection.session_id, recollection.title) == (lisbon.id, "title 0")
    assert recollection.text == "We fly to Lisbon in May."
    assert recollection.at > lisbon.created_at
    assert "meaning" in recollection.reason
    assert "words" in recollection.reason
    assert found.degraded == ()


@pytest.mark.parametrize(
    "text", ["hi", "ok danke", "спасибо", "привет", "Guten Morgen!", "👍", "thanks, see you later"]
)
async def test_p12_small_talk_recalls_no_session(world: World, text: str) -> None:
    ada = await world.person("ada")
    await world.fact(ada, "I like tea")
    await _learned(world, ada, "Hi, thanks, see you at the morning danke спасибо привет meeting.")
    found = await world.memory.recall(ada, 0, text)
    assert found.recollections == ()
    assert len(found.facts) == 1


async def test_p11_what_is_going_on_is_no_memory(world: World) -> None:
    ada = await world.person("ada")
    here, there = await _learned(world, ada, "We fly to Lisbon in May.", "We fly to Lisbon in June.")
    assert await _recalled(world, ada, "Lisbon", here.id) == [there.id]


async def test_at_most_three_sessions(world: World) -> None:
    ada = await world.person("ada")
    await _learned(world, ada, *(f"Lisbon plan number {i}" for i in range(6)))
    assert len(await _recalled(world, ada, "Lisbon plan")) == 3
    world.reborn(settings=MemorySettings(recall_sessions=0))
    await world.memory.open()
    assert await _recalled(world, ada, "Lisbon plan") == []


async def test_p01_s1_nobody_else_recalls_it(world: World) -> None:
    """Not another person, not the group the person is in, not with the embedder down; and a group keeps its own."""
    ada, ben = await world.person("ada"), await world.person("ben")
    ada_here, ben_here = await world.in_group(ada, ben)
    (elsewhere,) = await world.in_group(ada, title="other")
    (own,) = await _learned(world, ada, "The canary sings in Lisbon.")
    (shared,) = await _learned(world, ada_here, "The canary sings in Porto.")
    for is_down in (False, True):
        world.embedder.down = is_down
        assert await _recalled(world, ada, "canary sings") == [own.id]
        assert await _recalled(world, ben, "canary sings") == []
        assert await _recalled(world, ben_here, "canary sings") == [shared.id]
        assert await _recalled(world, elsewhere, "canary sings") == []


async def test_a_vector_whose_owner_is_not_the_rows_is_not_believed(world: World) -> None:
    """Scope is checked in SQL again: an index that mixes things up leaks nothing."""
    ada, ben = await world.person("ada"), await world.person("ben")
    await _learned(world, ada, "The canary sings in Lisbon.")

    class MixedUp(ExactIndex):
        async def query(self, owners: Sequence[str], vector: Vector, limit: int) -> list[VectorHit]:
            assert owners == (ben.owner,)
            return await super().query([ada.owner], vector, limit)

    mixed = MixedUp()
    world.vectors = mixed
    await world.reborn().open()
    await world.memory.reindex()
    assert await _recalled(world, ben, "canary sings") == []


async def test_a_part_that_breaks_unforeseen_takes_the_others_down_with_it(world: World) -> None:
    """What goes on by itself after the answer would hold a connection that nobody gives back."""

    class Broken(ExactIndex):
        async def query(self, owners: Sequence[str], vector: Vector, limit: int) -> list[VectorHit]:
            raise ZeroDivisionError(f"{owners} {vector.shape} {limit}")

    ada = await world.person("ada")
    await _learned(world, ada, "The canary sings in Lisbon.")
    world.vectors = Broken()
    await world.reborn().open()
    before = asyncio.all_tasks()
    found = await world.memory.recall(ada, 0, "Where does the canary sing?")
    assert (found.degraded, found.trace) == (("store",), {"error": "ZeroDivisionError"})
    assert asyncio.all_tasks() == before


async def test_r3_without_the_embedder_words_find_it(world: World) -> None:
    ada = await world.person("ada")
    (session,) = await _learned(world, ada, "Wir haben zwei Schlösser bei Heidelberg besucht.")
    world.embedder.down = True
    found = await world.memory.recall(ada, 0, "Welches Schloss bei Heidelberg?")
    assert [each.session_id for each in found.recollections] == [session.id]
    assert found.degraded == ("embedder",)
    assert await _recalled(world, ada, "Welche Burg bei Nürnberg?") == []


async def test_r3_without_the_index_words_find_it(world: World) -> None:
    ada = await world.person("ada")
    (session,) = await _learned(world, ada, "Мы купили билеты в Казань.")
    world.vectors.down = True
    found = await world.memory.recall(ada, 0, "Где билеты до Казани?")
    assert [each.session_id for each in found.recollections] == [session.id]
    assert found.degraded == ("index",)
    assert (await world.memory.recall(ada, 0, "Где билеты до Казани?")).degraded == ("index",)
    await world.memory.learn()
    assert (await world.memory.recall(ada, 0, "Где билеты до Казани?")).degraded == ()


class _Hanging(WordEmbedder):
    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.sleep(60)
        raise EmbedderError(f"{len(texts)} texts took too long")


async def test_an_answer_never_waits_for_a_part_that_hangs(world: World) -> None:
    ada = await world.person("ada")
    fact = await world.fact(ada, "I like tea")
    (session,) = await _learned(world, ada, "We fly to Lisbon in May.")
    world.embedder = _Hanging()
    memory = world.reborn(settings=MemorySettings(recall_seconds=0.2))
    started = asyncio.get_running_loop().time()
    found = await memory.recall(ada, 0, "fly Lisbon")
    assert asyncio.get_running_loop().time() - started < 1
    assert found.facts == (fact,)
    assert found.degraded == ("embedder",)
    assert [each.session_id for each in found.recollections] == [session.id]


async def test_recall_never_raises(world: World) -> None:
    """Not even without tables: the answer goes out without memory and says so."""
    ada = await world.person("ada")
    async with world.database.write() as connection:
        await connection.exec_driver_sql("DROP TABLE summary_words")
        await connection.exec_driver_sql("DROP TABLE facts")
    found = await world.memory.recall(ada, 0, "fly Lisbon")
    assert found.degraded == ("store",)


async def test_the_trace_holds_figures_and_no_words(world: World) -> None:
    ada = await world.person("ada")
    fact = await world.fact(ada, "I like tea")
    (session,) = await _learned(world, ada, "We fly to Lisbon in May.")
    found: Recall = await world.memory.recall(ada, 0, "fly Lisbon tea")
    trace = json.dumps(found.trace)
    assert found.trace["facts"] == [fact.id]
    assert found.trace["sessions"][0]["id"] == session.id
    assert found.trace["floor"] == world.embedder.floor
    assert set(found.trace["ms"]) == {"all", "facts", "words", "embedder", "meaning", "said", "rank", "observations"}
    for word in ("lisbon", "tea", "fly"):
        assert word not in trace.lower()


async def test_a_persons_words_are_no_query_syntax(world: World) -> None:
    ada = await world.person("ada")
    await _learned(world, ada, "We fly to Lisbon in May.")
    world.embedder.down = True
    for text in ('Lisbon" OR owner:"u1', "Lisbon AND (fly*", "NEAR(Lisbon, 3)", "owner:u1 lisbon'; --"):
        assert (await world.memory.recall(ada, 0, text)).degraded == ("embedder",)


async def test_p18_what_was_open_is_told_as_the_past(world: World) -> None:
    ada = await world.person("ada")
    (session,) = await _learned(world, ada, "The fence needs paint.")
    async with world.database.write() as connection:
        await connection.exec_driver_sql("UPDATE summaries SET next_steps = 'Buy paint.', learned = 'It is grey.'")
    found = await world.memory.recall(ada, 0, "fence paint")
    assert [each.session_id for each in found.recollections] == [session.id]
    assert found.recollections[0].text.splitlines()[1:] == ["It is grey.", "Open at that time: Buy paint."]
