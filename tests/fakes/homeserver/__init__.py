"""A homeserver in this process, strict and small: what a bot uses of the client-server API, and people to talk to.

Rule: it answers as Synapse does (facts measured in tests/e2e/test_matrix.py), and refuses what Synapse refuses.
"""

from .server import HomeserverFake

__all__ = ["HomeserverFake"]
