"""kill -9 at many random points of a running conversation: nothing lost, nothing twice, nothing stuck."""

import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.killing import kill_at_random_points


async def measure(kills: int, seed: int) -> dict[str, object]:
    """Kill so many times in one conversation, with one data directory."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        aftermath = await kill_at_random_points(Path(folder), kills, seed)
    return {
        "benchmark": "kill",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "kills": kills,
        "seed": seed,
        "seconds": round(time.monotonic() - began),
        "is_clean": aftermath.is_clean,
        **asdict(aftermath),
    }


def table(result: dict[str, object]) -> str:
    """The figures for people."""
    return "\n".join(f"{name:>16}: {value}" for name, value in result.items())
