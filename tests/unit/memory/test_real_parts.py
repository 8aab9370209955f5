"""The same promises with the parts that the program ships: Chroma on disk and the built-in embedder."""

from collections.abc import AsyncGenerator

import pytest

from bot.embedders.builtin import UseEmbedder
from memory.memory import Memory
from memory.ports import Embedder
from memory.storage.database import Database
from memory.storage.index.chroma import ChromaIndex
from memory.types import MemorySettings
from tests.fakes.clock import FrozenClock
from tests.fakes.model import ScriptedModel
from tests.unit.memory.world import PLAIN, World


@pytest.fixture
async def real(world: World, database: Database, clock: FrozenClock) -> AsyncGenerator[World, None]:
    embedder: Embedder = UseEmbedder()  # pyright: ignore[reportAssignmentType] - its constants are no properties
    index = ChromaIndex(world.data_dir / "chroma", name=embedder.name, dimension=embedder.dimension)
    world.memory = Memory(
        database,
        clock,
        vectors=index,
        embedder=embedder,
        model=ScriptedModel(traits=PLAIN),
        settings=MemorySettings(recall_seconds=20),  # the first call loads the model
    )
    await world.memory.open()
    yield world
    await index.close()
    await embedder.close()


async def test_what_was_said_in_one_language_is_recalled_in_another(real: World) -> None:
    ada = await real.person("ada")
    said = [
        "We booked a hotel by the sea for our holiday in August.",
        "Meine Tochter lernt seit dem Herbst Geige spielen.",
        "Врач запретил мне есть солёное из-за давления.",
    ]
    sessions = [await real.talk(ada, text, "OK.") for text in said]
    assert await real.memory.learn() == 3
    questions = {
        0: ["Wo verbringen wir den Urlaub am Meer?", "Какой отель мы забронировали у моря?"],
        1: ["Which instrument does my daughter play?", "На чём играет моя дочь?"],
        2: ["What did the doctor forbid me to eat?", "Was darf ich laut Arzt nicht essen?"],
    }
    for number, asked in questions.items():
        for question in asked:
            found = await real.memory.recall(ada, 0, question)
            assert found.degraded == ()
            assert found.recollections[0].session_id == sessions[number].id, question


async def test_p26_a_forgotten_vector_is_in_no_file(real: World) -> None:
    """Not the words, and not the numbers that stand for them."""
    ada = await real.person("ada")
    await real.talk(ada, "My dog is called Zwirbelwitz.", "OK.", "The roof of the garden shed leaks badly.", "OK.")
    fact = await real.fact(ada, "My dog is called Zwirbelwitz")
    await real.memory.learn()
    embedder = UseEmbedder()
    gone, _ = await embedder.embed_documents(
        ["My dog is called Zwirbelwitz.", "The roof of the garden shed leaks badly."]
    )
    await embedder.close()
    assert gone.tobytes() in real.bytes_on_disk()
    receipt = await real.memory.forget_facts(ada, [fact.id])
    assert (receipt.vectors, receipt.unfinished) == (2, ())
    await real.memory.learn()
    disk = real.bytes_on_disk()
    assert gone.tobytes() not in disk
    assert b"zwirbelwitz" not in disk.lower()
    assert len((await real.memory.recall(ada, 0, "What leaks in the garden?")).recollections) == 1


OWN = [
    "My sister Marion lives in Hamburg",
    "Meine Katze heißt Minka",
    "Мурка не ест рыбу",
    "My colleague Peter owes me 50 euros",
    "Mein Hausarzt ist Dr. Weber",
    "У меня аллергия на арахис",
]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("sibling", [0]),
        ("Mediziner", [4]),
        ("орехи", [5]),
        ("unicorns", []),
        ("Einhörner", []),
        ("единороги", []),
        ("zzz", []),
        ("gym", []),
    ],
)
async def test_d16_by_meaning_only_what_stands_out_is_found(real: World, query: str, found: list[int]) -> None:
    ada = await real.person("ada")
    facts = [await real.fact(ada, text) for text in OWN]
    result = await real.memory.facts.search(ada, query)
    assert result.facts == tuple(facts[i] for i in found)
    assert not result.by_words
    assert await real.memory.facts.find(ada, query) == list(result.facts)
    assert (await real.memory.facts.search(ada, "Minka")).by_words
