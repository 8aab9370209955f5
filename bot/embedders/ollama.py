"""The embedder for people who run Ollama: any of its embedding models.

One rule: what the model needs (prefixes) is data, what can be measured (dimension, floor) is measured.
"""

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Final
from zlib import crc32

import httpx
import numpy as np
import ollama
import pydantic
import structlog

from bot.embedders.calibration import PROBE, calibrate_floor
from bot.embedders.rows import refuse_blank, unit_rows
from memory.ports import EmbedderError, Vector

log = structlog.get_logger(__name__)

_BATCH: Final = 16
_TIMEOUT: Final = httpx.Timeout(60, connect=3)
"""Seconds; the first call may have to load the model. The client itself would wait for ever."""

_PREFIXES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "nomic-embed-text": ("search_query: ", "search_document: "),
        "embeddinggemma": ("task: search result | query: ", "title: none | text: "),
        "qwen3-embedding": (
            "Instruct: Given a question, retrieve the remembered notes that answer it\nQuery: ",
            "",
        ),
        "mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
        "snowflake-arctic-embed": ("Represent this sentence for searching relevant passages: ", ""),
        "snowflake-arctic-embed2": ("query: ", ""),
    }
)
"""Query and document prefix by model family, from the model cards; Ollama adds none; bge-m3, all-minilm want none."""

_PREFIX_VERSION: Final = 1
"""Part of the name: vectors made with other prefixes must not be mixed with these."""


class OllamaEmbedder:
    """Embeddings of an Ollama server.

    `dimension` and `floor` are learnt from the server by `open()`, which the first call does by itself; before that
    `dimension` is known only if it was given. A given `dimension` is asked of the server too (Matryoshka models).
    `host` None leaves the choice to the client: `OLLAMA_HOST`, else this machine.
    """

    def __init__(
        self,
        *,
        host: str | None,
        model: str = "nomic-embed-text",
        dimension: int | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> None:
        self._client = ollama.AsyncClient(host=host, timeout=_TIMEOUT)
        self._model = model
        family = model.rsplit("/", 1)[-1].split(":", 1)[0].removesuffix("-v2-moe")
        known = _PREFIXES.get(family, ("", ""))
        self._query_prefix = known[0] if query_prefix is None else query_prefix
        self._document_prefix = known[1] if document_prefix is None else document_prefix
        self._is_known = (self._query_prefix, self._document_prefix) == known
        self._asked = dimension
        self._dimension = dimension
        self._floor: float | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        version = str(_PREFIX_VERSION) if self._is_known else f"{crc32(self._document_prefix.encode()):08x}"
        return f"ollama/{self._model}@{version}"

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            raise EmbedderError(f"the dimension of {self._model} is not known before open() has reached Ollama")
        return self._dimension

    @property
    def floor(self) -> float:
        """Measured by `open()` with the shipped probe; before that 0.0, which lets everything through."""
        return self._floor or 0.0

    async def open(self) -> None:
        """Learn dimension and floor from the server (two short calls, once). Raises `EmbedderError`."""
        async with self._opening:
            if self._floor is not None:
                return
            questions = await self._embed([self._query_prefix + question for question, _ in PROBE])
            answers = await self._embed([self._document_prefix + answer for _, answer in PROBE])
            self._floor = calibrate_floor(questions, answers)
            log.info("embedder.opened", name=self.name, dimension=self._dimension, floor=self._floor)

    async def embed_query(self, text: str) -> Vector:
        refuse_blank([text])
        await self.open()
        return (await self._embed([self._query_prefix + text]))[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        refuse_blank(texts)
        if texts:
            await self.open()
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            vectors.extend(await self._embed([self._document_prefix + text for text in batch]))
        return vectors

    async def close(self) -> None:
        await self._client.close()

    async def _embed(self, texts: list[str]) -> list[Vector]:
        try:
            answer = await self._client.embed(
                self._model, texts, truncate=True, keep_alive="30m", dimensions=self._asked
            )
        except ollama.ResponseError as error:
            raise EmbedderError(_explain(self._model, error)) from error
        except (ConnectionError, httpx.HTTPError, RuntimeError) as error:  # RuntimeError: the client was closed
            raise EmbedderError(f"Ollama cannot be reached ({type(error).__name__}): is it running?") from error
        except (pydantic.ValidationError, ValueError) as error:
            raise EmbedderError(f"Ollama's answer for {self._model} makes no sense: {error}") from error
        return self._check(answer.embeddings, len(texts))

    def _check(self, rows: Sequence[Sequence[float]], expected: int) -> list[Vector]:
        """Return the rows as unit vectors; refuse what would poison an index."""
        if len(rows) != expected or len({len(row) for row in rows}) != 1:
            raise EmbedderError(f"{self._model} returned {len(rows)} vectors for {expected} texts")
        matrix = np.asarray(rows, dtype=np.float32)
        units = unit_rows(matrix)
        if units is None:
            raise EmbedderError(f"{self._model} returned a vector without direction")
        found = matrix.shape[1]
        if self._dimension not in (None, found):
            raise EmbedderError(
                f"{self._model} has {found} dimensions, not {self._dimension}: "
                "set embedding.dimension to match, or restart if the model was replaced"
            )
        self._dimension = found
        return units


def _explain(model: str, error: ollama.ResponseError) -> str:
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"Ollama does not have {model}: run `ollama pull {model}`"
    return f"Ollama refused to embed with {model} ({error.status_code}): {error.error}"
