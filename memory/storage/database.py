"""One SQL database of a tenant: reads side by side, writes one at a time.

Rule: never await a model or the network inside `write()`; it holds the only write lock.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from memory.storage.driver import connect

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # what was acknowledged to a transport must survive a power cut
    "busy_timeout=5000",
    "foreign_keys=ON",
    "secure_delete=ON",
    "temp_store=MEMORY",
)

_READERS = 4
_READS: dict[str, Any] = {
    "isolation_level": "AUTOCOMMIT",
    "skip_autocommit_rollback": True,
    "pool_reset_on_return": None,
}
_ALL: dict[str, Any] = {
    "max_overflow": 0,
    "pool_timeout": 60,
    "hide_parameters": True,  # an error in a log must not quote what a person said
}
_PATIENCE_SECONDS = 5.0  # as `busy_timeout`
_LOOK_AGAIN_SECONDS = 0.01


class _Cursor(Protocol):
    def execute(self, statement: str, /) -> object: ...
    def close(self) -> None: ...


class _Direct(AsyncConnection):
    """A plain connection in the shape of the others: its statements run at once, where they are asked for.

    A trip to a driver's thread and back takes longer than a row that is found by its key.
    """

    async def execute(self, statement: sa.Executable, parameters: Any = None, **options: Any) -> sa.CursorResult[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] - its overloads only name the rows' types
        assert self.sync_connection is not None, "it is made with one"
        return self.sync_connection.execute(statement, parameters, **options)


class _Kept:
    """Connections that stay open between uses: making one of a pool's ready costs more than a look-up."""

    def __init__(self, engine: AsyncEngine, most: int, plain: sa.Engine | None = None) -> None:
        """With `plain` they are that engine's, and pass for ones of the other."""
        self._engine = engine
        self._plain = plain
        self._free = asyncio.Semaphore(most)
        self._idle: list[AsyncConnection] = []

    @asynccontextmanager
    async def borrow(self) -> AsyncGenerator[AsyncConnection, None]:
        async with self._free:
            connection = self._idle.pop() if self._idle else await self._connect()
            try:
                yield connection
            except BaseException:
                await connection.close()
                raise
            self._idle.append(connection)

    async def _connect(self) -> AsyncConnection:
        """Open one. Whoever is cancelled meanwhile leaves it to the next: half open it would be lost to the pool."""
        opening = asyncio.ensure_future(self._open())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait([opening])  # a matter of milliseconds
            if opening.exception() is None:
                self._idle.append(opening.result())
            raise

    async def _open(self) -> AsyncConnection:
        if self._plain is None:
            return await self._engine.connect()
        return _Direct(self._engine, self._plain.connect())

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def dispose(self) -> None:
        """Let go of the files, once nobody who shares an engine has a connection of it."""
        await self._engine.dispose()
        if self._plain is not None:
            self._plain.dispose()


