"""Backups: one file that holds all the truth, made while Merk runs; and the way back.

Rule: a restore checks and converts a copy first, so that what fails changes nothing.
"""

import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from contextlib import closing
from datetime import datetime
from io import BytesIO
from pathlib import Path

from bot.admin.device_keys import add_keys, restore_keys
from bot.errors import CommandError
from memory.ports import Clock
from memory.storage.backups import folder_of, take_backup
from memory.storage.database import Database
from memory.storage.migrate import HEAD, SchemaError, migrate

_MEMBER = "merk.db"
_MANIFEST = "manifest.json"
_STAGING = ".restore-"
_SQLITE = b"SQLite format 3\0"


def back_up(database: Path, target: Path, clock: Clock) -> None:
    """Write one file that holds all the truth. Consistent while Merk runs; indexes are derived and not in it."""
    if not database.is_file():
        raise CommandError(f"There is nothing to back up: {database} is not there. Is tenant.data_dir right?")
    if not target.parent.is_dir():
        raise CommandError(f"There is no folder {target.parent}. Make it first, or choose another.")
    try:
        target.touch(mode=0o600, exist_ok=False)  # claims the name
    except FileExistsError:
        raise CommandError(
            f"{target} is there already. Choose another name; a backup never replaces anything."
        ) from None
    except OSError as error:
        raise CommandError(f"{target} cannot be written ({error.strerror}).") from error
    try:
        _write(database, target, clock.now())
    except BaseException as error:
        target.unlink()
        if isinstance(error, sqlite3.Error):
            raise CommandError(f"{database} cannot be read ({error}). `merk doctor` says what is wrong.") from error
        if isinstance(error, OSError):
            raise CommandError(f"{target} cannot be written ({error.strerror or error}).") from error
        raise


def _write(database: Path, target: Path, now: datetime) -> None:
    with tempfile.TemporaryDirectory(prefix=".merk-backup-", dir=target.parent) as folder:
        copy = Path(folder) / _MEMBER
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)) as source:
            source.execute("VACUUM INTO ?", (str(copy),))  # a snapshot without the remains of deleted rows
        manifest = json.dumps({"made_at": now.isoformat(), "revision": _revision(copy)}).encode()
        partial = Path(folder) / "backup.part"
        with partial.open("xb") as file:
            partial.chmod(0o600)
            with tarfile.open(fileobj=file, mode="w:gz") as archive:
                info = tarfile.TarInfo(_MANIFEST)
                info.size = len(manifest)
                archive.addfile(info, BytesIO(manifest))
                archive.add(copy, _MEMBER)
                add_keys(archive, database.parent, Path(folder))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)


async def restore(source: Path, data_dir: Path, clock: Clock) -> Path | None:
    """Put a backup in the place of the data; return where the replaced database is kept for a week.

    Takes what `merk backup` wrote, and a copy that Merk took before an upgrade. An older schema is brought up to date.
    The caller owns the directory.
    """
    if not source.is_file():
        raise CommandError(f"There is no file {source}. Nothing was changed.")
    database = data_dir / _MEMBER
    for left in data_dir.glob(f"{_STAGING}*"):  # of a restore that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=data_dir) as folder:
        copy = Path(folder) / _MEMBER
        try:
            _unpack(source, copy)
            _check(copy)
            await _convert(copy, clock)
        except CommandError as error:
            raise CommandError(f"{source} {error} Nothing was changed.") from error
        except (OSError, KeyError, EOFError, zlib.error, tarfile.TarError, sqlite3.Error) as error:
            raise CommandError(f"{source} is not a whole backup of Merk ({error}). Nothing was changed.") from error
        copy.chmod(0o600)
        try:
            replaced = _set_aside(database, clock.now())
        except OSError as error:
            raise CommandError(
                f"{database} cannot be kept ({error.strerror or error}). Nothing was changed."
            ) from error
        copy.replace(database)
    restore_keys(source, data_dir)
    if (index := data_dir / "chroma").exists():
        shutil.rmtree(index)  # derived: made anew from what was restored
    return replaced


def _unpack(source: Path, copy: Path) -> None:
    with source.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    if is_database:
        shutil.copyfile(source, copy)
        return
    with tarfile.open(source, "r:gz") as archive:
        member = archive.extractfile(_MEMBER)
        if member is None:
            raise CommandError("does not hold a database.")
        with copy.open("xb") as file:
            shutil.copyfileobj(member, file)
            file.flush()
            os.fsync(file.fileno())


def _check(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as opened:
        if opened.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise CommandError("is damaged.")
        names = {row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"alembic_version", "users", "messages", "facts"} <= names:
        raise CommandError("is a database, but not of Merk.")


async def _convert(copy: Path, clock: Clock) -> None:
    """Bring the copy to the schema of this program and say that none of it is in an index."""
    revision = _revision(copy)
    database = Database.at(copy)
    try:
        await migrate(database, copy, clock)
    except SchemaError as error:
        raise CommandError(
            f"is of schema {revision or 'unknown'}, and this program, which has {HEAD}, cannot use it. "
            "Install the Merk that made it, or a newer one."
        ) from error
    finally:
        await database.close()
    with closing(sqlite3.connect(copy)) as opened, opened:
        opened.execute("UPDATE summaries SET indexed_as = NULL")
    with closing(sqlite3.connect(copy)) as opened:
        opened.execute("PRAGMA journal_mode = DELETE")  # one file: no log to leave behind


def _set_aside(database: Path, now: datetime) -> Path | None:
    """Keep what is there among the copies that go after a week, damaged or not."""
    if not database.is_file():
        return None
    try:
        kept = take_backup(database, "restore", now)
    except sqlite3.Error:  # too damaged to be read: as it is
        kept = folder_of(database) / f"merk-before-restore-{now.date().isoformat()}.{now:%H%M%S}.db"
        shutil.copyfile(database, kept)
        kept.chmod(0o600)
    for left in folder_of(database).glob("*.partial"):
        left.unlink()
    for left in ("-wal", "-shm"):  # of the former database: it would be played into the new one
        database.with_name(database.name + left).unlink(missing_ok=True)
    return kept


def _revision(database: Path) -> str:
    with closing(sqlite3.connect(database)) as opened:
        row = opened.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else ""
