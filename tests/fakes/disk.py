"""What is on disk, read while a program may still be writing there."""

import os
from collections.abc import Iterator
from pathlib import Path


def files_under(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below `folder` with its bytes, in order of path; what is deleted meanwhile is not there any more.

    `Path.rglob` raises when a folder goes while it walks; `os.walk` does not.
    """
    paths = sorted(Path(root) / name for root, _, names in os.walk(folder) for name in names)
    for path in paths:
        try:
            yield path, path.read_bytes()
        except FileNotFoundError:
            continue
