"""One process per data directory: two would corrupt the index without a word (facts/stores.md, 1.6)."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import CommandError


class LockedError(CommandError):
    """Another process owns the data directory; the text names it."""


@contextmanager
def own(data_dir: Path, command: str) -> Generator[None, None, None]:
    """Hold the data directory. Raises `LockedError`, or OSError when the directory cannot be written."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(data_dir / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
            raise LockedError(f"{data_dir} is in use by {holder}. Stop it first, or choose another data_dir.") from None
        os.truncate(descriptor, 0)
        os.write(descriptor, f"`merk {command}` (process {os.getpid()})".encode())
        yield
        os.truncate(descriptor, 0)
    finally:
        os.close(descriptor)


def owner_of(data_dir: Path) -> str | None:
    """Who owns the data directory now; None when nobody does."""
    try:
        descriptor = os.open(data_dir / ".lock", os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
    finally:
        os.close(descriptor)
    return None
