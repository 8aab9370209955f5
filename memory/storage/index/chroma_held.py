"""Rows of Chroma's collections that are held in memory: of owners who have few, to be compared exactly.

A query of Chroma takes 2 ms before it looks at the first row; most people have some hundred rows, which one product
answers. Rule: whoever writes to a collection writes here too, and what cannot be said is dropped and read again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.ports import Vector, VectorHit, VectorRow
from memory.storage.index.chroma_rows import Collection, row_id_of

MOST: Final = 4000
"""Rows of one owner: 8 MB. Of more, Chroma's graph finds the nearest sooner."""
_MOST_OWNERS: Final = 1000
_MOST_ROWS: Final = 8 * MOST
"""Of all owners together; those used longest ago go first."""


@dataclass(frozen=True, slots=True)
class _Rows:
    ids: tuple[str, ...]
    vectors: NDArray[np.float32]
    """Of length one, a row each."""

    def without(self, ids: set[str]) -> "_Rows":
        kept = [at for at, row_id in enumerate(self.ids) if row_id not in ids]
        return _Rows(tuple(self.ids[at] for at in kept), self.vectors[kept])


class Held:
    """Of every owner that was asked for: all their rows, or that they are too many."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._of: OrderedDict[str, _Rows | None] = OrderedDict()
        """None: they are too many."""

    def clear(self) -> None:
        self._of.clear()

    def nearest(self, shard: Collection, owners: Sequence[str], vector: Vector, limit: int) -> list[VectorHit] | None:
        """The nearest rows of all of them, best first; None where somebody has too many."""
        hits: list[VectorHit] = []
        asked = _unit(vector)
        for owner in owners:
            rows = self._rows(shard, owner)
            if rows is None:
                return None
            cosines = rows.vectors @ asked
            least = np.partition(cosines, -limit)[-limit] if limit < len(cosines) else -np.inf
            best: list[int] = np.flatnonzero(cosines >= least).tolist()
            hits += [VectorHit(id=rows.ids[at], owner=owner, cosine=float(cosines[at])) for at in best]
        return sorted(hits, key=lambda hit: (-hit.cosine, hit.owner, hit.id))[:limit]

    def put(self, rows: Sequence[VectorRow]) -> None:
        """These rows were written."""
        for owner in {row.owner for row in rows}:
            held = self._of.get(owner)
            if held is None:  # not asked for yet, or too many anyway
                continue
            new = {row.id: _unit(row.vector) for row in rows if row.owner == owner}
            others = held.without(set(new))
            vectors = np.concatenate([others.vectors, np.stack(list(new.values()))])
            self._of[owner] = _Rows((*others.ids, *new), vectors) if len(vectors) <= MOST else None

    def drop(self, owner: str, ids: Sequence[str]) -> None:
        """These rows were deleted."""
        held = self._of.get(owner)
        if held is None:
            self._of.pop(owner, None)
        else:
            self._of[owner] = held.without(set(ids))

    def _rows(self, shard: Collection, owner: str) -> _Rows | None:
        if owner not in self._of:
            self._of[owner] = self._read(shard, owner)
            while len(self._of) > _MOST_OWNERS or sum(len(rows.ids) for rows in self._of.values() if rows) > _MOST_ROWS:
                self._of.popitem(last=False)
        self._of.move_to_end(owner)
        return self._of[owner]

    def _read(self, shard: Collection, owner: str) -> _Rows | None:
        found = shard.get(where={"owner": owner}, limit=MOST + 1, include=["embeddings"])
        keys: list[str] = found["ids"]
        if len(keys) > MOST:
            return None
        vectors = np.asarray(found["embeddings"], dtype=np.float32).reshape(len(keys), self._dimension)
        return _Rows(tuple(row_id_of(owner, key) for key in keys), _unit(vectors))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """With length one each; what has none is like nothing."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
