"""What every embedder promises, whoever makes the vectors."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import numpy as np
import pytest

from bot.embedders.builtin import UseEmbedder
from bot.embedders.ollama import OllamaEmbedder
from bot.embedders.tei import TeiEmbedder
from memory.ports import Embedder, EmbedderError
from tests.fakes.embedder import WordEmbedder
from tests.fakes.ollama_api import OllamaApi
from tests.fakes.tei_api import TeiApi


@asynccontextmanager
async def run_builtin() -> AsyncGenerator[Embedder]:
    embedder = UseEmbedder()
    await embedder.warm()
    yield embedder
    await embedder.close()


@asynccontextmanager
async def run_ollama() -> AsyncGenerator[Embedder]:
    async with OllamaApi() as api:
        embedder = OllamaEmbedder(host=api.host)
        await embedder.open()
        yield embedder
        await embedder.close()
        assert api.violations == []


@asynccontextmanager
async def run_words() -> AsyncGenerator[Embedder]:
    embedder = WordEmbedder()
    yield embedder
    await embedder.close()


@asynccontextmanager
async def run_tei() -> AsyncGenerator[Embedder]:
    embedder = TeiEmbedder("http://tei.test", transport=TeiApi().transport)
    await embedder.open()
    yield embedder
    await embedder.close()


@pytest.fixture(params=[run_builtin, run_ollama, run_tei, run_words], ids=["builtin", "ollama", "tei", "words"])
async def embedder(request: pytest.FixtureRequest) -> AsyncGenerator[Embedder]:
    run: Callable[[], AbstractAsyncContextManager[Embedder]] = request.param
    async with run() as running:
        yield running


async def test_vectors_are_unit_vectors_of_the_stated_dimension(embedder: Embedder) -> None:
    query = await embedder.embed_query("Where is the cat?")
    documents = await embedder.embed_documents(["The cat sleeps.", "Die Katze schläft.", "Кошка спит.", "🐈"])
    assert len(documents) == 4
    for vector in (query, *documents):
        assert vector.shape == (embedder.dimension,)
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)


async def test_name_dimension_and_floor_are_known_and_stay(embedder: Embedder) -> None:
    before = (embedder.name, embedder.dimension, embedder.floor)
    await embedder.embed_query("Where is the cat?")
    assert (embedder.name, embedder.dimension, embedder.floor) == before
    assert embedder.name
    assert 0 < embedder.floor < 1


async def test_the_right_answer_is_above_the_floor_and_above_the_wrong_ones(embedder: Embedder) -> None:
    query = await embedder.embed_query("Which cello lessons does Clara take?")
    right, *wrong = [
        float(query @ document)
        for document in await embedder.embed_documents(
            [
                "Clara has cello lessons every Tuesday after school.",
                "The flat costs 940 euros a month including heating.",
                "Der Zug fährt um sieben Uhr ab.",
            ]
        )
    ]
    assert right > embedder.floor
    assert right > max(wrong)


async def test_one_text_has_one_vector_alone_or_in_a_batch(embedder: Embedder) -> None:
    """More texts than any batch holds, in their order."""
    texts = [f"Note {number}: the cat sleeps on shelf {number}." for number in range(70)]
    together = await embedder.embed_documents(texts)
    assert len(together) == 70
    for number in (0, 15, 16, 31, 32, 69):
        (alone,) = await embedder.embed_documents([texts[number]])
        assert np.allclose(alone, together[number], atol=1e-5)


async def test_questions_asked_at_once_get_their_own_answers(embedder: Embedder) -> None:
    texts = [f"Where is thing number {number}?" for number in range(20)]
    one_by_one = [await embedder.embed_query(text) for text in texts]
    at_once = await asyncio.gather(embedder.embed_documents(texts), *map(embedder.embed_query, texts))
    for expected, found in zip(one_by_one, at_once[1:], strict=True):
        assert np.allclose(expected, found, atol=1e-5)


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
async def test_blank_text_is_refused(embedder: Embedder, blank: str) -> None:
    with pytest.raises(ValueError, match="blank"):
        await embedder.embed_query(blank)
    with pytest.raises(ValueError, match="blank"):
        await embedder.embed_documents(["The cat sleeps.", blank])


async def test_no_texts_make_no_vectors(embedder: Embedder) -> None:
    assert await embedder.embed_documents([]) == []


async def test_long_text_is_no_error(embedder: Embedder) -> None:
    vector = await embedder.embed_query("The cat sleeps on the shelf. " * 3000)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)


async def test_broken_text_is_an_embedder_error_at_worst(embedder: Embedder) -> None:
    """Half a surrogate pair cannot be sent or tokenised everywhere."""
    try:
        vector = await embedder.embed_query("broken \ud83d text")
    except EmbedderError:
        return
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)


async def test_a_closed_embedder_says_so(embedder: Embedder) -> None:
    await embedder.close()
    await embedder.close()
    with pytest.raises(EmbedderError):
        await embedder.embed_query("Where is the cat?")
