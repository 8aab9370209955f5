"""The vector index on embedded Chroma: what `memory.ports.VectorIndex` promises, off the event loop.

One rule: Chroma holds the GIL while it writes, so a write is at most 20 rows and the loop runs in between.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import numpy as np

from memory.ports import Vector, VectorHit, VectorRow
from memory.storage.index.chroma_shards import IndexUnavailable, Shards, shard_of

__all__ = ["ChromaIndex", "IndexUnavailable"]

_BATCH: Final = 20
"""Rows a write: about 10 ms with the GIL held (12 to 18 ms in a shard of 3,000)."""

P = ParamSpec("P")
T = TypeVar("T")


class ChromaIndex:
    """One index in one directory, which it owns alone. `name` names the embedder (pitfall P30).

    Every method raises `IndexUnavailable` (an OSError) when the files are gone or damaged or the index is not open;
    then `open()` makes a new, empty index and the caller rebuilds it from SQL. Vectors of another dimension are
    refused with ValueError. Reads run beside writes; writes and erasure wait for each other.
    """

    def __init__(self, directory: Path, *, name: str, dimension: int) -> None:
        self._dimension = dimension
        self._shards = Shards(directory, name=name, dimension=dimension)
        self._worker: ThreadPoolExecutor | None = None
        self._writing = asyncio.Lock()
        self._has_failed = False

    async def open(self) -> None:
        """Open or create the index; an open one that works is left alone. Damaged files are replaced by an empty index.

        After a failure the old files are not trusted any more: they are deleted.
        """
        if self._worker is not None and not self._has_failed:
            return
        await self.close()
        has_failed, self._has_failed = self._has_failed, False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chroma")
        try:
            await self._run(self._shards.open, is_trusted=not has_failed)
        except IndexUnavailable:
            await self.close()
            self._has_failed = has_failed
            raise

    async def close(self) -> None:
        """Release every file; may be called at any time."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.get_running_loop().run_in_executor(worker, self._shards.close)
            worker.shutdown()

    async def upsert(self, rows: Sequence[VectorRow]) -> None:
        for row in rows:
            self._check(row.vector)
        latest = {(row.owner, row.id): row for row in rows}
        by_shard = sorted(latest.values(), key=lambda row: shard_of(row.owner))
        async with self._writing:
            for number, of_shard in groupby(by_shard, key=lambda row: shard_of(row.owner)):
                for batch in _batches(list(of_shard)):
                    await self._run(self._shards.upsert, number, batch)

    async def query(self, owners: Sequence[str], vector: Vector, limit: int) -> list[VectorHit]:
        self._check(vector)
        return await self._best(self._shards.query, owners, vector, limit)

    async def query_other(
        self, name: str, dimension: int, owners: Sequence[str], vector: Vector, limit: int
    ) -> list[VectorHit]:
        _check(vector, dimension)
        return await self._best(partial(self._shards.query_other, name, dimension), owners, vector, limit)

    async def _best(
        self,
        query: Callable[[int, Sequence[str], Vector, int], list[VectorHit]],
        owners: Sequence[str],
        vector: Vector,
        limit: int,
    ) -> list[VectorHit]:
        if not owners:
            raise ValueError("a query names the owners it may see (P28)")
        hits: list[VectorHit] = []
        by_shard = sorted(set(owners), key=shard_of)
        for number, of_shard in groupby(by_shard, key=shard_of):
            if limit > 0:
                hits += await self._run(query, number, list(of_shard), vector, limit)
        return sorted(hits, key=lambda hit: (-hit.cosine, hit.owner, hit.id))[: max(limit, 0)]

    async def delete(self, owner: str, ids: Sequence[str]) -> int:
        async with self._writing:
            return sum(
                [await self._run(self._shards.delete, owner, batch) for batch in _batches(list(dict.fromkeys(ids)))]
            )

    async def ids(self, owner: str) -> set[str]:
        return await self._run(self._shards.ids, owner)

    async def count(self) -> int:
        return await self._run(self._shards.count)

    async def erase_residue(self) -> None:
        """Rebuild the shards that lost rows, without them. Costs nothing when none did.

        Measured: 2 s for a shard of 3,000 rows. Collections of other embedders go too: they may hold what was
        forgotten here, and nothing reads them.
        """
        async with self._writing:
            stale = await self._run(self._shards.stale)
            if not stale:
                return
            for number in stale:
                await self._rebuild(number)
            await self._run(self._shards.drop_others)
            await self._run(self._shards.compact)

    async def drop_others(self) -> None:
        async with self._writing:
            if await self._run(self._shards.drop_others):
                await self._run(self._shards.compact)

    async def _rebuild(self, number: int) -> None:
        keys = await self._run(self._shards.begin_rebuild, number)
        for batch in _batches(keys):
            await self._run(self._shards.copy, number, batch)
        await self._run(self._shards.end_rebuild, number)

    def _check(self, vector: Vector) -> None:
        _check(vector, self._dimension)

    async def _run(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job on the worker; whatever Chroma raises becomes `IndexUnavailable`."""
        if self._worker is None:
            raise IndexUnavailable("the index is not open")

        def guarded() -> T:
            try:
                return job(*args, **kwargs)
            except BaseException as error:  # a panic in Chroma's Rust code is no Exception
                self._has_failed = True
                if isinstance(error, IndexUnavailable):
                    raise
                raise IndexUnavailable(f"{type(error).__name__}: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._worker, guarded)


def _check(vector: Vector, dimension: int) -> None:
    if vector.shape != (dimension,):
        raise ValueError(f"this index holds vectors of {dimension} dimensions, not {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError("a vector must be finite")


def _batches(rows: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]
