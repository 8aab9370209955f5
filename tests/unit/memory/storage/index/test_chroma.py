"""What is Chroma's own: bytes on disk, damage, other embedders, other processes."""

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest

from memory.ports import Vector, VectorRow
from memory.storage.index import chroma_files, chroma_held
from memory.storage.index.chroma import ChromaIndex, IndexUnavailable
from memory.storage.index.chroma_shards import shard_of
from tests.fakes.disk import files_under

DIMENSION = 32
ANNA = "telegram:4201|private"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


@pytest.fixture
async def index(directory: Path) -> AsyncIterator[ChromaIndex]:
    made = make(directory)
    await made.open()
    yield made
    await made.close()


def make(directory: Path, name: str = "test", dimension: int = DIMENSION) -> ChromaIndex:
    return ChromaIndex(directory, name=name, dimension=dimension)


def vector(seed: int, dimension: int = DIMENSION) -> Vector:
    drawn = np.random.default_rng(seed).standard_normal(dimension, dtype=np.float32)
    return drawn / np.float32(np.linalg.norm(drawn))


def rows(owner: str, seeds: range) -> list[VectorRow]:
    return [VectorRow(f"message-{seed}", owner, vector(seed)) for seed in seeds]


def files_of(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path, content in files_under(directory):
        yield str(path.relative_to(directory)), content


def where_is_text(directory: Path, text: str) -> list[str]:
    return [name for name, data in files_of(directory) if text.encode() in data]


def where_is_vector(directory: Path, wanted: Vector) -> list[str]:
    """Files that hold its first four components as float32, exact or up to the last bits, at any offset."""
    found: list[str] = []
    for name, data in files_of(directory):
        for offset in range(4):
            floats = np.frombuffer(data[offset : len(data) - (len(data) - offset) % 4], dtype=np.float32)
            with np.errstate(all="ignore"):  # most bytes are no numbers
                starts = np.flatnonzero(np.abs(floats - wanted[0]) < 1e-6)
            if any(np.allclose(floats[start : start + 4], wanted[:4], atol=1e-6) for start in starts):
                found.append(name)
    return found


def segments_of(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.is_dir()]


# --- forgetting --------------------------------------------------------------------------------


async def test_p27_erasure_leaves_no_byte_of_deleted_rows(index: ChromaIndex, directory: Path) -> None:
    """Neither from the graph (first 200 rows) nor from the write queue (the rest), nor of an owner who is gone."""
    neighbour = next(f"bert-{n}" for n in range(1000) if shard_of(f"bert-{n}") == shard_of(ANNA))
    gone = next(f"carla-{n}" for n in range(1000) if shard_of(f"carla-{n}") not in (shard_of(ANNA), 0))
    await index.upsert(rows(ANNA, range(230)))
    await index.upsert(rows(neighbour, range(1000, 1010)))
    await index.upsert(rows(gone, range(2000, 2003)))
    await index.delete(ANNA, ["message-7", "message-225"])
    await index.delete(gone, list(await index.ids(gone)))
    for seed in (7, 225, 2001):
        assert where_is_vector(directory, vector(seed)), "deleting leaves traces, or this test proves nothing"

    await index.erase_residue()
    await index.close()

    for seed in (7, 225, 2000, 2001, 2002):
        assert where_is_vector(directory, vector(seed)) == []
    for row_id in ("message-7\x00", "message-225", "message-2001", gone):
        assert where_is_text(directory, row_id) == []
    assert where_is_text(directory, "message-8")
    await index.open()
    assert await index.count() == 228 + 10
    for seed in (0, 199, 200, 229):
        assert (await index.query([ANNA, neighbour], vector(seed), 1))[0].id == f"message-{seed}"
    assert (await index.query([neighbour], vector(1003), 1))[0].id == "message-1003"


async def test_erasure_leaves_no_byte_of_an_overwritten_vector(index: ChromaIndex, directory: Path) -> None:
    await index.upsert(rows(ANNA, range(5)))
    await index.upsert([VectorRow("message-3", ANNA, vector(3000))])
    await index.erase_residue()
    await index.close()
    assert where_is_vector(directory, vector(3)) == []
    assert where_is_vector(directory, vector(3000))


async def test_writes_after_an_erasure_of_everything_are_found(index: ChromaIndex) -> None:
    """Chroma numbers its writes; an emptied queue must not make it take new ones for old."""
    await index.upsert(rows(ANNA, range(205)))
    await index.upsert(rows("bert", range(300, 310)))
    await index.delete(ANNA, list(await index.ids(ANNA)))
    await index.erase_residue()
    await index.upsert(rows("bert", range(310, 330)))
    await index.upsert(rows(ANNA, range(400, 420)))
    await index.close()
    await index.open()
    for owner, seed in (("bert", 305), ("bert", 325), (ANNA, 410)):
        assert (await index.query([owner], vector(seed), 1))[0].id == f"message-{seed}"


async def test_erasure_with_nothing_deleted_touches_no_file(index: ChromaIndex, directory: Path) -> None:
    await index.upsert(rows(ANNA, range(5)))
    await index.upsert(rows(ANNA, range(5)))
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    await index.erase_residue()
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


async def test_the_duty_to_erase_survives_a_restart(index: ChromaIndex, directory: Path) -> None:
    await index.upsert(rows(ANNA, range(5)))
    await index.delete(ANNA, ["message-3"])
    await index.close()
    later = make(directory)
    await later.open()
    await later.erase_residue()
    await later.close()
    assert where_is_vector(directory, vector(3)) == []
    assert not (directory / "residue").exists()


async def test_a_cancelled_erasure_is_done_by_the_next(index: ChromaIndex, directory: Path) -> None:
    await index.upsert(rows(ANNA, range(150)))
    await index.delete(ANNA, ["message-3"])
    erasing = asyncio.create_task(index.erase_residue())
    for _ in range(5):  # jobs: it is in the middle of copying then
        await index.count()
    assert where_is_text(directory, "-new")
    erasing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await erasing
    await index.close()
    await index.open()
    assert await index.count() == 149
    await index.erase_residue()
    await index.close()
    assert where_is_vector(directory, vector(3)) == []
    await index.open()
    assert await index.count() == 149


async def test_questions_are_answered_during_an_erasure(index: ChromaIndex) -> None:
    await index.upsert(rows(ANNA, range(150)))
    await index.delete(ANNA, ["message-3"])
    erasing = asyncio.create_task(index.erase_residue())
    answers = 0
    while not erasing.done():
        assert (await index.query([ANNA], vector(9), 1))[0].id == "message-9"
        answers += 1
    await erasing
    assert answers > 3


async def test_files_hold_no_memory_of_the_process(index: ChromaIndex, directory: Path) -> None:
    """Chroma writes the unused slots of a new graph from uninitialised memory."""
    secrets = [np.full(20_000, 1234.5678, dtype=np.float32) for _ in range(50)]
    del secrets
    for number in range(40):
        await index.upsert(rows(f"owner-{number}", range(number, number + 1)))
    for folder in segments_of(directory):
        assert not any((folder / "data_level0.bin").read_bytes())
        assert not any((folder / "length.bin").read_bytes())


# --- other embedders ---------------------------------------------------------------------------


async def test_p30_another_embedder_gets_collections_of_its_own(index: ChromaIndex, directory: Path) -> None:
    """A change of model or dimension is no error: the new index is empty, the old one is there when it returns."""
    await index.upsert(rows(ANNA, range(3)))
    await index.close()
    for name, dimension in (("other/model:v2@1", DIMENSION), ("test", 2 * DIMENSION), ("ü", DIMENSION)):
        other = make(directory, name, dimension)
        await other.open()
        assert await other.count() == 0
        await other.upsert([VectorRow("m1", ANNA, vector(1, dimension))])
        assert await other.count() == 1
        await other.close()
    await index.open()
    assert await index.count() == 3


async def test_collections_of_other_embedders_can_be_dropped_from_the_disk(index: ChromaIndex, directory: Path) -> None:
    await index.upsert(rows(ANNA, range(3)))
    await index.close()
    other = make(directory, "other")
    await other.open()
    await other.drop_others()
    assert await other.count() == 0
    await other.close()
    assert where_is_vector(directory, vector(1)) == []
    assert segments_of(directory) == []


async def test_p27_what_is_forgotten_is_forgotten_in_other_embedders_collections(
    index: ChromaIndex, directory: Path
) -> None:
    await index.upsert(rows(ANNA, range(3)))
    await index.close()
    other = make(directory, "other")
    await other.open()
    await other.upsert([VectorRow("message-1", ANNA, -vector(1)), VectorRow("message-2", ANNA, -vector(2))])
    await other.delete(ANNA, ["message-1"])
    await other.erase_residue()
    await other.close()
    assert where_is_vector(directory, vector(1)) == []
    assert where_is_text(directory, "message-1") == []


# --- damage ------------------------------------------------------------------------------------


async def test_a_directory_that_is_deleted_in_use_is_noticed_and_made_again(
    index: ChromaIndex, directory: Path
) -> None:
    """Chroma itself would go on answering from memory."""
    await index.upsert(rows(ANNA, range(3)))
    shutil.rmtree(directory)
    with pytest.raises(IndexUnavailable, match="deleted"):
        await index.query([ANNA], vector(1), 1)
    with pytest.raises(IndexUnavailable, match="deleted"):
        await index.upsert(rows(ANNA, range(3, 5)))
    with pytest.raises(IndexUnavailable, match="deleted"):
        await index.erase_residue()
    await index.open()
    assert await index.count() == 0
    await index.upsert(rows(ANNA, range(3)))
    assert (await index.query([ANNA], vector(1), 1))[0].id == "message-1"


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 3)


