"""The library that keeps the keys is the one that is kept up."""

from importlib.metadata import distributions


def test_p53_encryption_stands_on_vodozemac_and_not_on_libolm() -> None:
    """Wherever Merk with Matrix is installed: the old C library is deprecated since 2024."""
    installed = {each.metadata["Name"].lower() for each in distributions()}
    assert "vodozemac" in installed
    assert not installed & {"python-olm", "libolm", "pycryptodomex-olm"}
