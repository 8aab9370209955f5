"""Brings the database to the schema of this program: first a copy, then the change, all of it or nothing.

Rule: nothing here is imported by a start whose schema is current; Alembic costs a quarter of a second.
"""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
import structlog
from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from memory.ports import Clock
from memory.storage.backups import KEPT_DAYS, remove_old_backups, take_backup
from memory.storage.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0008"
"""The newest revision under migrations/versions; a test keeps the two equal."""

_MIGRATIONS = Path(__file__).with_name("migrations")

log = structlog.get_logger(__name__)


class SchemaError(Exception):
    """The database cannot be brought to this program's schema; says what to do. Nothing was changed."""


async def migrate(database: Database, path: Path, clock: Clock, *, backups_days: int = KEPT_DAYS) -> Path | None:
    """Upgrade the schema if need be; return the copy that was taken of a database with data in it.

    Raises `SchemaError` for a database of a newer program or a failed change.
    """
    await asyncio.to_thread(remove_old_backups, path, clock.now(), backups_days)
    revision = await _revision(database)
    if revision == HEAD:
        return None
    if revision is not None and revision not in _known():
        raise SchemaError(
            f"{path} was written by a newer Merk (schema {revision}; this program knows up to {HEAD}). "
            "Start the newer program, or restore a backup from before the upgrade."
        )
    backup = await asyncio.to_thread(take_backup, path, HEAD, clock.now()) if await _has_data(database) else None
    try:
        await _upgrade(database.url)
    except SQLAlchemyError as error:
        copy = f" A copy is in {backup}." if backup else ""
        raise SchemaError(
            f"{path} could not be upgraded to schema {HEAD} and was left as it was ({type(error).__name__}).{copy} "
            "Start the former program again and report this."
        ) from error
    log.info("schema.upgraded", before=revision, after=HEAD, backup=str(backup) if backup else None)
    return backup


def alembic_config() -> "Config":
    from alembic.config import Config  # noqa: PLC0415 - late, see above

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config


async def _revision(database: Database) -> str | None:
    """Return the revision the database is at; None for one without tables."""
    async with database.read() as connection:
        if not await connection.run_sync(lambda sync: sa.inspect(sync).has_table("alembic_version")):
            return None
        return (await connection.execute(sa.text("SELECT version_num FROM alembic_version"))).scalar_one_or_none()


async def _has_data(database: Database) -> bool:
    async with database.read() as connection:
        tables = await connection.run_sync(lambda sync: sa.inspect(sync).get_table_names())
        queries = [sa.select(sa.literal(1)).select_from(sa.table(name)).limit(1) for name in tables]
        return any([(await connection.execute(query)).first() for query in queries if "alembic" not in str(query)])


async def _upgrade(url: str) -> None:
    """Run the migrations on a connection of their own: foreign keys are off, or rebuilding a table would cascade."""
    engine = create_async_engine(url, poolclass=NullPool)
    if url.startswith("sqlite"):
        event.listen(engine.sync_engine, "connect", _prepare)
        event.listen(engine.sync_engine, "begin", _begin)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_run)
    finally:
        await engine.dispose()


def _run(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - late, see above

    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if broken is not None:
            raise IntegrityError("PRAGMA foreign_key_check", None, ValueError(f"table {broken[0]}"))


def _known() -> set[str]:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - late, see above

    return {script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()}


def _prepare(dbapi_connection: object, _record: object) -> None:
    connection: Any = dbapi_connection
    connection.isolation_level = None  # we send BEGIN ourselves
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "busy_timeout=5000", "secure_delete=ON", "foreign_keys=OFF"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


if __name__ == "__main__":
    from alembic import command

    command.revision(alembic_config(), " ".join(sys.argv[1:]) or sys.exit("Say what changes."))
