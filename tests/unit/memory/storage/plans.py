"""What SQLite reads to answer what is asked of a connection."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection


@contextmanager
def asked(connection: AsyncConnection) -> Generator[list[tuple[str, Any]]]:
    """The SELECTs that go over a connection meanwhile, with their parameters."""
    statements: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            statements.append((statement, parameters))

    event.listen(connection.sync_connection, "before_cursor_execute", note)
    yield statements
    event.remove(connection.sync_connection, "before_cursor_execute", note)


async def plan(connection: AsyncConnection, statement: str, parameters: Any) -> list[str]:
    """SQLite's steps."""
    rows = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    return [str(row) for row in rows.columns("detail").scalars()]
