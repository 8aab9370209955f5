"""A vector index in memory that compares everything with everything: the oracle of the contract suite."""

from collections.abc import Sequence

import numpy as np

from memory.ports import Vector, VectorHit, VectorRow
from memory.storage.index.chroma import IndexUnavailable

Disk = dict[tuple[str, int], dict[tuple[str, str], Vector]]
"""What is kept: by embedder and dimension, rows by owner and id."""


class ExactIndex:
    """Same promises as `ChromaIndex`. `down` makes every call fail until `open()`, which then finds nothing left.

    Several of one `disk` are an index after its embedder was changed.
    `has_residue` says that rows were deleted or overwritten and `erase_residue()` was not called since.
    """

    def __init__(self, *, dimension: int = 64, name: str = "exact", disk: Disk | None = None) -> None:
        self._dimension = dimension
        self._key = name, dimension
        self._disk: Disk = {} if disk is None else disk
        self._rows = self._disk.setdefault(self._key, {})
        self._is_open = False
        self.down = False
        self.has_residue = False

    async def open(self) -> None:
        if self.down:
            self._rows.clear()
            self.down = False
        self._is_open = True

    async def upsert(self, rows: Sequence[VectorRow]) -> None:
        for row in rows:
            self._check(row.vector)
        self._require()
        for row in rows:
            old = self._rows.get((row.owner, row.id))
            self.has_residue |= old is not None and not np.array_equal(old, row.vector)
            self._rows[row.owner, row.id] = row.vector.copy()

    async def query(self, owners: Sequence[str], vector: Vector, limit: int) -> list[VectorHit]:
        if not owners:
            raise ValueError("a query names the owners it may see (P28)")
        self._check(vector)
        self._require()
        hits = [
            VectorHit(id=row_id, owner=owner, cosine=float(each @ vector))
            for (owner, row_id), each in self._rows.items()
            if owner in owners
        ]
        return sorted(hits, key=lambda hit: (-hit.cosine, hit.owner, hit.id))[: max(limit, 0)]

    async def query_other(
        self, name: str, dimension: int, owners: Sequence[str], vector: Vector, limit: int
    ) -> list[VectorHit]:
        self._require()
        if not owners:
            raise ValueError("a query names the owners it may see (P28)")
        if (name, dimension) not in self._disk:
            return []
        other = ExactIndex(dimension=dimension, name=name, disk=self._disk)
        await other.open()
        return await other.query(owners, vector, limit)

    async def drop_others(self) -> None:
        self._require()
        for key in self._disk.keys() - {self._key}:
            del self._disk[key]

    async def delete(self, owner: str, ids: Sequence[str]) -> int:
        self._require()
        gone = [self._rows.pop((owner, each), None) is not None for each in ids]
        self.has_residue |= any(gone)
        return sum(gone)

    async def ids(self, owner: str) -> set[str]:
        self._require()
        return {row_id for of, row_id in self._rows if of == owner}

    async def count(self) -> int:
        self._require()
        return len(self._rows)

    async def erase_residue(self) -> None:
        self._require()
        self.has_residue = False

    async def close(self) -> None:
        self._is_open = False

    def _require(self) -> None:
        if self.down or not self._is_open:
            raise IndexUnavailable("the index is not open")

    def _check(self, vector: Vector) -> None:
        if vector.shape != (self._dimension,):
            raise ValueError(f"this index holds vectors of {self._dimension} dimensions, not {vector.shape}")
        if not np.isfinite(vector).all():
            raise ValueError("a vector must be finite")