def garble(path: Path) -> None:
    path.write_bytes(b"\xa5" * path.stat().st_size)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [cut, garble, empty, Path.unlink])
@pytest.mark.parametrize(
    "name", ["chroma.sqlite3", "header.bin", "data_level0.bin", "link_lists.bin", "index_metadata.pickle"]
)
async def test_damaged_files_are_replaced_by_an_empty_index(
    index: ChromaIndex, directory: Path, name: str, harm: "object"
) -> None:
    """Unchecked, some of these crash the process or hang it: Chroma's graph code trusts its files."""
    assert callable(harm)
    await index.upsert(rows(ANNA, range(220)))
    await index.close()
    (path,) = directory.rglob(name)
    harm(path)
    await index.open()
    assert await index.count() == 0
    await index.upsert(rows(ANNA, range(30)))
    assert (await index.query([ANNA], vector(9), 1))[0].id == "message-9"
    assert len(segments_of(directory)) == 1


async def test_damage_in_use_is_one_kind_of_error_and_opening_again_mends_it(
    index: ChromaIndex, directory: Path
) -> None:
    await index.upsert(rows(ANNA, range(50)))
    with sqlite3.connect(directory / "chroma.sqlite3") as connection:
        connection.execute("DROP TABLE embeddings_queue")
    connection.close()
    with pytest.raises(IndexUnavailable):
        await index.upsert(rows(ANNA, range(50, 60)))
    await index.open()
    assert await index.count() == 0
    await index.upsert(rows(ANNA, range(3)))
    assert await index.count() == 3


