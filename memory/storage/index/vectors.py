"""Vectors kept in step with SQL: of every kind of memory that has some, in one index, from here alone.

Rule: the index may fail or be lost at any time. Then it is opened again and caught up; nothing waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.ports import Embedder, EmbedderError, Vector, VectorIndex, VectorRow
from memory.storage.database import Database
from memory.storage.index.serving import Serving, key_of

Progress = Callable[[int, int], None]
"""(done, total)"""

_BATCH = 20

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A row as the indexes know it."""

    row_id: int
    owner: str
    views: tuple[str, ...]
    """The texts under which it is found: one vector each."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of memory whose rows have vectors: its table with `owner` and `indexed_as`, and how its rows read."""

    name: str
    key: sa.Column[int]
    prefix: str
    """Before the owner in the index: kinds never mix there."""
    with_views: Callable[[AsyncConnection, sa.ColumnElement[bool], int | None], Awaitable[list[Indexed]]]
    is_live: Callable[[], sa.ColumnElement[bool]] = sa.true
    """Which rows are to be found at all, now."""

    @property
    def table(self) -> sa.Table:
        assert isinstance(self.key.table, sa.Table)
        return self.key.table

    def owner_of(self, owner: str) -> str:
        return self.prefix + owner


class Vectors:
    """The one user of the vector index. A call names the kind whose rows it means."""

    def __init__(
        self,
        database: Database,
        vectors: VectorIndex,
        embedder: Embedder,
        kinds: Sequence[Kind],
        serving: Serving | None = None,
    ) -> None:
        self._database = database
        self._vectors = vectors
        self._embedder = embedder
        self._serving = serving or Serving(database, embedder)
        self._kinds = tuple(kinds)
        self._writing = asyncio.Lock()  # between a look at SQL and the write that follows from it
        self.is_open = False
        self.embedder_answers = True

    @property
    def name(self) -> str:
        """Which embedder made the vectors: `indexed_as` of a row that is in step."""
        return key_of(self._embedder)

    async def open(self) -> bool:
        """Open the index and compare it with SQL. False = it stays closed for now."""
        try:
            await self._vectors.open()
            self.is_open = True
            await self._reconcile()
        except OSError as error:
            self._lost(error)
        return self.is_open

    async def nearest(self, kind: Kind, owners: Sequence[str], vector: Vector, limit: int) -> dict[int, float]:
        """Row -> cosine of its nearest view, among the `limit` nearest views. Raises OSError."""
        self._require()
        serving = self._serving
        if len(vector) != serving.dimension:
            raise OSError("the embedder changed while it was asked")
        keys = [kind.owner_of(owner) for owner in owners]
        try:
            if serving.is_former:
                hits = await self._vectors.query_other(serving.name, serving.dimension, keys, vector, limit)
            else:
                hits = await self._vectors.query(keys, vector, limit)
        except OSError as error:
            self._lost(error)
            raise
        found: dict[int, float] = {}
        for hit in hits:  # best first
            found.setdefault(_row_of(hit.id), hit.cosine)
        return found

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Embed what is not in step, in batches; return how many rows were. Stops when a part does not answer."""
        if not self.is_open and not await self.open():
            return 0
        total = await self.behind()
        done = 0
        try:
            for kind in self._kinds:
                while batch := await self._next_batch(kind):
                    done += await self._embed(kind, batch)
                    if progress:
                        progress(done, total)
        except EmbedderError as error:
            self.embedder_answers = False
            log.warning("vectors.not_embedded", error=type(error).__name__, waiting=total - done)
        except OSError as error:
            self._lost(error)
        return done

    async def behind(self) -> int:
        """How many rows have no vector of this embedder yet."""
        total = 0
        async with self._database.search() as connection:
            for kind in self._kinds:
                query = sa.select(sa.func.count()).select_from(kind.table).where(self._is_behind(kind))
                total += int((await connection.execute(query)).scalar_one())
        return total

    async def made_by(self) -> dict[str | None, int]:
        """How many rows that are to be found are in step with which embedder's key; None: with none yet."""
        found: dict[str | None, int] = {}
        async with self._database.search() as connection:
            for kind in self._kinds:
                indexed_as = kind.table.c.indexed_as
                query = sa.select(indexed_as, sa.func.count()).where(kind.is_live()).group_by(indexed_as)
                for key, count in (await connection.execute(query)).all():
                    found[key] = found.get(key, 0) + int(count)
        return found

    async def drop_others(self) -> None:
        """Remove the vectors of other embedders. Raises OSError."""
        self._require()
        try:
            await self._vectors.drop_others()
        except OSError as error:
            self._lost(error)
            raise

    async def drop(self, kind: Kind, owner: str, row_ids: Sequence[int]) -> int:
        """Remove vectors for good, and whatever else of this owner and kind has no row; return how many there were.

        Raises OSError, also when some are still there afterwards.
        """
        self._require()
        try:
            async with self._writing:
                gone = await self._delete(kind, owner, await self._ids_of(kind, owner, row_ids))
                gone += await self._delete(kind, owner, await self._orphans(kind, owner))
                await self._vectors.erase_residue()
                await self._check_gone(kind, owner, row_ids)
                # one of them may have been learned and embedded again meanwhile: that vector is gone, too
                async with self._database.write() as connection:
                    await connection.execute(kind.table.update().where(kind.key.in_(row_ids)).values(indexed_as=None))
                return gone
        except OSError as error:
            self._lost(error)
            raise

    async def rebuild(self, progress: Progress | None = None) -> int:
        """All vectors, from SQL. Raises OSError and EmbedderError: a rebuild that is half done says so."""
        async with self._database.write() as connection:
            for kind in self._kinds:
                await connection.execute(kind.table.update().values(indexed_as=None))
        await self._vectors.open()
        self.is_open = True
        await self._reconcile()
        total, done = await self.behind(), 0
        for kind in self._kinds:
            while batch := await self._next_batch(kind):
                done += await self._embed(kind, batch)
                if progress:
                    progress(done, total)
        await self._vectors.erase_residue()
        await self._vectors.drop_others()
        return done

    async def _reconcile(self) -> None:
        """After opening: what the index lost is embedded again, what SQL does not have goes."""
        for kind in self._kinds:
            owner_column = kind.table.c.owner
            async with self._database.search() as connection:
                owners = list((await connection.execute(sa.select(owner_column).distinct())).scalars())
            for owner in owners:
                held = {_row_of(each) for each in await self._vectors.ids(kind.owner_of(owner))}
                async with self._database.write() as connection:
                    in_step = owner_column == owner, kind.table.c.indexed_as == self.name
                    lost = set((await connection.execute(sa.select(kind.key).where(*in_step))).scalars()) - held
                    await connection.execute(
                        kind.table.update().where(kind.key.in_(sorted(lost))).values(indexed_as=None)
                    )
                await self._delete(kind, owner, await self._orphans(kind, owner))
        await self._vectors.erase_residue()

    async def _check_gone(self, kind: Kind, owner: str, row_ids: Sequence[int]) -> None:
        if await self._ids_of(kind, owner, row_ids):
            raise OSError("the vector index kept what it was told to delete")

    async def _delete(self, kind: Kind, owner: str, ids: list[str]) -> int:
        return await self._vectors.delete(kind.owner_of(owner), ids) if ids else 0

    async def _orphans(self, kind: Kind, owner: str) -> list[str]:
        async with self._database.search() as connection:
            query = sa.select(kind.key).where(kind.table.c.owner == owner, kind.is_live())
            known = set((await connection.execute(query)).scalars())
        return sorted(each for each in await self._vectors.ids(kind.owner_of(owner)) if _row_of(each) not in known)

    async def _ids_of(self, kind: Kind, owner: str, row_ids: Sequence[int]) -> list[str]:
        wanted = set(row_ids)
        return sorted(each for each in await self._vectors.ids(kind.owner_of(owner)) if _row_of(each) in wanted)

    async def _next_batch(self, kind: Kind) -> list[Indexed]:
        async with self._database.search() as connection:
            return await kind.with_views(connection, self._is_behind(kind), _BATCH)

    async def _embed(self, kind: Kind, batch: list[Indexed]) -> int:
        made = iter(await self._embedder.embed_documents([view for row in batch for view in row.views]))
        vectors = [[next(made) for _ in row.views] for row in batch]
        self.embedder_answers = True
        async with self._writing:
            # a row may have been forgotten or rewritten while it was being embedded, or is so during the upsert
            async with self._database.search() as connection:
                current = await _still(connection, kind, batch)
            pairs = [(row, vector) for row, vector in zip(batch, vectors, strict=True) if row in current]
            for owner in dict.fromkeys(row.owner for row, _ in pairs):
                of_owner = [(row, of_row) for row, of_row in pairs if row.owner == owner]
                rows = [
                    VectorRow(_id(row, i), kind.owner_of(owner), vector)
                    for row, of_row in of_owner
                    for i, vector in enumerate(of_row)
                ]
                held = await self._ids_of(kind, owner, [row.row_id for row, _ in of_owner])
                await self._delete(kind, owner, sorted(set(held) - {each.id for each in rows}))
                await self._vectors.upsert(rows)
            async with self._database.write() as connection:
                done = [row.row_id for row in current & await _still(connection, kind, batch)]
                await connection.execute(kind.table.update().where(kind.key.in_(done)).values(indexed_as=self.name))
        return len(done)

    def _is_behind(self, kind: Kind) -> sa.ColumnElement[bool]:
        indexed_as = kind.table.c.indexed_as
        return sa.and_(kind.is_live(), sa.or_(indexed_as.is_(None), indexed_as != self.name))

    def _require(self) -> None:
        if not self.is_open:
            raise OSError("the vector index is closed")

    def _lost(self, error: OSError) -> None:
        self.is_open = False
        log.warning("vectors.index_lost", error=type(error).__name__)


async def _still(connection: AsyncConnection, kind: Kind, batch: Sequence[Indexed]) -> set[Indexed]:
    which = sa.and_(kind.is_live(), kind.key.in_([row.row_id for row in batch]))
    return set(batch) & set(await kind.with_views(connection, which, None))


def _id(row: Indexed, view: int) -> str:
    return f"{row.row_id}.{view}"


def _row_of(vector_id: str) -> int:
    return int(vector_id.partition(".")[0])


class OfKind:
    """The vectors of one kind."""

    def __init__(self, vectors: Vectors, kind: Kind) -> None:
        self._vectors = vectors
        self._kind = kind

    async def nearest(self, owners: Sequence[str], vector: Vector, limit: int) -> dict[int, float]:
        """As `Vectors.nearest`."""
        return await self._vectors.nearest(self._kind, owners, vector, limit)

    async def drop(self, owner: str, row_ids: Sequence[int]) -> int:
        """As `Vectors.drop`."""
        return await self._vectors.drop(self._kind, owner, row_ids)
