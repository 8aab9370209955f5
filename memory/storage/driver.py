"""aiosqlite with one trip to its thread a statement, where the cursor of the library takes four.

A trip costs a tenth of a millisecond of the event loop's time. Rule: a result is read whole at once; nothing here
streams.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Self

import aiosqlite

Row = tuple[Any, ...]


class Cursor:
    """What SQLAlchemy asks of a cursor; the real one lives and ends within `execute`."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._rows: Iterable[Row] = ()
        self.description: Sequence[Any] | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Self:
        return await self._connection.run(self._execute, statement, parameters)

    async def executemany(self, statement: str, parameters: Iterable[Sequence[Any]]) -> Self:
        return await self._connection.run(self._executemany, statement, parameters)

    async def fetchall(self) -> Iterable[Row]:
        return self._rows

    async def close(self) -> None:
        self._rows = ()

    def _execute(self, connection: sqlite3.Connection, statement: str, parameters: Sequence[Any]) -> Self:
        self._connection.begin_if_due(connection)
        return self._keep(connection.execute(statement, parameters))

    def _executemany(self, connection: sqlite3.Connection, statement: str, parameters: Iterable[Sequence[Any]]) -> Self:
        self._connection.begin_if_due(connection)
        return self._keep(connection.executemany(statement, parameters))

    def _keep(self, cursor: sqlite3.Cursor) -> Self:
        self.description = cursor.description
        self._rows = cursor.fetchall() if cursor.description else ()
        self.rowcount, self.lastrowid = cursor.rowcount, cursor.lastrowid
        cursor.close()
        return self


class Connection(aiosqlite.Connection):
    """A connection whose cursors are ours."""

    _begins = False

    def cursor(self) -> Cursor:  # pyright: ignore[reportIncompatibleMethodOverride] - SQLAlchemy awaits what it gives
        return Cursor(self)

    async def run(self, work: Any, *arguments: Any) -> Any:
        """Do something with the sqlite3 connection, on its own thread."""
        return await self._execute(work, self._conn, *arguments)  # pyright: ignore[reportUnknownMemberType]

    def begin(self) -> None:
        """Begin to write with the next statement, in the same trip."""
        self._begins = True

    def begin_if_due(self, connection: sqlite3.Connection) -> None:
        if self._begins:
            connection.execute("BEGIN IMMEDIATE").close()
            self._begins = False

    async def commit(self) -> None:
        if not self._is_called_off():
            await super().commit()

    async def rollback(self) -> None:
        if not self._is_called_off():
            await super().rollback()

    def _is_called_off(self) -> bool:
        """Say whether a transaction ends before its first statement."""
        begins, self._begins = self._begins, False
        return begins

    def end_with_the_program(self) -> None:
        """As SQLAlchemy asks of the connections that it makes itself."""
        self._thread.daemon = True


def connect(database: str, **options: Any) -> Connection:
    """As `aiosqlite.connect`, to be awaited."""

    def open_it() -> sqlite3.Connection:
        return sqlite3.connect(database, **options)

    connection = Connection(open_it, iter_chunk_size=64)
    connection.end_with_the_program()
    return connection
