"""Rows in Chroma's collections: whose each is stands in its key, and there is no text.

One rule: a key names owner and id without a doubt, so that nobody's row is ever taken for somebody else's.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memory.ports import Vector


class Collection(Protocol):
    """What is used of `chromadb.Collection`, with the types it really takes."""

    @property
    def name(self) -> str: ...

    def count(self) -> int: ...

    def upsert(self, ids: list[str], embeddings: NDArray[np.float32], metadatas: list[dict[str, str]]) -> None: ...

    def get(
        self,
        ids: list[str] | None = None,
        where: dict[str, Any] | None = None,
        limit: int | None = None,
        *,
        include: list[str],
    ) -> dict[str, Any]: ...

    def query(
        self,
        query_embeddings: NDArray[np.float32],
        n_results: int,
        where: dict[str, Any] | None = None,
        *,
        include: list[str],
    ) -> dict[str, Any]: ...

    def delete(self, ids: list[str]) -> object: ...

    def modify(self, name: str) -> None: ...


def split(key: str) -> tuple[str, str]:
    """Owner and id of a key."""
    length, _, rest = key.partition(":")
    return rest[: int(length)], rest[int(length) + 1 :]


def key_of(owner: str, row_id: str) -> str:
    """Join owner and id; the length in front keeps `a:b` + `c` apart from `a` + `b:c`."""
    return f"{len(owner)}:{owner}:{row_id}"


def row_id_of(owner: str, key: str) -> str:
    return key.removeprefix(key_of(owner, ""))


def vectors_of(shard: Collection, keys: list[str]) -> dict[str, Vector]:
    found = shard.get(ids=keys, include=["embeddings"])
    return dict(zip(found["ids"], found["embeddings"], strict=True))


def is_same(old: Vector | None, new: Vector) -> bool:
    return old is not None and bool(np.abs(old - new).max() < 1e-6)  # noqa: PLR2004 - Chroma normalises once more
