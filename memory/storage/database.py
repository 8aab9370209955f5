"""One SQL database of a tenant: reads side by side, writes one at a time.

Rule: never await a model or the network inside `write()`; it holds the only write lock.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from memory.storage.driver import connect, connect_directly

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # what was acknowledged to a transport must survive a power cut
    "busy_timeout=5000",
    "foreign_keys=ON",
    "secure_delete=ON",
    "temp_store=MEMORY",
)

_READERS = 4


class _Cursor(Protocol):
    def execute(self, statement: str, /) -> object: ...
    def close(self) -> None: ...


class _Kept:
    """Connections that stay open between uses: making one of a pool's ready costs more than a look-up."""

    def __init__(self, engine: AsyncEngine, most: int) -> None:
        self._engine = engine
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
        return await self._engine.connect()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()
        await self._engine.dispose()


class Database:
    """Three engines over one database: the default dialect opens no transaction for a SELECT and a deferred BEGIN
    cannot be upgraded, so writes say BEGIN IMMEDIATE and queue for the single write connection (facts: 240 of 240
    read-modify-writes kept, against 31 of 240 by default). Reads open no transaction at all: each statement sees
    what was committed before it, and a turn saves a dozen hops to the driver's thread.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        reads: dict[str, Any] = {
            "isolation_level": "AUTOCOMMIT",
            "skip_autocommit_rollback": True,
            "pool_reset_on_return": None,
        }
        self._readers = _Kept(self._engine(connect_directly, pool_size=_READERS, **reads), _READERS)
        self._searchers = _Kept(self._engine(connect, pool_size=_READERS, **reads), _READERS)
        # `write` always ends its transaction: nothing to reset
        writer = self._engine(connect, pool_size=1, pool_reset_on_return=None)
        if self.is_sqlite:
            event.listen(writer.sync_engine, "begin", _begin)
        self._writer = _Kept(writer, 1)

    @classmethod
    def at(cls, path: Path) -> "Database":
        return cls(f"sqlite+aiosqlite:///{path}")

    def _engine(self, creator: Callable[..., Any], **options: Any) -> AsyncEngine:
        if self.is_sqlite:
            options["connect_args"] = {"async_creator_fn": creator}
        # hide_parameters: an error in a log must not quote what a person said
        engine = create_async_engine(self.url, max_overflow=0, pool_timeout=60, hide_parameters=True, **options)
        if self.is_sqlite:
            event.listen(engine.sync_engine, "connect", _prepare)
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
        async with self._writer.borrow() as connection, connection.begin():
            yield connection

    def insert(self, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
        """An INSERT that knows ON CONFLICT, in this database's dialect."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    async def flush_deleted(self) -> None:
        """Leave no byte of deleted rows on disk: the write-ahead log is emptied (secure_delete does the rest)."""
        if not self.is_sqlite:
            return
        async with self._writer.borrow() as connection:
            raw = await connection.get_raw_connection()
            driver: Any = raw.driver_connection
            # outside SQLAlchemy's transaction: a checkpoint cannot run inside one
            await driver.commit()
            await driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def close(self) -> None:
        for kept in (self._readers, self._searchers, self._writer):
            await kept.close()


def _begin(connection: Connection) -> None:
    driver: Any = connection.connection.driver_connection
    driver.begin()  # by hand: a statement of SQLAlchemy's is one more trip


def _prepare(dbapi_connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection: Any = dbapi_connection
    connection.isolation_level = None  # we send BEGIN ourselves
    cursor: _Cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
