"""Backup and restore: all the truth in one file, and a restore that fails changes nothing."""

import asyncio
import gzip
import io
import shutil
import sqlite3
import sys
import tarfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from bot.admin.backup import back_up, restore
from bot.errors import CommandError
from memory.storage.backups import KEPT, backups_of, remove_old_backups
from memory.storage.database import Database
from memory.storage.migrate import HEAD
from tests.fakes.clock import FrozenClock
from tests.fakes.disk import files_under
from tests.unit.memory.world import World

WRITE = """
import sqlite3, sys, time
opened = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
opened.execute("PRAGMA journal_mode = WAL")
for number in range(1, 100_000):
    opened.execute("BEGIN IMMEDIATE")
    for table in ("first", "second"):
        opened.execute(f"INSERT INTO {table} VALUES (?, ?)", (number, "x" * 2000))
    opened.execute("COMMIT")
    if number == 20:
        print("busy", flush=True)
"""


@pytest.fixture
def data(tmp_path: Path, empty_database: Path) -> Path:
    """A data directory with a fact in it, and an index."""
    folder = tmp_path / "data"
    (folder / "chroma").mkdir(parents=True)
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"vectors")
    shutil.copy(empty_database, folder / "merk.db")
    tell(folder, "The first truth")
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "monday.tar.gz"


def tell(folder: Path, text: str) -> None:
    with closing(sqlite3.connect(folder / "merk.db")) as opened, opened:
        opened.execute(
            "INSERT INTO facts (owner, scope, speaker, text, content_hash, valid_from, created_at) "
            "VALUES ('u1', 'private', 'Ada', ?, ?, 1, 1)",
            (text, text),
        )


