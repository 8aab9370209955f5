"""Servers that end-to-end tests share. Fixtures of the session live here, so that each exists once."""

from tests.e2e.synapse import stock_synapse, synapse

__all__ = ["stock_synapse", "synapse"]
