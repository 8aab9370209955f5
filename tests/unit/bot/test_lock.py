"""One process per data directory, and a message that names the other one."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.errors import CommandError
from bot.lock import LockedError, own, owner_of

HOLD = """
import sys, time
from pathlib import Path
from bot.lock import own
with own(Path(sys.argv[1]), "run"):
    print("held", flush=True)
    time.sleep(60)
"""


@asynccontextmanager
async def holder(folder: Path) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """Another process that holds the directory."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(folder), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"held\n"
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_second_process_is_told_who_the_first_one_is(tmp_path: Path) -> None:
    async with holder(tmp_path) as process:
        with pytest.raises(LockedError) as refused, own(tmp_path, "chat"):
            raise AssertionError
        assert f"{tmp_path} is in use by `merk run` (process {process.pid}). Stop it first" in str(refused.value)
        owner = owner_of(tmp_path)
        assert owner is not None
        assert owner.serves
        assert abs(owner.since - time.time()) < 10
        process.send_signal(signal.SIGKILL)
        await process.wait()
        assert owner_of(tmp_path) is None, "the lock goes with the process, however it ends"
        with own(tmp_path, "chat"):
            assert owner_of(tmp_path) is not None


def test_a_free_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "data"
    assert owner_of(folder) is None
    with own(folder, "chat"):
        owner = owner_of(folder)
        assert owner is not None
        assert owner.said == f"`merk chat` (process {os.getpid()})"
        assert not owner.serves
    assert owner_of(folder) is None
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_look_does_not_keep_an_owner_out(tmp_path: Path) -> None:
    with own(tmp_path, "chat"):
        pass
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            owner_of(tmp_path)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(50):
            with own(tmp_path, "chat"):
                pass
    finally:
        stop.set()
        thread.join()


def test_a_directory_that_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(CommandError, match=r"cannot be used .* or set tenant\.data_dir"),
        own(tmp_path / "file", "chat"),
    ):
        raise AssertionError
