"""What Chroma 1.5 leaves on disk and cannot be trusted with: damaged, orphaned and forgotten bytes.

One rule: every function here runs while no Chroma client has the directory open, except `blank_unused`.
"""

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

DATABASE: Final = "chroma.sqlite3"

_HEADER: Final = struct.Struct("<iQQQQQQiIQQQdQ")
"""hnswlib's `header.bin`, version 1: see `_Header`."""
_LEVELS: Final = 64
"""More levels than an index of any size has; a larger figure is damage."""


class DamagedError(Exception):
    """A file is not what Chroma wrote; loading it could crash or hang the process."""


@dataclass(frozen=True, slots=True)
class _Header:
    capacity: int
    elements: int
    element_bytes: int
    top_level: int
    entry: int
    links: int
    """Neighbours of an element at most, on the levels above the ground."""
    ground_links: int


def check(directory: Path) -> None:
    """Refuse a directory that Chroma could not load safely. Raises `DamagedError`, `sqlite3.Error`, `OSError`.

    Chroma maps its graph files without looking: a cut `data_level0.bin` is a segmentation fault at the first query,
    garbage in `link_lists.bin` an endless loop at the first write. So links and sizes are checked here (10 ms for
    10,000 vectors), and SQLite checks itself.
    """
    database = directory / DATABASE
    if not database.exists():
        if any(_segment_folders(directory)):
            raise DamagedError(f"{DATABASE} is missing")
        return
    with closing(sqlite3.connect(database)) as connection:
        if (verdict := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise DamagedError(f"{DATABASE}: {verdict}")
        persisted = connection.execute(
            "SELECT s.id FROM segments s JOIN max_seq_id m ON m.segment_id = s.id WHERE s.scope = 'VECTOR'"
        ).fetchall()
    for (segment,) in persisted:
        if not (directory / segment / "index_metadata.pickle").is_file():
            raise DamagedError(f"segment {segment} has lost its files")
    for folder in _segment_folders(directory):
        _check_graph(folder)


def blank_unused(directory: Path) -> None:
    """Overwrite the unused slots of the graph files.

    Chroma creates them from uninitialised memory: whatever the process freed before lands on disk, forgotten vectors
    included. Unused slots are never read, so this may run while the client is open.
    """
    for folder in _segment_folders(directory):
        header = _read_header(folder)
        for name, width in (("data_level0.bin", header.element_bytes), ("length.bin", 4)):
            path, used = folder / name, header.elements * width
            if (spare := path.stat().st_size - used) > 0:
                with path.open("r+b") as file:
                    file.seek(used)
                    file.write(bytes(spare))


def compact(directory: Path) -> None:
    """Leave nothing of dropped collections: free pages, folders. Raises `sqlite3.Error`, `OSError`.

    Chroma deletes their rows, the write queue's too, but keeps the pages and the graph's files.
    """
    with closing(sqlite3.connect(directory / DATABASE, isolation_level=None)) as connection:
        connection.execute("VACUUM")
    remove_orphans(directory)
    blank_unused(directory)


def remove_orphans(directory: Path) -> None:
    """Delete folders of segments that the database no longer knows; Chroma leaves them."""
    if not (directory / DATABASE).exists():
        return
    with closing(sqlite3.connect(directory / DATABASE)) as connection:
        known = {segment for (segment,) in connection.execute("SELECT id FROM segments")}
    for folder in _segment_folders(directory):
        if folder.name not in known:
            shutil.rmtree(folder)


def wipe(directory: Path) -> None:
    """Delete all that Chroma wrote, and nothing else."""
    for path in directory.glob(DATABASE + "*"):
        path.unlink()
    for folder in _segment_folders(directory):
        shutil.rmtree(folder)


def _segment_folders(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if _is_uuid(path.name) and path.is_dir():
            yield path


def _is_uuid(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _read_header(folder: Path) -> _Header:
    raw = (folder / "header.bin").read_bytes()
    if len(raw) != _HEADER.size:
        raise DamagedError(f"{folder.name}: header of {len(raw)} bytes")
    version, _, capacity, elements, size, *_, top, entry, links, ground, _, _, _ = _HEADER.unpack(raw)
    header = _Header(capacity, elements, size, top, entry, links, ground)
    is_sound = (
        version == 1
        and elements <= capacity
        and 0 < links <= ground < size // 4
        and (-1 <= top < _LEVELS)
        and (elements == 0 or entry < elements)
    )
    if not is_sound:
        raise DamagedError(f"{folder.name}: header makes no sense")
    return header


def _check_graph(folder: Path) -> None:
    header = _read_header(folder)
    ground = np.fromfile(folder / "data_level0.bin", dtype=np.uint8)
    if header.element_bytes % 4 or len(ground) < header.elements * header.element_bytes:
        raise DamagedError(f"{folder.name}: data_level0.bin is cut")
    if header.elements == 0:
        return
    rows = ground[: header.elements * header.element_bytes].reshape(header.elements, header.element_bytes)
    words = rows[:, : 4 * (1 + header.ground_links)].copy().view(np.uint32)
    if not _links_are_sound(words, np.full(header.elements, 0), np.zeros(header.elements, dtype=np.int64)):
        raise DamagedError(f"{folder.name}: data_level0.bin has links that lead nowhere")
    _check_upper_levels(folder, header)


def _check_upper_levels(folder: Path, header: _Header) -> None:
    """Parse `link_lists.bin`: per element its size in bytes, then a block of links for each level above the ground."""
    words = np.fromfile(folder / "link_lists.bin", dtype=np.uint32)
    width = 1 + header.links
    levels = np.zeros(header.elements, dtype=np.int64)
    blocks: list[NDArray[np.uint32]] = []
    heights: list[int] = []
    position = 0
    for element in range(header.elements):
        if position >= len(words):
            raise DamagedError(f"{folder.name}: link_lists.bin is cut")
        levels[element], rest = divmod(int(words[position]), 4 * width)
        end = position + 1 + int(levels[element]) * width
        if rest or levels[element] > header.top_level or end > len(words):
            raise DamagedError(f"{folder.name}: link_lists.bin makes no sense")
        for height in range(1, int(levels[element]) + 1):
            blocks.append(words[position + 1 + (height - 1) * width : position + 1 + height * width])
            heights.append(height)
        position = end
    if levels[header.entry] != header.top_level:
        raise DamagedError(f"{folder.name}: the entry point is not on the top level")
    if blocks and not _links_are_sound(np.stack(blocks), np.array(heights), levels):
        raise DamagedError(f"{folder.name}: link_lists.bin has links that lead nowhere")


def _links_are_sound(blocks: NDArray[np.uint32], heights: NDArray[np.int64], levels: NDArray[np.int64]) -> bool:
    """Say whether each block's neighbours exist and reach up to the block's level.

    Blocks are (n, 1 + links): the count in the low 16 bits of the first word, then element numbers. `levels` is each
    element's own level.
    """
    counts = blocks[:, 0] & 0xFFFF
    if (counts >= blocks.shape[1]).any():
        return False
    used = np.arange(blocks.shape[1] - 1, dtype=np.uint32) < counts[:, None]
    neighbours = np.where(used, blocks[:, 1:], 0)
    if (neighbours >= len(levels)).any():
        return False
    return bool((~used | (levels[neighbours] >= heights[:, None])).all())
