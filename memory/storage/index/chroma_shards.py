"""Chroma's collections, synchronously: one per shard of owners, and no text in any of them.

One rule: all of it runs on the one worker thread of `memory.storage.index.chroma`.
"""

import ctypes
import errno
import fcntl
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from zlib import crc32

import numpy as np
import structlog

from memory.ports import Vector, VectorHit, VectorRow
from memory.storage.index import chroma_files as files
from memory.storage.index.chroma_held import Held
from memory.storage.index.chroma_rows import Collection, is_same, key_of, row_id_of, split, vectors_of

log = structlog.get_logger(__name__)

SHARDS: Final = 4
"""A query costs what its shard holds and an erasure rebuilds whole shards, but a loaded shard costs 2 to 4 MB.

Measured with 10,000 rows of 512 dimensions of 50 owners: 4 shards 169 MB in all, 5.0 ms a query and 2.4 s an erasure;
8 shards 181 MB, 4.8 ms and 3.5 s.
"""

_HNSW: Final = {"hnsw": {"space": "cosine", "ef_search": 200, "sync_threshold": 200, "batch_size": 100}}
"""Below 50 the threshold corrupts, at Chroma's 1000 the write log is hardly ever purged (200 collections)."""

_M_MMAP_THRESHOLD: Final = -3  # glibc's malloc.h
_M_ARENA_MAX: Final = -8

_PASSING: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS))

_REBUILT: Final = "-new"
"""Suffix of a shard that is being rebuilt."""


class IndexUnavailable(OSError):  # noqa: N818 - it names a state that passes: open() again, then rebuild from SQL
    """The index cannot be used: closed, damaged, deleted under us, or owned by another process."""


_WIDER = 1.5
"""How many more are looked through than should hold enough of theirs, if they lay among the others evenly."""
_WIDELY = 100


def shard_of(owner: str) -> int:
    return crc32(owner.encode()) % SHARDS


class _Share(NamedTuple):
    """How much of a shard some owners hold, and how much had been written when it was counted."""

    total: int
    written: int
    theirs: int

    @property
    def of_all(self) -> float:
        return self.theirs / self.total


