"""Small files of the bot's account: for its owner's eyes, and whole or not there at all."""

import json
import os
import secrets
from pathlib import Path
from typing import Any, cast

DEVICE_FILE, SECRET_FILE, SEEDS_FILE, CARDS_FILE = "device.json", "secret.json", "cross_signing.json", "cards.json"
STORE_FILE = "crypto.db"
IRREPLACEABLE = (DEVICE_FILE, SECRET_FILE, SEEDS_FILE, CARDS_FILE)
"""Beside the store: without them nobody shares keys with us any more, and buttons lose what they do."""


def make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def read(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is none. Raises OSError and ValueError."""
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{path} does not hold a JSON object")  # noqa: TRY004 - a damaged file, not a wrong argument
    return cast("dict[str, Any]", value)


def write(path: Path, value: dict[str, Any]) -> None:
    """Put a JSON object in the place of the file, with mode 0600; a kill leaves the former one."""
    make_folder(path.parent)
    partial = path.with_name(f".{path.name}.part")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def own_secret(path: Path) -> str:
    """A secret that is made once and never changes."""
    kept = read(path)
    if not kept:
        kept = {"secret": secrets.token_urlsafe(32)}
        write(path, kept)
    return str(kept["secret"])
