"""The embedder for people who run Text Embeddings Inference: one server, one model, plain HTTP.

One rule: what the server knows of its model (name, batch size) is asked of it, never configured twice.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, cast
from zlib import crc32

import httpx
import numpy as np
import structlog

from bot.embedders.calibration import PROBE, calibrate_floor
from bot.embedders.rows import refuse_blank, unit_rows
from memory.ports import EmbedderError, Vector

log = structlog.get_logger(__name__)

_TIMEOUT: Final = httpx.Timeout(30, connect=3)
"""Seconds."""
_BATCH: Final = 32
"""The server's own default of `--max-client-batch-size`; it may allow fewer, and says so."""
_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 0.2
"""Before a request is repeated that came while the server was full (429) or still starting (503), growing."""
_BUSY: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class TeiEmbedder:
    """Embeddings of a TEI server (`/embed`, `/info`).

    Name, `dimension` and `floor` are learnt by `open()`, which the first call does by itself. Longer texts than the
    model takes are truncated by the server. bge-m3 wants no prefixes, e5 wants "query: " and "passage: ".
    """

    def __init__(
        self,
        url: str,
        *,
        query_prefix: str = "",
        document_prefix: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = httpx.AsyncClient(base_url=url.rstrip("/"), timeout=_TIMEOUT, transport=transport)
        self._url = url
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._batch = _BATCH
        self._model = ""
        self._dimension: int | None = None
        self._floor: float | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        if not self._model:
            raise EmbedderError("the model's name is not known before open() has reached the TEI server")
        prefixed = f"@{crc32(self._document_prefix.encode()):08x}" if self._document_prefix else ""
        return f"tei/{self._model}{prefixed}"

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            raise EmbedderError("the dimension is not known before open() has reached the TEI server")
        return self._dimension

    @property
    def floor(self) -> float:
        """Measured by `open()` with the shipped probe; before that 0.0, which lets everything through."""
        return self._floor or 0.0

    async def open(self) -> None:
        """Learn model, dimension and floor from the server, once. Raises `EmbedderError`."""
        async with self._opening:
            if self._floor is not None:
                return
            told = await self._request("GET", "/info")
            info = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
            self._model = str(info.get("model_id") or "")
            if not self._model:
                raise EmbedderError(f"{self._url} does not answer as a TEI server: /info names no model")
            self._batch = max(min(int(info.get("max_client_batch_size") or _BATCH), _BATCH), 1)
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
        if not texts:
            return []
        await self.open()
        return await self._embed([self._document_prefix + text for text in texts])

    async def close(self) -> None:
        await self._client.aclose()

    async def _embed(self, texts: list[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._batch):
            vectors.extend(await self._embed_batch(texts[start : start + self._batch]))
        return vectors

    async def _embed_batch(self, texts: list[str]) -> list[Vector]:
        try:
            answer = await self._request("POST", "/embed", {"inputs": texts, "normalize": True, "truncate": True})
        except _TooLargeError:
            if len(texts) == 1:
                raise EmbedderError(f"{self._model}: a single text is too large for the TEI server") from None
            half = len(texts) // 2
            self._batch = max(half, 1)
            return [*await self._embed_batch(texts[:half]), *await self._embed_batch(texts[half:])]
        return self._check(answer, len(texts))

    async def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> object:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                response = await self._client.request(method, path, json=body)
            except UnicodeEncodeError as error:
                raise EmbedderError("the text holds half a character, which no server takes") from error
            except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:  # RuntimeError: the client was closed
                raise EmbedderError(
                    f"the TEI server at {self._url} cannot be reached ({type(error).__name__})"
                ) from error
            if response.status_code in _BUSY and attempt < _ATTEMPTS:
                await asyncio.sleep(_PAUSE_SECONDS * attempt)
                continue
            if response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise _TooLargeError
            if response.status_code != HTTPStatus.OK:
                raise EmbedderError(f"the TEI server refused {path} ({response.status_code}): {_explain(response)}")
            try:
                return response.json()
            except ValueError as error:
                raise EmbedderError(f"the TEI server's answer to {path} is no JSON") from error
        raise EmbedderError(f"the TEI server at {self._url} stayed busy")

    def _check(self, answer: object, expected: int) -> list[Vector]:
        """Return the rows as unit vectors; refuse what would poison an index."""
        try:
            matrix = np.asarray(answer, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise EmbedderError(f"{self._model}: the TEI server returned no vectors") from error
        if matrix.ndim != 2 or len(matrix) != expected:  # noqa: PLR2004 - a row a text
            raise EmbedderError(f"{self._model}: the TEI server returned {matrix.shape} for {expected} texts")
        units = unit_rows(matrix)
        if units is None:
            raise EmbedderError(f"{self._model}: the TEI server returned a vector without direction")
        found = matrix.shape[1]
        if self._dimension not in (None, found):
            raise EmbedderError(f"{self._model} has {found} dimensions now, not {self._dimension}: restart Merk")
        self._dimension = found
        return units


class _TooLargeError(Exception):
    """The server takes fewer texts at a time."""


def _explain(response: httpx.Response) -> str:
    """The server's {"error", "error_type"}, as far as it sent one."""
    try:
        body: Any = response.json()
    except ValueError:
        return response.text[:200]
    if not isinstance(body, dict):
        return str(body)[:200]
    said = cast("dict[str, Any]", body)
    return f"{said.get('error_type', 'error')}: {said.get('error', said)}"[:200]
