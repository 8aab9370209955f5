"""An embedder whose vectors are made of word stems: texts are near when they share words, in any language."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from memory.ports import EmbedderError, Vector

_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "the and for are was with that this what which who when where how does did you your has have "
        "der die das und ist ein eine wie was wer wann wo mit ich wir von для что как где когда кто это",
    )
)


class WordEmbedder:
    """Deterministic; cosine is about the share of common stems (first five letters), noise about 0.12.

    `down` makes every call fail; `seen` lists the texts that were embedded.
    """

    name: str = "words"
    dimension: int = 64
    floor: float = 0.2

    def __init__(self) -> None:
        self.down = False
        self.seen: list[str] = []

    async def embed_query(self, text: str) -> Vector:
        return (await self.embed_documents([text]))[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        if not all(text.strip() for text in texts):
            raise ValueError("blank text has no meaning to embed")
        if self.down:
            raise EmbedderError("the word embedder was told to fail")
        self.seen.extend(texts)
        return [_embed(text) for text in texts]

    async def close(self) -> None:
        self.down = True


def _embed(text: str) -> Vector:
    words = {word[:5] for word in re.findall(r"\w{2,}", text.lower()) if word not in _STOP}
    total = sum((_direction(word) for word in words or {text}), np.zeros(WordEmbedder.dimension, dtype=np.float32))
    return total / np.float32(np.linalg.norm(total))


def _direction(word: str) -> Vector:
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(WordEmbedder.dimension, dtype=np.float32)
