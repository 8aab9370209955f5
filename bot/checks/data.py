"""What is stored: database, index and disk, looked at while another process may be writing.

Rule: read only, with a time limit, and never Chroma's files while another process owns them.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bot.checks import Wrong
from bot.config import Settings
from bot.lock import Owner
from memory.storage.index.chroma_files import DamagedError
from memory.storage.index.chroma_files import check as check_files
from memory.storage.migrate import HEAD

SQL_SECONDS = 6.0
LEAST_FREE_BYTES = 500_000_000
STALE_SECONDS = 180
"""What a running Merk has not caught up with by then, it does not catch up with."""


async def database(settings: Settings, _owner: Owner | None) -> str:
    path = settings.tenant.data_dir / "merk.db"
    if not path.is_file():
        return f"{path} will be made at the first start"
    revision, damage = await asyncio.to_thread(_look_at, path)
    if damage:
        raise Wrong(
            f"{path} is damaged ({damage})", f"merk restore FILE (copies that Merk took: {path.parent}/backups)"
        )
    if revision is None:
        raise Wrong(f"{path} is not a database of Merk", "set tenant.data_dir to another folder")
    if revision > HEAD:  # revisions are numbers of four digits
        said = f"{path} was written by a newer Merk (schema {revision}, this program has {HEAD})"
        raise Wrong(said, "install the newer Merk, or merk restore FILE")
    if revision < HEAD:
        return f"{path} will be brought up to date at the next start"
    return f"{path}, {path.stat().st_size / 1e6:.1f} MB"


def _look_at(path: Path) -> tuple[str | None, str]:
    """(revision or None, damage or "")."""
    try:
        with reading(path) as opened:
            tables = {row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "alembic_version" not in tables:
                return None, ""
            row = opened.execute("SELECT version_num FROM alembic_version").fetchone()
            return (str(row[0]) if row else None), _quick_check(opened)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        return None, str(error)


def _quick_check(opened: sqlite3.Connection) -> str:
    try:
        verdict = str(opened.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return ""  # a large one: what could be read in the time was sound
    return "" if verdict == "ok" else verdict.splitlines()[-1]


async def index(settings: Settings, owner: Owner | None) -> str:
    """What is not indexed yet is caught up by a running Merk; the figures come from SQL and the index's folder."""
    path, folder = settings.tenant.data_dir / "merk.db", settings.tenant.data_dir / "chroma"
    if not path.is_file():
        return "nothing to index yet"
    total, indexed, behind, unswept = await asyncio.to_thread(_figures, path)
    remedy = "systemctl restart merk" if owner else "merk reindex"
    if indexed and not folder.is_dir():
        raise Wrong("the index's folder is gone", remedy)
    if owner is None and folder.is_dir():  # beside another process its files are left alone
        try:
            await asyncio.to_thread(check_files, folder)
        except (DamagedError, sqlite3.Error) as error:
            raise Wrong(f"the index is damaged ({error})", remedy) from error
    _check_learning(await asyncio.to_thread(_failures, path))
    waits = f"{behind} of {total} summaries are not indexed" if behind else f"{total} summaries"
    waits += ", forgotten vectors are not cleared" if unswept else ""
    waits += _said_of_change(await asyncio.to_thread(_embedded, path))
    if owner is None:
        return f"{waits}; the next start does it" if behind or unswept else waits
    if behind or unswept:
        raise Wrong(f"{waits}, for minutes now", remedy)
    return waits


def _check_learning(failures: dict[str, int]) -> None:
    if failures:
        said = f"{sum(failures.values())} chats could not be summarised yet; they are tried again within the hour"
        causes = ", ".join(f"{cause}: {count}" for cause, count in sorted(failures.items()))
        raise Wrong(f"{said} ({causes})", "merk doctor --verbose, and mend the model (next lines)")


def _figures(path: Path) -> tuple[int, int, int, int]:
    """(summaries, indexed, waiting for minutes, forgets whose vectors wait for minutes)."""
    before = (time.time() - STALE_SECONDS) * 1000
    with reading(path) as opened:
        return opened.execute(
            "SELECT (SELECT count(*) FROM summaries), (SELECT count(indexed_as) FROM summaries), "
            "(SELECT count(*) FROM summaries WHERE indexed_as IS NULL AND updated_at < ?), "
            "(SELECT count(*) FROM kept_values WHERE key = 'memory.unswept' AND updated_at < ?)",
            (before, before),
        ).fetchone()


def _embedded(path: Path) -> dict[str, int]:
    """An embedder's name and dimension -> how many messages have vectors of it."""
    query = "SELECT indexed_as, count(*) FROM evidence WHERE indexed_as IS NOT NULL GROUP BY 1"
    with reading(path) as opened:
        return dict(opened.execute(query).fetchall())


def _said_of_change(embedded: dict[str, int]) -> str:
    if len(embedded) < 2:  # noqa: PLR2004 - one embedder made all of them
        return ""
    listed = ", ".join(f"{count} messages by {name}" for name, count in sorted(embedded.items()))
    return f"; the embedder was changed and they are embedded anew ({listed})"


def _failures(path: Path) -> dict[str, int]:
    """The class of a failure -> in how many chats it happened."""
    query = "SELECT coalesce(last_error, 'unknown'), count(*) FROM learning WHERE attempts > 0 GROUP BY 1"
    with reading(path) as opened:
        return dict(opened.execute(query).fetchall())


async def disk(settings: Settings, _owner: Owner | None) -> str:
    folder = settings.tenant.data_dir
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        said = f"{folder} cannot be written by this user"
        raise Wrong(said, f"sudo chown -R $(id -un) {folder}, or set tenant.data_dir")
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise Wrong(f"only {free / 1e6:.0f} MB free in {folder}", f"du -sh {folder}/*, and make room")
    return f"{free / 1e9:.1f} GB free in {folder}"


def kept(settings: Settings, key: str) -> tuple[dict[str, Any], float]:
    """A value that the running process keeps, and when it was noted (epoch seconds); nothing is ({}, 0)."""
    path = settings.tenant.data_dir / "merk.db"
    if not path.is_file():
        return {}, 0.0
    with reading(path) as opened:
        row = opened.execute("SELECT value, updated_at FROM kept_values WHERE key = ?", (key,)).fetchone()
    return (json.loads(row[0]), row[1] / 1000) if row else ({}, 0.0)


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """Open a database to look at it only; a query that takes too long is interrupted."""
    until = time.monotonic() + SQL_SECONDS
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as opened:
        opened.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        yield opened
