"""A change of embedder, from the built-in one to another over HTTP: what is whole answers, and nothing old stays."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest
import sqlalchemy as sa

from bot.embedders.builtin import UseEmbedder
from bot.embedders.ollama import OllamaEmbedder
from memory.memory import Memory
from memory.ports import Embedder, EmbedderError, Vector
from memory.recall import evidence
from memory.scope import Audience
from memory.storage import kept
from memory.storage.index.chroma import ChromaIndex
from memory.storage.index.serving import MakeEmbedder
from memory.types import Health
from tests.fakes.model import ScriptedModel
from tests.fakes.ollama_api import OllamaApi, OllamaModel
from tests.unit.memory.world import PLAIN, World

USE = "use-multilingual-v3:512"
SMALL = "ollama/bge-m3@1:48"
ASKED = "Womit verdiene ich mein Geld?"
"""Has no word in common with the answer: only an embedder of several languages finds it."""


@pytest.fixture
async def api() -> AsyncIterator[OllamaApi]:
    async with OllamaApi([OllamaModel("bge-m3:latest", ("embedding",), 2048, 48)]) as running:
        yield running


class Faltering:
    """An embedder that fails after some batches of documents, as a server that is stopped does."""

    def __init__(self, embedder: OllamaEmbedder, batches: int) -> None:
        self._embedder = embedder
        self._left = batches

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def floor(self) -> float:
        return self._embedder.floor

    async def embed_query(self, text: str) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self._left -= 1
        if self._left < 0:
            raise EmbedderError("the server was stopped")
        return await self._embedder.embed_documents(texts)

    async def close(self) -> None:
        await self._embedder.close()


@dataclass
class Kept:
    """A tenant whose embedder can be changed with a restart."""

    world: World
    ada: Audience
    memory: Memory | None = None

    async def start(self, embedder: Embedder, former: MakeEmbedder | None = None) -> Memory:
        if self.memory is not None:
            await self.memory.close()
        index = ChromaIndex(self.world.data_dir / "chroma", name=embedder.name, dimension=embedder.dimension)
        self.memory = Memory(
            self.world.database,
            self.world.clock,
            vectors=index,
            embedder=embedder,
            model=ScriptedModel(traits=PLAIN),
            settings=self.world.settings,
            former=former,
        )
        await self.memory.open()
        return self.memory

    async def models(self) -> set[str]:
        async with self.world.database.read() as connection:
            rows = await connection.execute(sa.text("SELECT DISTINCT model FROM message_vectors"))
            return set(rows.scalars())

    async def found(self, question: str) -> tuple[list[str], tuple[str, ...]]:
        """Lines of earlier chats, and what did not answer."""
        assert self.memory is not None
        recall = await self.memory.recall(self.ada, 0, question)
        return [line.text for each in recall.recollections for line in each.lines], recall.degraded


@pytest.fixture
async def tenant(world: World) -> AsyncIterator[Kept]:
    """Everything is embedded by the built-in embedder."""
    ada = await world.person("ada")
    made = Kept(world, ada)
    memory = await made.start(UseEmbedder())
    await world.talk(ada, "I work as a nurse in a children's hospital.", "That sounds demanding.")
    await world.talk(ada, "The fence needs paint.", "Which colour?")
    await world.talk(ada, "We fly to Lisbon in May.", "Enjoy it.")
    await memory.learn()
    assert await made.models() == {USE}
    yield made
    if made.memory is not None:
        await made.memory.close()


async def small(api: OllamaApi) -> OllamaEmbedder:
    embedder = OllamaEmbedder(host=api.host, model="bge-m3")
    await embedder.open()
    return embedder


async def builtin(key: str) -> Embedder | None:
    assert key == USE
    return UseEmbedder()


def of(lines: Sequence[Health], name: str) -> Health | None:
    return next((each for each in lines if each.name == name), None)


async def test_the_former_vectors_answer_until_the_new_ones_are_whole(
    tenant: Kept, api: OllamaApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_VECTORS_BATCH", 2)
    memory = await tenant.start(Faltering(await small(api), 1), builtin)
    await memory.learn()
    assert await tenant.models() == {USE, SMALL}
    told = of(await memory.health(), "embedding")
    assert told is not None
    assert (told.ok, told.done, told.total) == (True, 2, 9)
    assert f"{USE} answers until then" in told.detail
    lines, degraded = await tenant.found(ASKED)
    assert degraded == ()
    assert lines[0] == "I work as a nurse in a children's hospital."
    memory = await tenant.start(await small(api), builtin)
    await memory.learn()
    assert await tenant.models() == {SMALL}
    assert of(await memory.health(), "embedding") is None
    asked = len(api.requests)
    lines, degraded = await tenant.found("Who is a nurse in the hospital?")
    assert (lines[0], degraded) == ("I work as a nurse in a children's hospital.", ())
    assert [request.inputs for request in api.requests[asked:]] == [["Who is a nurse in the hospital?"]]


async def test_nothing_of_the_former_embedder_stays_in_any_index(tenant: Kept, api: OllamaApi) -> None:
    memory = await tenant.start(await small(api), builtin)
    question = await UseEmbedder().embed_query(ASKED)
    index = ChromaIndex(tenant.world.data_dir / "chroma", name="bge", dimension=48)
    await memory.learn()
    await memory.close()
    tenant.memory = None
    await index.open()
    assert await index.query_other("use-multilingual-v3", 512, [tenant.ada.owner], question, 5) == []
    await index.close()
    async with tenant.world.database.read() as connection:
        assert await kept.load(connection, "memory.former_embedder") == ""


async def test_where_the_former_embedder_is_gone_words_answer_and_it_is_said(tenant: Kept, api: OllamaApi) -> None:
    async def gone(_key: str) -> Embedder | None:
        return None

    memory = await tenant.start(Faltering(await small(api), 0), gone)
    lines, degraded = await tenant.found("What about the fence?")
    assert lines[0] == "The fence needs paint."
    assert degraded == ("embedder",)
    told = of(await memory.health(), "embedding")
    assert told is not None
    assert not told.ok
    memory = await tenant.start(await small(api), gone)
    await memory.learn()
    assert (await tenant.found("What about the fence?"))[1] == ()


async def test_a_former_embedder_that_comes_back_answers_again(tenant: Kept, api: OllamaApi) -> None:
    is_there = False

    async def sometimes(key: str) -> Embedder | None:
        return await builtin(key) if is_there else None

    memory = await tenant.start(Faltering(await small(api), 0), sometimes)
    assert (await tenant.found(ASKED))[1] == ("embedder",)
    is_there = True
    await memory.learn()
    assert (await tenant.found(ASKED))[1] == ()


async def test_changing_back_before_it_was_through_costs_nothing(
    tenant: Kept, api: OllamaApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_VECTORS_BATCH", 2)
    memory = await tenant.start(Faltering(await small(api), 1), builtin)
    await memory.learn()
    memory = await tenant.start(UseEmbedder(), builtin)
    lines, degraded = await tenant.found(ASKED)
    assert (lines[0], degraded) == ("I work as a nurse in a children's hospital.", ())
    await memory.learn()
    assert await tenant.models() == {USE}
    assert of(await memory.health(), "embedding") is None


async def test_what_is_forgotten_meanwhile_goes_from_both(tenant: Kept, api: OllamaApi) -> None:
    """The former summaries' vectors go as a whole then: an index is not erased in part without being rebuilt."""
    memory = await tenant.start(Faltering(await small(api), 0), builtin)
    first = (await tenant.world.rows("sessions"))[0]["id"]
    receipt = await memory.forget_session(tenant.ada, first)
    assert receipt.unfinished == ()
    rows = await tenant.world.rows("message_vectors")
    gone = {row["id"] for row in await tenant.world.rows("messages") if row["session_id"] == first}
    assert gone.isdisjoint({row["message_id"] for row in rows})
    lines, _ = await tenant.found("the fence, the nurse")
    assert lines == ["The fence needs paint.", "Which colour?"]