async def test_what_cannot_be_erased_in_part_goes_as_a_whole(
    index: ChromaIndex, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For instance with a Chroma whose tables have other names."""

    def refuse(_directory: Path) -> None:
        raise sqlite3.OperationalError("no such table: segments")

    await index.upsert(rows(ANNA, range(5)))
    await index.delete(ANNA, ["message-1"])
    monkeypatch.setattr(chroma_files, "compact", refuse)
    with pytest.raises(IndexUnavailable, match="dropped"):
        await index.erase_residue()
    assert where_is_vector(directory, vector(1)) == []
    await index.open()
    assert await index.count() == 0


async def test_a_directory_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    index = make(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        await index.open()
    with pytest.raises(IndexUnavailable, match="not open"):
        await index.count()


# --- processes and files -----------------------------------------------------------------------


async def test_two_owners_of_one_directory_are_refused(index: ChromaIndex, directory: Path) -> None:
    """Chroma would corrupt it in silence. The refused one destroys nothing, however often it tries."""
    await index.upsert(rows(ANNA, range(3)))
    second = make(directory)
    for _ in range(3):
        with pytest.raises(IndexUnavailable, match="another process"):
            await second.open()
    assert await index.count() == 3
    await index.close()
    await second.open()
    assert await second.count() == 3
    await second.close()


async def test_closing_releases_the_files(index: ChromaIndex, directory: Path) -> None:
    await index.upsert(rows(ANNA, range(3)))
    await index.close()
    for _ in range(100):  # Chroma's connection pool takes a moment
        targets = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        if not any(target.is_relative_to(directory) for target in targets):
            return
        await asyncio.sleep(0.02)
    pytest.fail("files are still open")


async def test_acknowledged_rows_survive_a_kill(directory: Path) -> None:
    program = f"""
import asyncio, os, signal
from pathlib import Path
from tests.unit.memory.storage.index.test_chroma import ANNA, make, rows
async def main():
    index = make(Path({str(directory)!r}))
    await index.open()
    await index.upsert(rows(ANNA, range(230)))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    finished = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], check=False)
    assert finished.returncode == -9
    index = make(directory)
    await index.open()
    assert await index.count() == 230
    for seed in (3, 229):
        assert (await index.query([ANNA], vector(seed), 1))[0].id == f"message-{seed}"
    await index.close()


