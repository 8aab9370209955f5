"""The keys of Merk's Matrix device, in a backup and back out of it.

Rule: keys only ever go forward. What is there stays: older keys over newer ones would end every encrypted session.
"""

import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

from bot.transports.matrix.files import DEVICE_FILE, IRREPLACEABLE, STORE_FILE, make_folder

_FOLDER = "matrix"


def add_keys(archive: tarfile.TarFile, data_dir: Path, staging: Path) -> None:
    """Put the device's files into a backup; nothing where Matrix was never set up. Merk may be running."""
    folder = data_dir / _FOLDER
    for name in IRREPLACEABLE:
        if (folder / name).is_file():
            archive.add(folder / name, f"{_FOLDER}/{name}")
    if (folder / STORE_FILE).is_file():
        copy = staging / STORE_FILE
        with closing(sqlite3.connect(f"{(folder / STORE_FILE).absolute().as_uri()}?mode=ro", uri=True)) as source:
            source.execute("VACUUM INTO ?", (str(copy),))
        archive.add(copy, f"{_FOLDER}/{STORE_FILE}")


def restore_keys(source: Path, data_dir: Path) -> bool:
    """Take the device's files out of a backup; False where there are some already, or the backup has none."""
    folder = data_dir / _FOLDER
    if (folder / DEVICE_FILE).exists() or not tarfile.is_tarfile(source):
        return False
    with tarfile.open(source, "r:gz") as archive:
        there = {f"{_FOLDER}/{name}": name for name in (*IRREPLACEABLE, STORE_FILE)}
        members = [member for member in archive.getmembers() if member.name in there and member.isfile()]
        for member in members:
            content = archive.extractfile(member)
            assert content is not None
            make_folder(folder)
            target = folder / there[member.name]
            target.touch(mode=0o600)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)
    return bool(members)