async def test_a_rebuild_leaves_nothing_of_the_former_embedder(tenant: Kept, api: OllamaApi) -> None:
    memory = await tenant.start(await small(api), builtin)
    told: list[tuple[int, int]] = []
    await memory.reindex(lambda done, total: told.append((done, total)))
    assert await tenant.models() == {SMALL}
    assert told[0][1] == 6
    assert of(await memory.health(), "embedding") is None


async def test_new_messages_do_not_wait_for_the_old_ones(tenant: Kept, api: OllamaApi) -> None:
    memory = await tenant.start(await small(api), builtin)
    await tenant.world.talk(tenant.ada, "My bicycle is green.", "Nice.")
    embedder = await small(api)
    searching = evidence.Evidence(tenant.world.database, embedder)
    await searching.catch_up(seconds=0)
    await embedder.close()
    assert searching.has_more
    async with tenant.world.database.search() as connection:
        batch = await evidence.message_vectors.waiting(connection, SMALL, 4)
    assert [row.text for row in batch] == ["My bicycle is green.", "Nice."]
    await memory.learn()
    assert await tenant.models() == {SMALL}


async def test_what_is_to_be_forgotten_is_found_by_meaning_meanwhile(tenant: Kept, api: OllamaApi) -> None:
    """Its own vectors and those that are made on the fly are of one embedder."""
    memory = await tenant.start(Faltering(await small(api), 0), builtin)
    fact = await tenant.world.memory.facts.remember(tenant.ada, "Ada", "My sister plays the violin.", ())
    found = await memory.forgettable.find(tenant.ada, "Geige spielende Schwester")
    assert [each.fact.id for each in found.things if each.fact] == [fact.fact.id]
