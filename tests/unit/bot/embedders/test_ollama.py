"""What is Ollama's own: prefixes, dimensions, and a server that is away or talks nonsense."""

import json
from collections.abc import AsyncIterator

import httpx
import numpy as np
import pytest

import bot.embedders.ollama
from bot.embedders.ollama import OllamaEmbedder
from memory.ports import EmbedderError
from tests.fakes.canned_http import Canned, CannedServer
from tests.fakes.ollama_api import OllamaApi, OllamaModel

MODELS = [
    OllamaModel(name, ("embedding",), 2048, 64)
    for name in ("nomic-embed-text:latest", "me/embeddinggemma:300m", "mxbai-embed-large:latest", "bge-m3:latest")
]


@pytest.fixture
async def api() -> AsyncIterator[OllamaApi]:
    async with OllamaApi(MODELS) as running:
        yield running


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text", "search_query: cat", "search_document: cat"),
        ("me/embeddinggemma:300m", "task: search result | query: cat", "title: none | text: cat"),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: cat", "cat"),
        ("bge-m3", "cat", "cat"),
    ],
)
async def test_each_model_gets_the_prefixes_it_was_trained_with(
    api: OllamaApi, model: str, query: str, document: str
) -> None:
    """Ollama adds none by itself."""
    embedder = OllamaEmbedder(host=api.host, model=model)
    await embedder.embed_query("cat")
    await embedder.embed_documents(["cat"])
    assert [request.inputs for request in api.requests[-2:]] == [[query], [document]]
    await embedder.close()


async def test_the_dimension_is_learnt_from_the_server(api: OllamaApi) -> None:
    embedder = OllamaEmbedder(host=api.host)
    with pytest.raises(EmbedderError, match="open"):
        _ = embedder.dimension
    await embedder.open()
    assert embedder.dimension == 64
    assert 0.05 <= embedder.floor < 0.5
    asked = len(api.requests)
    await embedder.open()
    assert len(api.requests) == asked
    await embedder.close()


async def test_a_shorter_dimension_is_asked_of_the_server(api: OllamaApi) -> None:
    embedder = OllamaEmbedder(host=api.host, dimension=32)
    assert embedder.dimension == 32
    assert (await embedder.embed_query("cat")).shape == (32,)
    await embedder.close()


async def test_a_model_that_is_not_there_says_how_to_get_it(api: OllamaApi) -> None:
    embedder = OllamaEmbedder(host=api.host, model="snowflake-arctic-embed2")
    with pytest.raises(EmbedderError, match="ollama pull snowflake-arctic-embed2"):
        await embedder.embed_query("cat")
    await embedder.close()


async def test_a_server_that_was_down_is_used_when_it_is_back(api: OllamaApi) -> None:
    api.fault("busy")
    embedder = OllamaEmbedder(host=api.host)
    with pytest.raises(EmbedderError, match="503"):
        await embedder.embed_query("cat")
    await api.down()
    with pytest.raises(EmbedderError, match="running"):
        await embedder.embed_query("cat")
    await api.up()
    assert (await embedder.embed_query("cat")).shape == (64,)
    await embedder.close()


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot.embedders.ollama, "_TIMEOUT", httpx.Timeout(0.2))
    async with CannedServer({"/api/embed": [Canned(hangs=True)]}) as server:
        embedder = OllamaEmbedder(host=server.url)
        with pytest.raises(EmbedderError, match="Timeout"):
            await embedder.embed_query("cat")
        await embedder.close()


@pytest.mark.parametrize(
    "embeddings",
    [
        "[]",
        "[[1.0]]",
        json.dumps([[0.0, 0.0]] * 15),
        json.dumps([[1.0, 2.0]] * 14 + [[1.0]]),
        json.dumps([()] * 15),
        json.dumps([[float("nan"), 1.0]] * 15),
        '"words"',
        "null",
        "",
    ],
)
async def test_vectors_that_would_poison_an_index_are_refused(embeddings: str) -> None:
    body = f'{{"model": "m", "embeddings": {embeddings}}}'.encode()
    headers = {"content-type": "application/json"}
    async with CannedServer({"/api/embed": [Canned(body, headers=headers)]}) as server:
        embedder = OllamaEmbedder(host=server.url)
        with pytest.raises(EmbedderError):
            await embedder.embed_query("cat")
        await embedder.close()


async def test_p30_a_model_that_was_replaced_by_another_size_is_an_error(api: OllamaApi) -> None:
    embedder = OllamaEmbedder(host=api.host)
    await embedder.open()
    api.models["nomic-embed-text:latest"] = OllamaModel("nomic-embed-text:latest", ("embedding",), 2048, 96)
    with pytest.raises(EmbedderError, match="96 dimensions, not 64"):
        await embedder.embed_query("cat")
    await embedder.close()


async def test_the_name_tells_models_and_prefixes_apart() -> None:
    names = {OllamaEmbedder(host=None, model=model).name for model in ("bge-m3", "nomic-embed-text", "bge-m3:567m")}
    assert len(names) == 3
    assert np.all(["@" in name for name in names])