class Database:
    """Several engines over one database: the default dialect opens no transaction for a SELECT and a deferred BEGIN
    cannot be upgraded, so writes say BEGIN IMMEDIATE and queue for the single write connection (facts: 240 of 240
    read-modify-writes kept, against 31 of 240 by default). Reads open no transaction at all: each statement sees
    what was committed before it, and a turn saves a dozen hops to the driver's thread.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        searchers = self._engine(pool_size=_READERS, **_READS)
        # `write` always ends its transaction: nothing to reset
        writer = self._engine(pool_size=1, pool_reset_on_return=None)
        if self.is_sqlite:
            event.listen(writer.sync_engine, "begin", _begin)
        self._readers = _Kept(searchers, _READERS, self._plain_engine(_READERS))
        self._searchers = _Kept(searchers, _READERS)
        self._jotter = _Kept(writer, 1, self._plain_engine(1, is_patient=False))
        self._writer = _Kept(writer, 1)
        self._writing = asyncio.Lock()

    @classmethod
    def at(cls, path: Path) -> "Database":
        return cls(f"sqlite+aiosqlite:///{path}")

    def _engine(self, **options: Any) -> AsyncEngine:
        if self.is_sqlite:
            options["connect_args"] = {"async_creator_fn": connect}
        engine = create_async_engine(self.url, **_ALL, **options)
        if self.is_sqlite:
            event.listen(engine.sync_engine, "connect", _prepare)
        return engine

    def _plain_engine(self, most: int, *, is_patient: bool = True) -> sa.Engine | None:
        """For what runs at once; None where the database is not in a file beside us."""
        if not self.is_sqlite:
            return None
        url = sa.make_url(self.url).set(drivername="sqlite")
        engine = sa.create_engine(url, pool_size=most, connect_args={"check_same_thread": False}, **_ALL, **_READS)
        event.listen(engine, "connect", _prepare if is_patient else _prepare_impatient)
        return engine

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection, None]:
        """For what keys find: each statement sees what was committed before it, and runs at once, on the loop."""
        async with self._readers.borrow() as connection:
            yield connection

    @asynccontextmanager
    async def search(self) -> AsyncGenerator[AsyncConnection, None]:
        """As `read`, beside the loop: for what looks through many rows and may take more than a millisecond."""
        async with self._searchers.borrow() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection, None]:
        """One transaction: all or nothing, alone."""
        async with self._writing, self._writer.borrow() as connection, connection.begin():
            yield connection

    @asynccontextmanager
    async def jot(self) -> AsyncGenerator[AsyncConnection, None]:
        """As `write`, for a few rows that keys find: statements run at once, on the loop, and only the disk is waited
        for beside it.
        """
        if not self.is_sqlite:
            async with self.write() as connection:
                yield connection
            return
        async with self._writing, self._jotter.borrow() as connection:
            plain: Any = connection.sync_connection.connection.driver_connection  # pyright: ignore[reportOptionalMemberAccess] - a direct one has it
            await _begin_at_once(plain)
            try:
                yield connection
                await _commit_beside(plain)
            except BaseException:
                plain.rollback()
                raise

    def insert(self, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
        """An INSERT that knows ON CONFLICT, in this database's dialect."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    async def flush_deleted(self) -> None:
        """Leave no byte of deleted rows on disk: the write-ahead log is emptied (secure_delete does the rest)."""
        if not self.is_sqlite:
            return
        async with self._writing, self._writer.borrow() as connection:
            raw = await connection.get_raw_connection()
            driver: Any = raw.driver_connection
            # outside SQLAlchemy's transaction: a checkpoint cannot run inside one
            await driver.commit()
            await driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def close(self) -> None:
        every = (self._readers, self._searchers, self._jotter, self._writer)
        for kept in every:
            await kept.close()
        for kept in every:
            await kept.dispose()


def _begin(connection: Connection) -> None:
    driver: Any = connection.connection.driver_connection
    driver.begin()  # by hand: a statement of SQLAlchemy's is one more trip


async def _begin_at_once(connection: sqlite3.Connection) -> None:
    """Begin to write. While another process does (`merk approve`) the loop goes on, as it would not in the driver."""
    began = time.monotonic()
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() - began > _PATIENCE_SECONDS:
                raise OperationalError("BEGIN IMMEDIATE", None, error) from error
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        else:
            return


async def _commit_beside(connection: sqlite3.Connection) -> None:
    """Commit on another thread; whoever is cancelled meanwhile waits for it, for the connection is in its hands."""
    committing = asyncio.get_running_loop().run_in_executor(None, connection.commit)
    try:
        await asyncio.shield(committing)
    except asyncio.CancelledError:
        await asyncio.wait([committing])  # a matter of milliseconds
        raise
    except sqlite3.Error as error:
        raise OperationalError("COMMIT", None, error) from error


def _prepare(dbapi_connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection: Any = dbapi_connection
    connection.isolation_level = None  # we send BEGIN ourselves
    cursor: _Cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _prepare_impatient(dbapi_connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    _prepare(dbapi_connection, record)
    dbapi_connection.cursor().execute("PRAGMA busy_timeout=0")  # the loop must not stand still: see `_begin_at_once`
