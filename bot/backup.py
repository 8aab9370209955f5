"""Backups: one file that holds all the truth, made while Merk runs; and the way back."""

import json
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from datetime import datetime
from io import BytesIO
from pathlib import Path

from bot.errors import CommandError
from memory.ports import Clock

_MEMBER = "merk.db"
_MANIFEST = "manifest.json"


def back_up(database: Path, target: Path, clock: Clock) -> None:
    """Write one file that holds all the truth. Consistent while Merk runs; indexes are derived and not in it."""
    if not database.is_file():
        raise CommandError(f"There is nothing to back up: {database} is not there.")
    if target.exists():
        raise CommandError(f"{target} is there already. Choose another name; a backup never replaces one.")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copy = Path(folder) / _MEMBER
        with closing(sqlite3.connect(database)) as source:
            source.execute("VACUUM INTO ?", (str(copy),))  # a snapshot without the remains of deleted rows
        manifest = json.dumps({"made_at": clock.now().isoformat(), "revision": _revision(copy)}).encode()
        partial = Path(folder) / "backup.part"
        with tarfile.open(partial, "w:gz") as archive:
            info = tarfile.TarInfo(_MANIFEST)
            info.size = len(manifest)
            archive.addfile(info, BytesIO(manifest))
            archive.add(copy, _MEMBER)
        partial.chmod(0o600)
        partial.rename(target)


def restore(source: Path, data_dir: Path, clock: Clock) -> Path | None:
    """Put a backup in the place of the data; return where the replaced database went. The caller owns the directory."""
    database = data_dir / _MEMBER
    with tempfile.TemporaryDirectory(dir=data_dir) as folder:
        copy = Path(folder) / _MEMBER
        try:
            with tarfile.open(source, "r:gz") as archive:
                member = archive.extractfile(_MEMBER)
                assert member is not None
                with copy.open("wb") as file:
                    shutil.copyfileobj(member, file)
            with closing(sqlite3.connect(copy)) as opened:
                healthy = opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        except (OSError, KeyError, tarfile.TarError, AssertionError, sqlite3.DatabaseError) as error:
            raise CommandError(f"{source} is not a backup of Merk ({error}). Nothing was changed.") from error
        if not healthy:
            raise CommandError(f"{source} is damaged. Nothing was changed.")
        replaced = _set_aside(database, clock.now())
        copy.chmod(0o600)
        copy.rename(database)
    shutil.rmtree(data_dir / "chroma", ignore_errors=True)  # derived: rebuilt from what was restored
    return replaced


def _set_aside(database: Path, now: datetime) -> Path | None:
    if not database.is_file():
        return None
    with closing(sqlite3.connect(database)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    backups = database.parent / "backups"
    backups.mkdir(exist_ok=True, mode=0o700)
    aside = backups / f"merk-before-restore-{now:%Y%m%d-%H%M%S}.db"
    database.rename(aside)
    for left in ("-wal", "-shm"):
        database.with_name(database.name + left).unlink(missing_ok=True)
    return aside


def _revision(database: Path) -> str:
    with closing(sqlite3.connect(database)) as opened:
        row = opened.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else ""
