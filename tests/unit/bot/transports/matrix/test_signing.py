"""Signed JSON as the specification's own examples have it, and the bot's cross-signing identity."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from bot.transports.matrix.crypto.cross_signing import Identity
from bot.transports.matrix.crypto.signing import SigningKey, canonical, is_signed, padded

SEED = padded("YJDBA9Xnr2sVqXD9Vj7XVUnmFZcZrlw8Md7kMW+3XA1")
"""Of the specification, appendix "Cryptographic Test Vectors"."""


@pytest.mark.parametrize(
    ("value", "signature"),
    [
        ({}, "K8280/U9SSy9IVtjBuVeLr+HpOB4BQFWbg+UZaADMtTdGYI7Geitb76LTrr5QV/7Xg4ahLwYGYZzuHGZKM5ZAQ"),
        (
            {"one": 1, "two": "Two"},
            "KqmLSbO39/Bzb0QIYE82zqLwsA+PDzYIpIRA2sRQ4sL53+sN6/fpNSoqE7BP7vBZhG6kYdD13EIMJpvhJI+6Bw",
        ),
    ],
)
def test_the_test_vectors_of_the_specification_hold(value: dict[str, Any], signature: str) -> None:
    signed = SigningKey(SEED).sign(value, "domain")
    assert list(signed["signatures"]["domain"].values()) == [signature]


def test_what_is_signed_leaves_signatures_and_additions_of_servers_out() -> None:
    value: dict[str, Any] = {"b": "ü", "a": 1, "signatures": {"x": {}}, "unsigned": {"y": 1}}
    assert canonical(value) == '{"a":1,"b":"ü"}'.encode()


def test_a_signature_holds_for_exactly_what_was_signed() -> None:
    key = SigningKey(os.urandom(32))
    signed = key.sign({"keys": {"a": "b"}}, "@merk:example.org")
    assert is_signed(signed, "@merk:example.org", key.public)
    assert not is_signed({**signed, "keys": {"a": "c"}}, "@merk:example.org", key.public)
    assert not is_signed(signed, "@eve:example.org", key.public)
    assert not is_signed(signed, "@merk:example.org", SigningKey(os.urandom(32)).public)
    signed["signatures"]["@merk:example.org"][key.id] = base64.b64encode(b"x" * 64).decode()
    assert not is_signed(signed, "@merk:example.org", key.public)


def test_the_identity_is_made_once_and_is_for_its_owners_eyes(tmp_path: Path) -> None:
    first, again = Identity(tmp_path), Identity(tmp_path)
    assert (first.master.public, first.self_signing.public) == (again.master.public, again.self_signing.public)
    assert first.master.public != first.self_signing.public
    assert (tmp_path / "cross_signing.json").stat().st_mode & 0o777 == 0o600
