"""The keys of the Matrix device go into a backup, and come back only where there are none."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.admin.backup import back_up, restore
from bot.transports.matrix import files
from memory.storage.database import Database
from tests.fakes.clock import FrozenClock


@pytest.fixture
def folder(tmp_path: Path, database: Database) -> Path:
    """A data directory of a Merk that is on Matrix."""
    assert database
    keys = tmp_path / "matrix"
    for name in files.IRREPLACEABLE:
        files.write(keys / name, {"of": name})
    files.write(keys / "sync.json", {"token": "s1"})
    with closing(sqlite3.connect(keys / files.STORE_FILE)) as opened, opened:
        opened.execute("CREATE TABLE accounts (pickle TEXT)")
        opened.execute("INSERT INTO accounts VALUES ('sealed')")
    return tmp_path


async def test_a_new_machine_gets_the_device_back_and_not_where_it_had_read_to(
    folder: Path, clock: FrozenClock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    new = tmp_path_factory.mktemp("new")
    back_up(folder / "merk.db", new / "backup.tar.gz", clock)
    await restore(new / "backup.tar.gz", new, clock)
    for name in files.IRREPLACEABLE:
        assert files.read(new / "matrix" / name) == {"of": name}
        assert (new / "matrix" / name).stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(new / "matrix" / files.STORE_FILE)) as opened:
        assert opened.execute("SELECT pickle FROM accounts").fetchall() == [("sealed",)]
    assert not (new / "matrix" / "sync.json").exists()


async def test_older_keys_never_take_the_place_of_newer_ones(
    folder: Path, clock: FrozenClock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("kept") / "backup.tar.gz"
    back_up(folder / "merk.db", file, clock)
    files.write(folder / "matrix" / files.DEVICE_FILE, {"of": "today"})
    await restore(file, folder, clock)
    assert files.read(folder / "matrix" / files.DEVICE_FILE) == {"of": "today"}