def test_chroma_is_imported_only_when_an_index_is_opened() -> None:
    """It costs 0.7 s and 50 MB that `merk --help` does not need."""
    program = "import sys, memory.storage.index.chroma; sys.exit('chromadb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("cannot schedule new futures after interpreter shutdown"),
        RuntimeError("cannot schedule new futures after shutdown"),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EMFILE, "Too many open files"),
        MemoryError(),
    ],
)
async def test_d21_what_passes_is_no_damage(directory: Path, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends while it starts, or the disk is full: the index is there at the next start."""
    first = make(directory)
    await first.open()
    await first.upsert(rows("u1", range(3)))
    await first.close()

    def fail(_directory: Path) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(chroma_files, "check", fail)
        with pytest.raises(IndexUnavailable):
            await make(directory).open()
    again = make(directory)
    await again.open()
    assert await again.count() == 3
    await again.close()


@pytest.mark.parametrize("most_held", [0, 1000])
@pytest.mark.parametrize("share", [0.9, 0.5, 0.2, 0.02])
async def test_what_is_nearest_is_found_whatever_share_of_a_shard_is_theirs(
    index: ChromaIndex, share: float, most_held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking past other people's rows, asking for one's own alone and comparing held ones come to the same."""
    monkeypatch.setattr(chroma_held, "MOST", most_held)
    other = next(f"u{number}" for number in range(100) if shard_of(f"u{number}") == shard_of(ANNA))
    count = round(1000 * share)
    mine = rows(ANNA, range(count))
    await index.upsert([*mine, *rows(other, range(count, 1000))])
    asked = vector(5000)
    best = sorted(mine, key=lambda row: -float(row.vector @ asked))[:5]
    found = await index.query([ANNA], asked, 5)
    assert {hit.owner for hit in found} == {ANNA}
    assert len({hit.id for hit in found} & {row.id for row in best}) >= (5 if most_held else 4)


async def test_whose_rows_become_too_many_is_asked_of_the_graph(
    index: ChromaIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma_held, "MOST", 5)
    for number in range(8):
        await index.upsert(rows(ANNA, range(number, number + 1)))
        hits = await index.query([ANNA], vector(number), 3)
        assert (hits[0].id, len(hits)) == (rows(ANNA, range(number, number + 1))[0].id, min(3, number + 1))
    await index.delete(ANNA, [rows(ANNA, range(7, 8))[0].id])
    assert rows(ANNA, range(7, 8))[0].id not in {hit.id for hit in await index.query([ANNA], vector(7), 8)}