def told(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as opened:
        return [row[0] for row in opened.execute("SELECT text FROM facts ORDER BY id")]


def every_byte(folder: Path) -> dict[str, bytes]:
    """What is in a directory, but for SQLite's own shared memory."""
    return {
        str(path.relative_to(folder)): content
        for path, content in files_under(folder)
        if not path.name.endswith("-shm")
    }


def archive_of(file: Path, *, member: str = "merk.db", content: bytes) -> None:
    with tarfile.open(file, "w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))


@asynccontextmanager
async def writer(database: Path) -> AsyncGenerator[None, None]:
    """Another process that never stops writing."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITE, str(database), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"busy\n"
    try:
        yield
    finally:
        process.kill()
        await process.wait()


# --- backup --------------------------------------------------------------------------------------


async def test_a_backup_beside_a_writer_is_of_one_instant(data: Path, file: Path, clock: FrozenClock) -> None:
    with closing(sqlite3.connect(data / "merk.db")) as opened:
        opened.executescript("CREATE TABLE first (a, b); CREATE TABLE second (a, b);")
    async with writer(data / "merk.db"):
        await asyncio.to_thread(back_up, data / "merk.db", file, clock)
    other = data.with_name("other")
    other.mkdir()
    await restore(file, other, clock)
    with closing(sqlite3.connect(other / "merk.db")) as opened:
        first, second = (
            opened.execute(f"SELECT count(*), max(a) FROM {name}").fetchone() for name in ("first", "second")
        )
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert first == second
    assert first[0] == first[1] >= 20
    assert told(other / "merk.db") == ["The first truth"]


def test_a_backup_is_for_its_owner_and_leaves_nothing_else(data: Path, file: Path, clock: FrozenClock) -> None:
    back_up(data / "merk.db", file, clock)
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["data", file.name]
    with tarfile.open(file) as archive:
        assert archive.getnames() == ["manifest.json", "merk.db"]
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        assert manifest.read() == f'{{"made_at": "2026-03-01T12:00:00+00:00", "revision": "{HEAD}"}}'.encode()


def test_a_backup_never_replaces_a_file(data: Path, file: Path, clock: FrozenClock) -> None:
    file.write_text("precious")
    for target in (file, data):
        with pytest.raises(CommandError, match="is there already"):
            back_up(data / "merk.db", target, clock)
    assert file.read_text() == "precious"


def test_what_cannot_be_backed_up_says_why_and_leaves_no_file(data: Path, file: Path, clock: FrozenClock) -> None:
    with pytest.raises(CommandError, match=r"nothing to back up: .*gone"):
        back_up(data / "gone" / "merk.db", file, clock)
    with pytest.raises(CommandError, match=r"There is no folder .*nowhere"):
        back_up(data / "merk.db", file.parent / "nowhere" / "x.tar.gz", clock)
    (data / "merk.db").write_bytes(b"no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(CommandError, match=r"cannot be read .*`merk doctor`"):
        back_up(data / "merk.db", file, clock)
    assert [path.name for path in file.parent.iterdir()] == ["data"]


# --- restore -------------------------------------------------------------------------------------


async def test_a_restore_brings_back_what_was_there_and_keeps_what_is_replaced(
    data: Path, file: Path, clock: FrozenClock
) -> None:
    back_up(data / "merk.db", file, clock)
    tell(data, "A later truth")
    replaced = await restore(file, data, clock)
    assert told(data / "merk.db") == ["The first truth"]
    assert (data / "merk.db").stat().st_mode & 0o777 == 0o600
    assert not (data / "chroma").exists(), "derived: the next start makes it anew"
    assert replaced is not None
    assert told(replaced) == ["The first truth", "A later truth"]
    assert replaced.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in data.iterdir()) == ["backups", "merk.db"]


async def test_what_was_replaced_goes_after_a_week_like_every_copy(data: Path, file: Path, clock: FrozenClock) -> None:
    back_up(data / "merk.db", file, clock)
    replaced = [await restore(file, data, clock) for _ in range(2)]
    assert [copy.path for copy in backups_of(data / "merk.db")] == sorted(path for path in replaced if path)
    assert remove_old_backups(data / "merk.db", clock.now()) == []
    assert len(remove_old_backups(data / "merk.db", clock.now() + KEPT)) == 2
    assert list((data / "backups").iterdir()) == []


async def test_a_forget_names_the_copy_that_a_restore_kept(
    tmp_path: Path, empty_database: Path, file: Path, clock: FrozenClock
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(empty_database, data / "merk.db")
    back_up(data / "merk.db", file, clock)
    await restore(file, data, clock)
    world = World(data, Database.at(data / "merk.db"), clock)
    await world.memory.open()
    ada = await world.person("ada")
    fact = await world.fact(ada, "My dog is called Bruno")
    receipt = await world.memory.forget_facts(ada, [fact.id])
    assert receipt.backups == ("merk-before-restore-2026-03-01.db (2026-03-08)",)
    await world.database.close()


async def test_every_summary_is_embedded_again_after_a_restore(
    tmp_path: Path, empty_database: Path, file: Path, clock: FrozenClock
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(empty_database, data / "merk.db")
    world = World(data, Database.at(data / "merk.db"), clock)
    await world.memory.open()
    ada = await world.person("ada")
    await world.talk(ada, "We are planning a trip to Riga", "Very well.")
    await world.memory.learn()
    await world.database.close()
    back_up(data / "merk.db", file, clock)
    await restore(file, data, clock)
    reborn = World(data, Database.at(data / "merk.db"), clock)
    await reborn.memory.open()
    assert [row["indexed_as"] for row in await reborn.rows("summaries")] == [None]
    assert await reborn.memory.learn() == 0
    assert len(await reborn.vectors.ids(ada.owner)) >= 1
    await reborn.database.close()


async def test_a_copy_that_merk_took_can_be_restored_as_it_is(data: Path, file: Path, clock: FrozenClock) -> None:
    back_up(data / "merk.db", file, clock)
    tell(data, "A later truth")
    replaced = await restore(file, data, clock)
    assert replaced is not None
    await restore(replaced, data, clock)
    assert told(data / "merk.db") == ["The first truth", "A later truth"]


async def test_a_restore_into_an_empty_directory_keeps_nothing(data: Path, file: Path, clock: FrozenClock) -> None:
    back_up(data / "merk.db", file, clock)
    other = data.with_name("other")
    other.mkdir()
    assert await restore(file, other, clock) is None
    assert [path.name for path in other.iterdir()] == ["merk.db"]


async def test_a_damaged_database_is_replaced_and_kept_as_it_is(data: Path, file: Path, clock: FrozenClock) -> None:
    back_up(data / "merk.db", file, clock)
    garbage = b"no database at all, but long enough to be taken for one" * 20
    (data / "merk.db").write_bytes(garbage)
    replaced = await restore(file, data, clock)
    assert told(data / "merk.db") == ["The first truth"]
    assert replaced is not None
    assert replaced.read_bytes() == garbage
    assert [copy.path for copy in backups_of(data / "merk.db")] == [replaced]
    assert [path.name for path in (data / "backups").iterdir()] == [replaced.name]


def _cut(file: Path, good: bytes) -> None:
    archive_of(file, content=good)
    file.write_bytes(file.read_bytes()[:-2000])


def _flipped(file: Path, good: bytes) -> None:
    damaged = bytearray(good)
    for page in range(1, len(damaged) // 4096):
        damaged[page * 4096 : page * 4096 + 40] = b"\xff" * 40
    archive_of(file, content=bytes(damaged))


def _noise(file: Path, good: bytes) -> None:
    file.write_bytes(good[100:5000])


def _other_archive(file: Path, good: bytes) -> None:
    archive_of(file, member="holiday.jpg", content=good)


def _zipped_noise(file: Path, good: bytes) -> None:
    file.write_bytes(gzip.compress(good[:100]))


def _foreign(file: Path, good: bytes) -> None:
    del good
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute("CREATE TABLE places (id INTEGER, url TEXT)")


def _of_schema(revision: str | None) -> Callable[[Path, bytes], None]:
    def make(file: Path, good: bytes) -> None:
        database = file.with_name("other.db")
        database.write_bytes(good)
        with closing(sqlite3.connect(database)) as opened, opened:
            opened.execute("DELETE FROM alembic_version")
            if revision:
                opened.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
        archive_of(file, content=database.read_bytes())

    return make


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_cut, "is not a whole backup of Merk"),
        (_flipped, "damaged|not a whole backup"),
        (_noise, "is not a whole backup of Merk"),
        (_zipped_noise, "is not a whole backup of Merk"),
        (_other_archive, "is not a whole backup of Merk"),
        (_foreign, "is a database, but not of Merk"),
        (_of_schema("9999"), f"is of schema 9999, and this program, which has {HEAD}, cannot use it"),
        (_of_schema(None), "is of schema unknown, .* Install the Merk that made it"),
    ],
)
async def test_a_restore_that_fails_changes_nothing(
    data: Path, file: Path, clock: FrozenClock, spoil: Callable[[Path, bytes], None], said: str
) -> None:
    spoil(file, (data / "merk.db").read_bytes())
    before = every_byte(data)
    with pytest.raises(CommandError, match=said) as refused:
        await restore(file, data, clock)
    assert "Nothing was changed." in str(refused.value)
    assert str(file) in str(refused.value)
    assert every_byte(data) == before


async def test_a_file_that_is_not_there_is_named(data: Path, file: Path, clock: FrozenClock) -> None:
    with pytest.raises(CommandError, match=r"There is no file .*monday.tar.gz. Nothing was changed."):
        await restore(file, data, clock)
