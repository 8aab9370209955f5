"""Ed25519 signatures over JSON as Matrix counts it (appendix "Signing JSON"). Pure."""

import base64
import json
from typing import Any

from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

Json = dict[str, Any]


def canonical(value: Json) -> bytes:
    """What is signed of an object: sorted, without spaces, without its signatures and what servers add."""
    bare = {key: each for key, each in value.items() if key not in ("signatures", "unsigned")}
    return json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


class SigningKey:
    """A key made from a seed of 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = ECC.construct(curve="Ed25519", seed=seed)
        self.public = unpadded(self._key.public_key().export_key(format="raw"))

    @property
    def id(self) -> str:
        return f"ed25519:{self.public}"

    def sign(self, value: Json, user_id: str) -> Json:
        """The object with one signature more."""
        signature = unpadded(eddsa.new(self._key, "rfc8032").sign(canonical(value)))
        signatures: dict[str, Json] = {user: dict(each) for user, each in value.get("signatures", {}).items()}
        signatures.setdefault(user_id, {})[self.id] = signature
        return {**value, "signatures": signatures}


def is_signed(value: Json, user_id: str, public: str) -> bool:
    """Whether an object carries a valid signature of this user by this key."""
    signature = value.get("signatures", {}).get(user_id, {}).get(f"ed25519:{public}")
    if not isinstance(signature, str):
        return False
    try:
        key = eddsa.import_public_key(padded(public))
        eddsa.new(key, "rfc8032").verify(canonical(value), padded(signature))
    except ValueError:
        return False
    return True


def unpadded(raw: bytes) -> str:
    return base64.b64encode(raw).decode().rstrip("=")


def padded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4))
