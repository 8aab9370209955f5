"""What every test shares: a database of its own, a clock of its own."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import hypothesis
import pytest

from bot.models.download import ensure_builtin_model
from memory.storage.database import Database
from memory.storage.migrate import migrate
from tests.fakes.clock import FrozenClock

# how long an example takes to be made says something of the machine, nothing of Merk
hypothesis.settings.register_profile("merk", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("merk")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the schema of today and nothing in it, to be copied."""
    path = tmp_path_factory.mktemp("schema") / "merk.db"

    async def make() -> None:
        database = Database.at(path)
        await migrate(database, path, FrozenClock())
        await database.flush_deleted()
        await database.close()

    asyncio.run(make())
    return path


@pytest.fixture
async def database(tmp_path: Path, empty_database: Path) -> AsyncGenerator[Database, None]:
    """An empty SQLite database in a file."""
    shutil.copy(empty_database, tmp_path / "merk.db")
    opened = Database.at(tmp_path / "merk.db")
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def gguf() -> Path:
    """A real chat model, fetched once (93 MB) into MERK_TEST_MODELS or ~/.cache/merk-tests."""
    folder = os.environ.get("MERK_TEST_MODELS") or Path.home() / ".cache" / "merk-tests"

    def ignore(_done: int, _total: int) -> None:
        pass

    return asyncio.run(ensure_builtin_model(Path(folder), ignore))
