"""Matrix, as `merk doctor` and `merk matrix verify` see it from outside: the account, its device, and its signature.

Rule: it asks with the running device's own token and changes nothing; nobody is logged in for it.
"""

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any

import structlog

from bot.checks import Wrong
from bot.checks.data import STALE_SECONDS, kept
from bot.checks.parts import RESTART
from bot.config import Settings
from bot.errors import CommandError
from bot.lock import Owner
from bot.pulse import key_of
from bot.transports.matrix import files
from bot.transports.matrix.client import Homeserver
from bot.transports.matrix.errors import MatrixError, explain

if TYPE_CHECKING:
    from bot.transports.matrix.crypto.cross_signing import Standing

log = structlog.get_logger(__name__)


async def matrix(settings: Settings, owner: Owner | None) -> str:
    """Whether the account answers, how old the last sync is, and whether strict clients trust the device."""
    section = settings.matrix
    if section.homeserver is None:
        return "not set up"
    device = _device(settings)
    if not device:
        return f"{section.user_id}; the first start logs in (merk run)"
    said = f"{section.user_id}, device {device['device_id']}"
    try:
        async with Homeserver(section.homeserver) as server:
            server.token = str(device["access_token"])
            await server.call("GET", "/account/whoami")
            standing = await _standing(server, settings, device)
    except MatrixError as error:
        raise Wrong(f"{said}: {explain(error)}", f"curl -sSI {section.homeserver}/_matrix/client/versions") from error
    if standing and not standing.fingerprint:
        return f"{said}; the first start makes its keys (merk run)"
    if standing and standing.signed != "signed":
        raise Wrong(f"{said} is not signed: strict clients send it no keys", "merk matrix verify")
    if owner is None or not owner.serves:
        return f"{said}; Merk is not running (merk run)"
    return f"{said}, {await asyncio.to_thread(_pulse, settings, owner, said)}"


async def fingerprint_lines(settings: Settings) -> list[str]:
    """What a person compares to verify the device. Raises `CommandError`."""
    section = settings.matrix
    if section.homeserver is None:
        raise settings.missing("matrix.homeserver", "Matrix is not set up.")
    device = _device(settings)
    if not device:
        raise CommandError("Merk has not logged in to Matrix yet: start it once (merk run).")
    from bot.transports.matrix.crypto.cross_signing import look  # noqa: PLC0415 - needs the extra `matrix`

    try:
        async with Homeserver(section.homeserver) as server:
            server.token = str(device["access_token"])
            standing = await look(server, str(device["user_id"]), str(device["device_id"]))
    except MatrixError as error:
        raise CommandError(f"Matrix: {explain(error)}.") from error
    key = " ".join(re.findall(".{1,4}", standing.fingerprint)) or "none: encryption is off, or Merk has not started yet"
    signed = {
        "signed": "yes: clients that trust signed devices only read it and are read by it",
        "foreign": "no: another client owns this account's cross-signing identity. Verify this device there, "
        "or reset the identity there and restart Merk",
    }.get(standing.signed, "no: set matrix.password once and restart Merk")
    if not standing.fingerprint:
        signed = "no: without keys there is nothing to sign"
    return [
        f"User:         {device['user_id']}",
        f"Device:       {device['device_id']}",
        f"Fingerprint:  {key}",
        f"Cross-signed: {signed}",
    ]


async def _standing(server: Homeserver, settings: Settings, device: dict[str, Any]) -> "Standing | None":
    """How the device stands; None without encryption."""
    if settings.matrix.encryption == "off":
        return None
    from bot.transports.matrix.crypto.cross_signing import look  # noqa: PLC0415 - needs the extra `matrix`

    return await look(server, str(device["user_id"]), str(device["device_id"]))


def _device(settings: Settings) -> dict[str, Any]:
    try:
        return files.read(settings.tenant.data_dir / "matrix" / files.DEVICE_FILE)
    except (OSError, ValueError) as error:
        raise Wrong(f"the device's file cannot be read ({error})", "merk restore FILE") from error


def _pulse(settings: Settings, owner: Owner, said: str) -> str:
    """What the running process has noted of its last sync."""
    noted, noted_at = kept(settings, key_of("matrix"))
    if noted_at < owner.since:  # by the process before this one
        noted, noted_at = {}, owner.since
    if time.time() - noted_at > STALE_SECONDS:
        raise Wrong(f"{said}: {owner.said} hangs", RESTART)
    if noted.get("problem"):
        raise Wrong(f"{said}: {noted['problem']}", "journalctl -u merk")
    heard_at = noted.get("at")
    age = time.time() - (heard_at or owner.since)
    if age > STALE_SECONDS:
        raise Wrong(f"{said}: no sync for {age / 60:.0f} minutes", RESTART)
    return f"synced {max(age, 0):.0f} s ago" if heard_at else "starting"
