"""What a user would take instead of Merk's memory, on the same questions and the same machine."""

from bench.peers.compare import measure, table

__all__ = ["measure", "table"]