class Shards:
    """The collections of one index in one directory. Ids are unique per owner, so a row's key is both."""

    def __init__(self, directory: Path, *, name: str, dimension: int) -> None:
        self._directory = directory
        self._dimension = dimension
        self._held = Held(dimension)
        self._shares: dict[tuple[int, tuple[str, ...]], _Share] = {}
        self._rows_written: dict[int, int] = {}
        self._prefix = _prefix(name, dimension)
        self._marker = directory / "residue"
        self._lock: int | None = None
        self._client: Any = None
        self._shards: dict[int, Collection] = {}
        self._others: dict[str, Collection | None] = {}
        self._written: set[int] = set()
        self._inode = 0

    # --- life ----------------------------------------------------------------------------------

    def open(self, *, is_trusted: bool) -> None:
        """Open the directory, emptied first if it is not trusted or cannot be used. Raises `OSError`."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        if not is_trusted:
            self._wipe()
        try:
            files.check(self._directory)
            files.remove_orphans(self._directory)
            self._start()
        except Exception as error:  # whatever damage looks like, SQL is the truth and can rebuild
            if _is_passing(error):
                self._stop()
                raise IndexUnavailable(f"{type(error).__name__}: {error}") from error
            log.warning("index.recreated", directory=str(self._directory), error=f"{type(error).__name__}: {error}")
            self._stop()
            self._wipe()
            self._start()

    def close(self) -> None:
        self._stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def require(self) -> None:
        """Refuse to work on files that are gone: Chroma would go on answering from memory."""
        if self._client is None:
            raise IndexUnavailable("the index is not open")
        with suppress(FileNotFoundError):
            if (self._directory / files.DATABASE).stat().st_ino == self._inode:
                return
        raise IndexUnavailable(f"the index in {self._directory} was deleted while it was in use")

    def _wipe(self) -> None:
        """Delete the whole index from disk, every embedder's; needs the lock and no open client."""
        files.wipe(self._directory)
        self._marker.unlink(missing_ok=True)

    def _take_lock(self) -> None:
        """Chroma has no lock of its own, and two processes on one directory corrupt it in silence."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = os.open(self._directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            raise IndexUnavailable(f"another process uses the index in {self._directory}") from None

    def _start(self) -> None:
        _return_large_blocks()
        import chromadb  # noqa: PLC0415 - 0.7 s and 50 MB, paid on the worker thread
        from chromadb.config import Settings  # noqa: PLC0415 - see above

        settings = cast("Any", Settings)(
            _env_file=None,  # a .env in the working directory is none of Chroma's business
            anonymized_telemetry=False,
            chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
        )
        self._client = chromadb.PersistentClient(self._directory, settings=settings)
        self._inode = (self._directory / files.DATABASE).stat().st_ino
        self._shards = {}
        names = self._names()
        for number in range(SHARDS):
            self._recover(number, names)
        files.blank_unused(self._directory)

    def _recover(self, number: int, names: set[str]) -> None:
        """Load a shard; finish or undo a rebuild that a crash cut off: the old one goes only when the new is whole."""
        name = self._name(number)
        rebuilt = name + _REBUILT
        if name in names:
            if rebuilt in names:
                self._client.delete_collection(rebuilt)
                self._mark_stale(number)
            self._shards[number] = self._load(name)
        elif rebuilt in names:
            self._shards[number] = self._load(rebuilt)
            self._shards[number].modify(name=name)

    def _stop(self) -> None:
        self._shards, self._others = {}, {}
        self._held.clear()
        self._written = set()
        if self._client is not None:
            self._client.close()
            self._client = None

    # --- collections ---------------------------------------------------------------------------

    def _name(self, number: int) -> str:
        return f"{self._prefix}{number:02d}"

    def _names(self) -> set[str]:
        return {collection.name for collection in self._client.list_collections()}

    def _load(self, name: str) -> Collection:
        return self._warm(self._client.get_collection(name, embedding_function=None))

    def _create(self, name: str) -> Collection:
        return self._warm(self._client.create_collection(name, embedding_function=None, configuration=_HNSW))

    def _warm(self, collection: object) -> Collection:
        """Query once: it loads the graph, proves it readable, and spares the first write a stall of up to 2.6 s."""
        warm = cast("Collection", collection)
        probe = np.full((1, self._dimension), self._dimension**-0.5, dtype=np.float32)
        warm.query(query_embeddings=probe, n_results=1, include=["distances"])
        return warm

    # --- rows ----------------------------------------------------------------------------------

    def upsert(self, number: int, rows: Sequence[VectorRow]) -> None:
        """Write a few rows of one shard; rows that are there already cost a read."""
        self.require()
        if number not in self._shards:
            self._shards[number] = self._create(self._name(number))
        shard = self._shards[number]
        old = vectors_of(shard, [key_of(row.owner, row.id) for row in rows])
        new = [row for row in rows if not is_same(old.get(key_of(row.owner, row.id)), row.vector)]
        if any(key_of(row.owner, row.id) in old for row in new):
            self._mark_stale(number)
        self._rows_written[number] = self._rows_written.get(number, 0) + len(new)
        if new:
            shard.upsert(
                ids=[key_of(row.owner, row.id) for row in new],
                embeddings=np.stack([row.vector for row in new]),
                metadatas=[{"owner": row.owner} for row in new],
            )
            self._held.put(new)
            if number not in self._written:  # the first write makes the graph's files
                files.blank_unused(self._directory)
                self._written.add(number)

    def query(self, number: int, owners: Sequence[str], vector: Vector, limit: int) -> list[VectorHit]:
        self.require()
        if number not in self._shards:
            return []
        held = self._held.nearest(self._shards[number], owners, vector, limit)
        if held is not None:
            return held
        share = self._share(number, owners)
        if not share.theirs:
            return []
        wide = max(round(limit / share.of_all * _WIDER), _WIDELY)
        if wide < share.theirs:
            # a filter costs 3 to 5 us a row that passes it: 83 ms for 27,500 rows of 33,600, against 4 without
            widely = self._nearest(self._shards[number], vector, wide, where=None)
            hits = [hit for hit in widely if hit.owner in owners][:limit]
            if len(hits) == limit:
                return hits
        return self._nearest(self._shards[number], vector, limit, where={"owner": {"$in": list(owners)}})

    def query_other(
        self, name: str, dimension: int, number: int, owners: Sequence[str], vector: Vector, limit: int
    ) -> list[VectorHit]:
        """As `query`, in another embedder's collection; nothing where there is none."""
        self.require()
        collection = f"{_prefix(name, dimension)}{number:02d}"
        if collection not in self._others:
            is_there = collection in self._names()
            found = self._client.get_collection(collection, embedding_function=None) if is_there else None
            self._others[collection] = cast("Collection | None", found)
        other = self._others[collection]
        return [] if other is None else self._nearest(other, vector, limit, where={"owner": {"$in": list(owners)}})

    def _share(self, number: int, owners: Sequence[str]) -> _Share:
        """How much of a shard is theirs. Counted once, and again when a tenth of it was written since, or anything
        where nothing was theirs.
        """
        asked = (number, tuple(owners))
        written = self._rows_written.get(number, 0)
        known = self._shares.get(asked)
        if known is None or written - known.written > (known.total * 0.1 if known.theirs else 0):
            total = self._shards[number].count()
            theirs = self._shards[number].get(where={"owner": {"$in": list(owners)}}, include=[])["ids"]
            known = self._shares[asked] = _Share(total, written, len(theirs))
        return known

    def _nearest(
        self, shard: Collection, vector: Vector, limit: int, *, where: dict[str, Any] | None
    ) -> list[VectorHit]:
        found = shard.query(query_embeddings=vector[None, :], n_results=limit, where=where, include=["distances"])
        # the key says whose it is: metadata would have to be read from disk
        keys = [split(key) for key in found["ids"][0]]
        return [
            VectorHit(id=row_id, owner=owner, cosine=1.0 - distance)
            for (owner, row_id), distance in zip(keys, found["distances"][0], strict=True)
        ]

    def delete(self, owner: str, ids: Sequence[str]) -> int:
        self.require()
        number = shard_of(owner)
        if number not in self._shards:
            return 0
        shard = self._shards[number]
        there: list[str] = shard.get(ids=[key_of(owner, each) for each in ids], include=[])["ids"]
        if there:
            self._mark_stale(number)
            shard.delete(ids=there)
            self._held.drop(owner, ids)
        return len(there)

    def ids(self, owner: str) -> set[str]:
        self.require()
        shard = self._shards.get(shard_of(owner))
        if shard is None:
            return set()
        keys: list[str] = shard.get(where={"owner": owner}, include=[])["ids"]
        return {row_id_of(owner, key) for key in keys}

    def count(self) -> int:
        self.require()
        return sum(shard.count() for shard in self._shards.values())

    # --- erasure -------------------------------------------------------------------------------

    def stale(self) -> list[int]:
        """Shards that hold bytes of rows that were deleted or overwritten. Survives a restart."""
        self.require()
        with suppress(FileNotFoundError):
            return sorted(int(line) for line in self._marker.read_text().split())
        return []

    def _mark_stale(self, number: int) -> None:
        """Note it on disk before the delete, so that a crash between the two cannot lose the duty to erase."""
        if number in (known := self.stale()):
            return
        with self._marker.open("w") as file:
            file.write("\n".join(map(str, [*known, number])))
            file.flush()
            os.fsync(file.fileno())

    def begin_rebuild(self, number: int) -> list[str]:
        """Create an empty twin of a shard; return the keys to copy."""
        self.require()
        if number not in self._shards:
            return []
        if (twin := self._name(number) + _REBUILT) in self._names():
            self._client.delete_collection(twin)
        keys: list[str] = self._shards[number].get(include=[])["ids"]
        if keys:
            self._create(twin)
        return keys

    def copy(self, number: int, keys: list[str]) -> None:
        self.require()
        rows = self._shards[number].get(ids=keys, include=["embeddings", "metadatas"])
        twin = cast("Collection", self._client.get_collection(self._name(number) + _REBUILT, embedding_function=None))
        twin.upsert(ids=rows["ids"], embeddings=rows["embeddings"], metadatas=rows["metadatas"])

    def end_rebuild(self, number: int) -> None:
        """Put the twin in the shard's place; an empty shard just goes."""
        self.require()
        self._client.delete_collection(self._name(number))
        del self._shards[number]
        self._recover(number, self._names())

    def drop_others(self) -> bool:
        """Drop the collections of other embedders; say whether there were any. `compact` takes them off the disk."""
        self.require()
        others = [name for name in self._names() if not name.startswith(self._prefix)]
        self._others = {}
        for name in others:
            self._client.delete_collection(name)
        return bool(others)

    def compact(self) -> None:
        """Take from the disk what dropped collections left. If that cannot be done, the index goes as a whole."""
        self.require()
        self._stop()
        try:
            files.compact(self._directory)
        except (sqlite3.Error, OSError) as error:
            self._wipe()
            raise IndexUnavailable(f"the index was dropped, as it could not be erased in part: {error}") from error
        self._marker.unlink(missing_ok=True)
        self._start()


def _prefix(name: str, dimension: int) -> str:
    """What the names of an embedder's collections begin with."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "index"
    return f"{slug}-{crc32(name.encode()):08x}-{dimension}-of{SHARDS}-"


def _return_large_blocks() -> None:
    """Let glibc give a closed graph's memory back to the system: else every reopening keeps about a graph's size.

    A fixed threshold does it, because the default one grows with what is freed; it is above the columns that recall
    works on, which were fetched from the system anew at each step otherwise (15 ms a question instead of 7). Chroma's
    threads share two arenas (6 MB less after ten turns). Other C libraries need nothing.
    """
    with suppress(AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, 4 * 1024 * 1024)
        library.mallopt(_M_ARENA_MAX, 2)


def _is_passing(error: Exception) -> bool:
    """Say whether it tells of the process or the machine, not of damage: an executor that is being shut down, a full
    disk, no memory or no file handle left.
    """
    if isinstance(error, RuntimeError):
        return "shutdown" in str(error)
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _PASSING)
