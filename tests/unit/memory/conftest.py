"""Databases of memory's tests come from the migrations: with the word index, and as a person's own."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory.storage.database import Database
from memory.storage.migrate import migrate
from tests.fakes.clock import FrozenClock
from tests.unit.memory.world import World


@pytest.fixture(scope="session")
def _migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database to copy: the migrations run once."""
    path = tmp_path_factory.mktemp("migrated") / "merk.db"
    with ThreadPoolExecutor(1) as thread:  # away from the loop of whatever test comes first
        thread.submit(asyncio.run, _make(path)).result()
    return path


async def _make(path: Path) -> None:
    database = Database.at(path)
    await migrate(database, path, FrozenClock())
    await database.flush_deleted()
    await database.close()


@pytest.fixture
async def database(tmp_path: Path, _migrated: Path) -> AsyncGenerator[Database, None]:
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(_migrated, folder / "merk.db")
    opened = Database.at(folder / "merk.db")
    yield opened
    await opened.close()


@pytest.fixture
async def world(database: Database, tmp_path: Path, clock: FrozenClock) -> World:
    made = World(tmp_path / "data", database, clock)
    await made.memory.open()
    return made
