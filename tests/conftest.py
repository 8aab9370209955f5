"""What every test shares: a database of its own, a clock of its own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from memory.storage.database import Database
from memory.storage.tables import metadata
from tests.fakes.clock import FrozenClock


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database, None]:
    """An empty SQLite database in a file, with the schema of today."""
    opened = Database.at(tmp_path / "merk.db")
    async with opened.write() as connection:
        await connection.run_sync(metadata.create_all)
    yield opened
    await opened.close()
