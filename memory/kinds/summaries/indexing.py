"""Vectors of sessions: a few a session in the vector index, kept in step with SQL from here alone.

Rule: the index may fail or be lost at any time. Then it is opened again and caught up; nothing waits for it.
"""

import asyncio
from collections.abc import Callable, Sequence

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.summaries.store import Indexed, index_words, with_views
from memory.ports import Embedder, EmbedderError, Vector, VectorIndex, VectorRow
from memory.storage import lexical
from memory.storage.database import Database
from memory.storage.tables import summaries

Progress = Callable[[int, int], None]
"""(done, total)"""

_BATCH = 20

log = structlog.get_logger(__name__)


class SummaryIndex:
    """The one user of the vector index."""

    def __init__(self, database: Database, vectors: VectorIndex, embedder: Embedder) -> None:
        self._database = database
        self._vectors = vectors
        self._embedder = embedder
        self._writing = asyncio.Lock()  # between a look at SQL and the write that follows from it
        self.is_open = False
        self.embedder_answers = True

    @property
    def name(self) -> str:
        """Which embedder made the vectors: `indexed_as` of a row that is in step."""
        return f"{self._embedder.name}:{self._embedder.dimension}"

    async def open(self) -> bool:
        """Open the index and compare it with SQL. False = it stays closed for now."""
        try:
            await self._vectors.open()
            self.is_open = True
            await self._reconcile()
        except OSError as error:
            self._lost(error)
        return self.is_open

    async def nearest(self, owners: Sequence[str], vector: Vector, limit: int) -> dict[int, float]:
        """Session -> cosine of its nearest view, among the `limit` nearest views. Raises OSError."""
        if not self.is_open:
            raise OSError("the vector index is closed")
        try:
            hits = await self._vectors.query(owners, vector, limit)
        except OSError as error:
            self._lost(error)
            raise
        found: dict[int, float] = {}
        for hit in hits:  # best first
            found.setdefault(_session_of(hit.id), hit.cosine)
        return found

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Embed what is not in step, in batches; return how many were. Stops when a part does not answer."""
        if not self.is_open and not await self.open():
            return 0
        total = await self.behind()
        done = 0
        try:
            while batch := await self._next_batch():
                done += await self._embed(batch)
                if progress:
                    progress(done, total)
        except EmbedderError as error:
            self.embedder_answers = False
            log.warning("summaries.not_embedded", error=type(error).__name__, waiting=total - done)
        except OSError as error:
            self._lost(error)
        return done

    async def behind(self) -> int:
        """How many summaries have no vector of this embedder yet."""
        async with self._database.read() as connection:
            query = sa.select(sa.func.count()).select_from(summaries).where(self._is_behind())
            return int((await connection.execute(query)).scalar_one())

    async def drop(self, owner: str, session_ids: Sequence[int]) -> int:
        """Remove vectors for good, and whatever else of this owner has no summary; return how many there were.

        Raises OSError, also when some are still there afterwards.
        """
        if not self.is_open:
            raise OSError("the vector index is closed")
        try:
            async with self._writing:
                gone = await self._delete(owner, await self._ids_of(owner, session_ids))
                gone += await self._delete(owner, await self._orphans(owner))
                await self._vectors.erase_residue()
                await self._check_gone(owner, session_ids)
                # one of them may have been learned and embedded again meanwhile: that vector is gone, too
                async with self._database.write() as connection:
                    again = summaries.c.session_id.in_(session_ids)
                    await connection.execute(summaries.update().where(again).values(indexed_as=None))
                return gone
        except OSError as error:
            self._lost(error)
            raise

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Everything derived, from SQL. Raises OSError and EmbedderError: a rebuild that is half done says so."""
        async with self._database.write() as connection:
            await rebuild_words(connection)
            await connection.execute(summaries.update().values(indexed_as=None))
        await self._vectors.open()
        self.is_open = True
        await self._reconcile()
        total, done = await self.behind(), 0
        while batch := await self._next_batch():
            done += await self._embed(batch)
            if progress:
                progress(done, total)
        await self._vectors.erase_residue()
        return done

    async def _reconcile(self) -> None:
        """After opening: what the index lost is embedded again, what SQL does not have goes."""
        async with self._database.read() as connection:
            owners = list((await connection.execute(sa.select(summaries.c.owner).distinct())).scalars())
        for owner in owners:
            held = {_session_of(each) for each in await self._vectors.ids(owner)}
            async with self._database.write() as connection:
                query = sa.select(summaries.c.session_id).where(
                    summaries.c.owner == owner, summaries.c.indexed_as == self.name
                )
                lost = sorted(set((await connection.execute(query)).scalars()) - held)
                await connection.execute(
                    summaries.update().where(summaries.c.session_id.in_(lost)).values(indexed_as=None)
                )
            await self._delete(owner, await self._orphans(owner))
        await self._vectors.erase_residue()

    async def _check_gone(self, owner: str, session_ids: Sequence[int]) -> None:
        if await self._ids_of(owner, session_ids):
            raise OSError("the vector index kept what it was told to delete")

    async def _delete(self, owner: str, ids: list[str]) -> int:
        return await self._vectors.delete(owner, ids) if ids else 0

    async def _orphans(self, owner: str) -> list[str]:
        async with self._database.read() as connection:
            query = sa.select(summaries.c.session_id).where(summaries.c.owner == owner)
            known = set((await connection.execute(query)).scalars())
        return sorted(each for each in await self._vectors.ids(owner) if _session_of(each) not in known)

    async def _ids_of(self, owner: str, session_ids: Sequence[int]) -> list[str]:
        wanted = set(session_ids)
        return sorted(each for each in await self._vectors.ids(owner) if _session_of(each) in wanted)

    async def _next_batch(self) -> list[Indexed]:
        async with self._database.read() as connection:
            return await with_views(connection, self._is_behind(), _BATCH)

    async def _embed(self, batch: list[Indexed]) -> int:
        vectors = [await self._embedder.embed_documents(row.views) for row in batch]
        self.embedder_answers = True
        async with self._writing:
            # a row may have been forgotten or rewritten while it was being embedded, or is so during the upsert
            async with self._database.read() as connection:
                current = await _still(connection, batch)
            pairs = [(row, vector) for row, vector in zip(batch, vectors, strict=True) if row in current]
            for row, of_row in pairs:
                rows = [VectorRow(_id(row, i), row.owner, vector) for i, vector in enumerate(of_row)]
                held = await self._ids_of(row.owner, [row.session_id])
                await self._delete(row.owner, sorted(set(held) - {each.id for each in rows}))
                await self._vectors.upsert(rows)
            async with self._database.write() as connection:
                done = [row.session_id for row in current & await _still(connection, batch)]
                await connection.execute(
                    summaries.update().where(summaries.c.session_id.in_(done)).values(indexed_as=self.name)
                )
        return len(done)

    def _is_behind(self) -> sa.ColumnElement[bool]:
        return sa.or_(summaries.c.indexed_as.is_(None), summaries.c.indexed_as != self.name)

    def _lost(self, error: OSError) -> None:
        self.is_open = False
        log.warning("summaries.index_lost", error=type(error).__name__)


async def rebuild_words(connection: AsyncConnection) -> None:
    """Fill the word index from SQL."""
    await lexical.clear(connection)
    for session_id in (await connection.execute(sa.select(summaries.c.session_id))).scalars().all():
        await index_words(connection, session_id)
    await lexical.optimize(connection)


async def _still(connection: AsyncConnection, batch: Sequence[Indexed]) -> set[Indexed]:
    which = summaries.c.session_id.in_([row.session_id for row in batch])
    return set(batch) & set(await with_views(connection, which))


def _id(row: Indexed, view: int) -> str:
    return f"{row.session_id}.{view}"


def _session_of(vector_id: str) -> int:
    return int(vector_id.partition(".")[0])
