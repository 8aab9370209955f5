"""Copies of the database that Merk takes by itself before it changes the schema; they go after a week, or what is set.

Rule: a copy is made through SQLite's backup API, never by copying files under a running database.
"""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

KEPT_DAYS = 7
KEPT = timedelta(days=KEPT_DAYS)

_NAME = re.compile(r"merk-before-.+-(\d{4}-\d{2}-\d{2})(?:\.\d+)?\.db")


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    goes_on: date
    """The first day on which a start removes it."""


def backups_of(database: Path, days: int = KEPT_DAYS) -> list[Backup]:
    """The copies that lie beside a database, oldest first; they go so many days after they were taken."""
    kept = timedelta(days=days)
    found = [(match, path) for path in folder_of(database).glob("*.db") if (match := _NAME.fullmatch(path.name))]
    copies = [Backup(path, date.fromisoformat(match[1]) + kept) for match, path in found]
    return sorted(copies, key=lambda copy: (copy.goes_on, copy.path.name))


def folder_of(database: Path) -> Path:
    return database.parent / "backups"


def take_backup(database: Path, revision: str, now: datetime) -> Path:
    """Copy the database as it is, before it becomes `revision`. Raises OSError or sqlite3.Error."""
    folder = folder_of(database)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = _unused(folder, f"merk-before-{revision}-{now.date().isoformat()}")
    unfinished = target.with_suffix(".partial")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(unfinished)) as copy:
        source.backup(copy)
    unfinished.chmod(0o600)
    return unfinished.rename(target)


def remove_old_backups(database: Path, now: datetime, days: int = KEPT_DAYS) -> list[Path]:
    """Delete the copies whose days are over; return which."""
    gone = [copy.path for copy in backups_of(database, days) if copy.goes_on <= now.date()]
    for path in gone:
        path.unlink(missing_ok=True)
    return gone


def _unused(folder: Path, name: str) -> Path:
    number = 1
    target = folder / f"{name}.db"
    while target.exists():
        number += 1
        target = folder / f"{name}.{number}.db"
    return target
