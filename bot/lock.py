"""One process per data directory: two would corrupt the index without a word (facts/stores.md, 1.6)."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.errors import CommandError

_NAME = ".lock"
_LOOK_SECONDS = 0.3
"""`owner_of` of another process holds the lock while it looks: that is over by then."""


class LockedError(CommandError):
    """Another process owns the data directory; the text names it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that owns a data directory now."""

    said: str
    """For people: "`merk run` (process 123)"."""
    since: float
    """Epoch seconds."""

    @property
    def serves(self) -> bool:
        """True for `merk run`, which keeps up the transports."""
        return self.said.startswith("`merk run`")


@contextmanager
def own(data_dir: Path, command: str) -> Generator[None, None, None]:
    """Hold the data directory, which is made if need be. Raises `LockedError`; `CommandError` where it cannot be."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(data_dir / _NAME, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise CommandError(
            f"{data_dir} cannot be used ({error.strerror}). Check its owner and mode, or set tenant.data_dir."
        ) from error
    try:
        if not _take(descriptor):
            raise LockedError(
                f"{data_dir} is in use by {_said(descriptor)}. Stop it first, or choose another data_dir."
            )
        os.truncate(descriptor, 0)
        os.write(descriptor, f"`merk {command}` (process {os.getpid()})".encode())
        yield
        os.truncate(descriptor, 0)
    finally:
        os.close(descriptor)


def owner_of(data_dir: Path) -> Owner | None:
    """Who owns the data directory now; None when nobody does. Raises OSError where that cannot be seen."""
    try:
        descriptor = os.open(data_dir / _NAME, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Owner(_said(descriptor), os.fstat(descriptor).st_mtime)
    finally:
        os.close(descriptor)
    return None


def _take(descriptor: int) -> bool:
    deadline = time.monotonic() + _LOOK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def _said(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
