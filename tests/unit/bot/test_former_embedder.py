"""Which embedder of the past can still be had: found by what its vectors are called."""

from pathlib import Path
from typing import cast

import sqlalchemy as sa

from bot.checks import data
from bot.config import Embedding, Model, OllamaModels, Settings, Tenant
from bot.embedders.builtin import UseEmbedder
from bot.embedders.ollama import OllamaEmbedder
from bot.providers import embedder_of
from memory.ports import Embedder
from memory.recall.evidence import Evidence
from memory.storage.database import Database
from memory.storage.tables import evidence
from tests.fakes.embedder import WordEmbedder
from tests.fakes.house import house
from tests.fakes.ollama_api import OllamaApi, OllamaModel

AWAY = "http://127.0.0.1:9"


def settings(host: str = AWAY, url: str | None = None) -> Settings:
    return Settings(embedding=Embedding(provider="builtin", url=url), model=Model(ollama=OllamaModels(host=host)))


async def test_the_built_in_one_can_always_be_had() -> None:
    found = await embedder_of(settings(), "use-multilingual-v3:512")
    assert isinstance(found, UseEmbedder)
    await found.close()


async def test_one_that_there_never_was_cannot() -> None:
    assert await embedder_of(settings(), "use-multilingual-v9:512") is None
    assert await embedder_of(settings(), "use-multilingual-v3:256") is None


async def test_one_of_ollama_is_had_while_ollama_has_its_model() -> None:
    async with OllamaApi([OllamaModel("bge-m3:latest", ("embedding",), 2048, 48)]) as api:
        found = await embedder_of(settings(api.host), "ollama/bge-m3@1:48")
        assert isinstance(found, OllamaEmbedder)
        assert (found.name, found.dimension) == ("ollama/bge-m3@1", 48)
        await found.close()
        assert await embedder_of(settings(api.host), "ollama/bge-m3@1:1024") is None
        assert await embedder_of(settings(api.host), "ollama/gone@1:48") is None


async def test_one_of_a_server_that_is_away_cannot_be_had_and_that_is_no_error() -> None:
    assert await embedder_of(settings(), "ollama/bge-m3@1:48") is None
    assert await embedder_of(settings(), "tei/BAAI/bge-m3:1024") is None
    assert await embedder_of(settings(url=AWAY), "tei/BAAI/bge-m3:1024") is None


async def test_the_doctor_counts_what_is_embedded_anew(database: Database, tmp_path: Path) -> None:
    path = Path(database.url.removeprefix("sqlite+aiosqlite:///"))
    told = Settings(tenant=Tenant(data_dir=path.parent))
    async with house(database, tmp_path) as opened:
        await opened.say("The fence needs paint.")
        await opened.say("The gate needs paint.")
        await Evidence(database, cast("Embedder", WordEmbedder())).catch_up()
    assert "embedder was changed" not in await data.index(told, None)
    async with database.write() as connection:
        newest = sa.select(sa.func.max(evidence.c.message_id)).scalar_subquery()
        await connection.execute(
            evidence.update().where(evidence.c.message_id == newest).values(indexed_as="tei/m:1024")
        )
    said = await data.index(told, None)
    assert "the embedder was changed" in said
    assert "1 messages by tei/m:1024" in said
