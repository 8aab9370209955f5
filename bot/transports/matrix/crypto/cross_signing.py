"""The bot's own cross-signing identity: clients that trust signed devices only send their keys to nobody else.

Rule: an identity that is not ours is never replaced; the text says what its owner can do.
"""

import secrets
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import structlog

from bot.transports.matrix import files
from bot.transports.matrix.client import Homeserver, Json
from bot.transports.matrix.crypto.signing import SigningKey, is_signed
from bot.transports.matrix.errors import UNAUTHORIZED, MatrixError

log = structlog.get_logger(__name__)


class Signed(StrEnum):
    """How our device stands with the account's cross-signing identity."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    """There is no identity yet, or it has not signed us."""
    FOREIGN = "foreign"
    """The identity belongs to another client, and it has not signed us."""
    NEEDS_PASSWORD = "password"  # noqa: S105 - a state, no secret


@dataclass(frozen=True, slots=True)
class Standing:
    """What the homeserver says of our device."""

    signed: Signed
    fingerprint: str
    """The device's Ed25519 key; empty where the homeserver has none."""
    device: Json


class Identity:
    """Two keys of our own: the master key, which is the account's, and the one that signs devices."""

    def __init__(self, folder: Path) -> None:
        """Make the keys at first sight. Raises OSError and ValueError."""
        path = folder / files.SEEDS_FILE
        seeds = files.read(path)
        if not seeds:
            seeds = {"master": secrets.token_hex(32), "self_signing": secrets.token_hex(32)}
            files.write(path, seeds)
        self.master = SigningKey(bytes.fromhex(seeds["master"]))
        self.self_signing = SigningKey(bytes.fromhex(seeds["self_signing"]))


async def look(server: Homeserver, user_id: str, device_id: str, mine: str | None = None) -> Standing:
    """How the device stands; `mine` is our master key, where we have one. Raises `MatrixError`."""
    known = await server.call("POST", "/keys/query", {"device_keys": {user_id: [device_id]}})
    device: Json = known.get("device_keys", {}).get(user_id, {}).get(device_id, {})
    fingerprint = str(device.get("keys", {}).get(f"ed25519:{device_id}", ""))
    master = _key_of(known.get("master_keys", {}).get(user_id))
    signer: Json = known.get("self_signing_keys", {}).get(user_id) or {}
    by_master = master is not None and is_signed(signer, user_id, master)
    signing = _key_of(signer) if by_master else None
    if signing is not None and is_signed(device, user_id, signing):
        return Standing(Signed.SIGNED, fingerprint, device)
    is_foreign = master is not None and master != mine
    return Standing(Signed.FOREIGN if is_foreign else Signed.UNSIGNED, fingerprint, device)


async def ensure_signed(
    server: Homeserver, user_id: str, device_id: str, identity: Identity, password: str | None
) -> Signed:
    """Publish our identity where there is none, and sign our device with it. Raises `MatrixError`.

    The device's keys must have been uploaded before.
    """
    standing = await look(server, user_id, device_id, identity.master.public)
    if standing.signed is not Signed.UNSIGNED:
        return standing.signed
    if not await _is_published(server, user_id, identity) and not await _publish(server, user_id, identity, password):
        return Signed.NEEDS_PASSWORD
    bare = {key: value for key, value in standing.device.items() if key not in ("unsigned", "signatures")}
    body = {user_id: {device_id: identity.self_signing.sign(bare, user_id)}}
    answer = await server.call("POST", "/keys/signatures/upload", body)
    if answer.get("failures"):
        raise MatrixError(400, "M_INVALID_SIGNATURE", f"the device was not signed: {answer['failures']}")
    return Signed.SIGNED


async def _is_published(server: Homeserver, user_id: str, identity: Identity) -> bool:
    known = await server.call("POST", "/keys/query", {"device_keys": {user_id: []}})
    master = _key_of(known.get("master_keys", {}).get(user_id))
    signing = _key_of(known.get("self_signing_keys", {}).get(user_id))
    return (master, signing) == (identity.master.public, identity.self_signing.public)


async def _publish(server: Homeserver, user_id: str, identity: Identity, password: str | None) -> bool:
    """Upload both keys; False where the homeserver wants a password that we have not."""

    def public(usage: str, key: SigningKey) -> Json:
        return {"user_id": user_id, "usage": [usage], "keys": {key.id: key.public}}

    body: Json = {
        "master_key": public("master", identity.master),
        "self_signing_key": identity.master.sign(public("self_signing", identity.self_signing), user_id),
    }
    path = "/keys/device_signing/upload"
    try:
        await server.call("POST", path, body)
    except MatrixError as error:
        if error.status != UNAUTHORIZED or error.is_logged_out:
            raise
        if not password:
            return False
        who = {"type": "m.id.user", "user": user_id}
        auth: Json = {"type": "m.login.password", "identifier": who, "password": password}
        auth["session"] = error.body.get("session")
        await server.call("POST", path, {**body, "auth": auth})
    log.info("matrix.identity_published", user=user_id)
    return True


def _key_of(key: Json | None) -> str | None:
    keys: dict[str, str] = (key or {}).get("keys", {})
    return next(iter(keys.values()), None)
