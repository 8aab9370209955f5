"""What people see of the bot: its name and its picture, set where they differ. Best effort."""

import hashlib
from pathlib import Path

import structlog

from bot.transports.matrix import files
from bot.transports.matrix.client import Homeserver, quoted
from bot.transports.matrix.errors import MatrixError

log = structlog.get_logger(__name__)

AVATAR_FILE = "avatar.json"
_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}


async def introduce(server: Homeserver, user_id: str, name: str, avatar: Path | None, folder: Path) -> None:
    """Set name and picture where they are not those of the configuration."""
    try:
        if name:
            await _put(server, user_id, "displayname", name)
        if avatar:
            await _put(server, user_id, "avatar_url", await _stored(server, avatar, folder))
    except MatrixError as error:
        log.warning("matrix.not_introduced", error=error.errcode, detail=error.detail)
    except OSError as error:
        log.warning("matrix.no_avatar", file=str(avatar), error=error.strerror)


async def _put(server: Homeserver, user_id: str, key: str, value: str) -> None:
    path = f"/profile/{quoted(user_id)}"
    try:
        known = await server.call("GET", f"{path}/{key}")
    except MatrixError as error:
        if error.is_passing:
            raise
        known = {}  # a profile of which nothing was ever set may be "not found"
    if known.get(key) != value:
        await server.call("PUT", f"{path}/{key}", {key: value})


async def _stored(server: Homeserver, avatar: Path, folder: Path) -> str:
    """The address of the picture on the homeserver; one that was stored before is not stored again."""
    picture = avatar.read_bytes()
    digest = hashlib.sha256(picture).hexdigest()
    kept = files.read(folder / AVATAR_FILE)
    if kept.get("sha256") != digest:
        address = await server.upload(picture, _TYPES.get(avatar.suffix.lower(), "image/png"), avatar.name)
        kept = {"sha256": digest, "url": address}
        files.write(folder / AVATAR_FILE, kept)
    return str(kept["url"])
