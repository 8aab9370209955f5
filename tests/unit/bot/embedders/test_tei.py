"""Text Embeddings Inference: batches, errors and waits, against a stand-in of its API."""

import httpx
import pytest

from bot.embedders import tei
from bot.embedders.tei import TeiEmbedder
from memory.ports import EmbedderError
from tests.fakes.tei_api import TeiApi


def _embedder(api: TeiApi, **options: str) -> TeiEmbedder:
    return TeiEmbedder("http://tei.test", transport=api.transport, **options)


async def test_the_model_names_itself() -> None:
    embedder = _embedder(TeiApi())
    await embedder.open()
    assert (embedder.name, embedder.dimension) == ("tei/BAAI/bge-m3", 64)
    assert embedder.floor > 0


async def test_batches_are_as_large_as_the_server_allows() -> None:
    api = TeiApi(most_texts=4)
    vectors = await _embedder(api).embed_documents([f"text number {number}" for number in range(10)])
    assert len(vectors) == 10
    assert max(map(len, api.batches)) == 4


async def test_a_batch_that_is_too_large_all_the_same_is_halved() -> None:
    api = TeiApi()
    embedder = _embedder(api)
    await embedder.open()
    api.most_texts = 3
    assert len(await embedder.embed_documents([f"text {number}" for number in range(10)])) == 10


async def test_long_texts_are_truncated_by_the_server() -> None:
    assert len(await _embedder(TeiApi()).embed_documents(["long " * 5000])) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tei, "_PAUSE_SECONDS", 0.001)
    api = TeiApi()
    embedder = _embedder(api)
    await embedder.open()
    api.faults = [(status, "Overloaded")] * 2
    assert (await embedder.embed_query("hello")).shape == (64,)
    api.faults = [(status, "Overloaded")] * 3
    with pytest.raises(EmbedderError, match="Overloaded"):
        await embedder.embed_query("hello")


@pytest.mark.parametrize(("status", "error_type"), [(422, "Tokenizer"), (424, "Backend"), (400, "Empty")])
async def test_a_refusal_is_told_in_the_servers_words(status: int, error_type: str) -> None:
    api = TeiApi()
    embedder = _embedder(api)
    await embedder.open()
    api.faults = [(status, error_type)]
    with pytest.raises(EmbedderError, match=error_type):
        await embedder.embed_query("hello")


@pytest.mark.parametrize("raw", [{"embedding": [1]}, [], [[0.0, 0.0]], [["a"]], "no"])
async def test_what_is_no_vector_poisons_no_index(raw: object) -> None:
    api = TeiApi()
    embedder = _embedder(api)
    await embedder.open()
    api.raw = raw
    with pytest.raises(EmbedderError):
        await embedder.embed_query("hello")


async def test_prefixes_stand_before_the_texts_and_in_the_name() -> None:
    api = TeiApi(model="intfloat/multilingual-e5-small")
    embedder = _embedder(api, query_prefix="query: ", document_prefix="passage: ")
    await embedder.embed_query("cat")
    await embedder.embed_documents(["dog"])
    assert api.batches[-2:] == [["query: cat"], ["passage: dog"]]
    assert embedder.name.startswith("tei/intfloat/multilingual-e5-small@")


async def test_a_server_that_is_away_is_named() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    embedder = TeiEmbedder("http://tei.test", transport=httpx.MockTransport(refuse))
    with pytest.raises(EmbedderError, match=r"http://tei\.test cannot be reached"):
        await embedder.embed_query("hello")


async def test_another_server_is_recognised() -> None:
    embedder = TeiEmbedder("http://x", transport=httpx.MockTransport(lambda _: httpx.Response(200, json=[])))
    with pytest.raises(EmbedderError, match="does not answer as a TEI server"):
        await embedder.open()


async def test_blank_text_is_refused() -> None:
    with pytest.raises(ValueError, match="blank"):
        await _embedder(TeiApi()).embed_documents([" "])
