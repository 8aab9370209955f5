"""Migrations: the schema is the tables', a copy is taken first, and a failure changes nothing (pitfall P59)."""

import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from memory.storage import migrate as migration
from memory.storage.backups import backups_of, remove_old_backups, take_backup
from memory.storage.database import Database
from memory.storage.index.lexical import CREATE, TABLES
from memory.storage.migrate import HEAD, SchemaError, alembic_config, migrate
from memory.storage.tables import metadata
from tests.fakes.clock import FrozenClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


@pytest.fixture
async def fresh(path: Path) -> AsyncGenerator[Database, None]:
    database = Database.at(path)
    yield database
    await database.close()


def _schema(path: Path) -> dict[str, list[str]]:
    """Every table and index, as its parts in a fixed order."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {
        name: sorted(re.split(r",\s+|\(\s|\s\)", re.sub(r'[\s"]+', " ", sql)))
        for name, sql in rows
        if not name.startswith((*(f"{table}_" for table in TABLES), "alembic_", "sqlite_"))
    }


def _value(path: Path, query: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def _set(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


async def test_the_migrated_schema_is_the_tables(fresh: Database, path: Path, clock: FrozenClock) -> None:
    await migrate(fresh, path, clock)
    other = path.with_name("other.db")
    engine = sa.create_engine(f"sqlite:///{other}")
    metadata.create_all(engine)
    with engine.begin() as connection:
        for each in CREATE:
            connection.execute(sa.text(each))
    engine.dispose()
    assert _schema(path) == _schema(other)


def test_head_is_the_newest_script() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == HEAD


async def test_a_new_database_needs_no_copy(fresh: Database, path: Path, clock: FrozenClock) -> None:
    assert await migrate(fresh, path, clock) is None
    assert await migrate(fresh, path, clock) is None
    assert _value(path, "SELECT version_num FROM alembic_version") == HEAD
    assert backups_of(path) == []


async def test_p59_a_copy_is_taken_before_data_is_changed(
    fresh: Database, path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade from an older revision: the copy holds the data as it was."""
    await _older(fresh, path, clock)
    monkeypatch.setattr(migration, "_upgrade", _pretend)
    copy = await migrate(fresh, path, clock)
    assert copy is not None
    assert copy.name == f"merk-before-{HEAD}-2026-03-01.db"
    assert copy.parent == path.parent / "backups"
    assert _value(copy, "SELECT name FROM users") == "Ada"
    assert copy.stat().st_mode & 0o077 == 0


async def test_p59_a_failed_upgrade_leaves_everything_as_it_was(
    fresh: Database, path: Path, clock: FrozenClock
) -> None:
    """The tables are there already: the script fails, the data stays, the error names the copy."""
    await _older(fresh, path, clock)
    before = _schema(path)
    with pytest.raises(SchemaError, match="left as it was") as failed:
        await migrate(fresh, path, clock)
    assert "merk-before-" in str(failed.value)
    assert _schema(path) == before
    assert _value(path, "SELECT name FROM users") == "Ada"
    assert _value(path, "SELECT version_num FROM alembic_version") is None


async def test_a_newer_database_is_refused_with_advice(fresh: Database, path: Path, clock: FrozenClock) -> None:
    await migrate(fresh, path, clock)
    _set(path, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaError, match="newer Merk"):
        await migrate(fresh, path, clock)


async def test_copies_go_after_a_week(fresh: Database, path: Path, clock: FrozenClock) -> None:
    await migrate(fresh, path, clock)
    first = take_backup(path, "0002", clock.now())
    second = take_backup(path, "0002", clock.now())
    assert first != second
    (path.parent / "backups" / "mine.db").write_bytes(b"kept")
    clock.advance(days=6)
    assert remove_old_backups(path, clock.now()) == []
    assert [copy.goes_on.isoformat() for copy in backups_of(path)] == ["2026-03-08", "2026-03-08"]
    clock.advance(days=1)
    assert await migrate(fresh, path, clock) is None
    assert [each.name for each in (path.parent / "backups").iterdir()] == ["mine.db"]


async def test_who_was_there_before_identities_could_be_linked_was_let_in_by_themselves(
    fresh: Database, path: Path, clock: FrozenClock
) -> None:
    """And the number of somebody who is gone is given to nobody."""
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0006")
    engine.dispose()
    _set(path, "INSERT INTO users (id, name, role, created_at) VALUES (7, 'Ada', 'guest', 1)")
    _set(path, "INSERT INTO identities (key, user_id, created_at) VALUES ('telegram:7', 7, 1)")
    await migrate(fresh, path, clock)
    assert _value(path, "SELECT own_role FROM identities WHERE user_id = 7") == "guest"
    assert _value(path, "SELECT name FROM users") == "Ada"
    _set(path, "DELETE FROM users")
    _set(path, "INSERT INTO users (name, role, created_at) VALUES ('Ben', 'guest', 1)")
    assert _value(path, "SELECT id FROM users") == 8


async def _older(database: Database, path: Path, clock: FrozenClock) -> None:
    await migrate(database, path, clock)
    _set(path, "INSERT INTO users (name, role, created_at) VALUES ('Ada', 'owner', 1)")
    _set(path, "DELETE FROM alembic_version")


async def _pretend(_url: str) -> None:
    """Stands for a migration that is still to be written."""
