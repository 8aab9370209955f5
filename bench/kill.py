"""kill -9 at many random points of a running conversation: nothing lost, nothing twice, nothing stuck."""

import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bot.errors import CommandError
from tests.e2e import synapse
from tests.e2e.e2ee_client import is_installed
from tests.e2e.killing import Conversation, kill_at_random_points, on_telegram
from tests.e2e.killing_matrix import on_matrix

Network = Literal["telegram", "matrix"]


async def measure(network: Network, kills: int, seed: int) -> dict[str, object]:
    """Kill so many times in one conversation, with one data directory. Raises `CommandError`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        async with _conversation(network, Path(folder)) as talk:
            aftermath = await kill_at_random_points(talk, kills, seed)
    return {
        "benchmark": "kill",
        "network": network,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "kills": kills,
        "seed": seed,
        "seconds": round(time.monotonic() - began),
        "is_clean": aftermath.is_clean,
        **asdict(aftermath),
    }


@asynccontextmanager
async def _conversation(network: Network, folder: Path) -> AsyncGenerator[Conversation, None]:
    if network == "telegram":
        async with on_telegram(folder) as talk:
            yield talk
        return
    if not synapse.PYTHON.exists() or not is_installed():
        raise CommandError("Synapse or the strict Matrix client is missing: run scripts/setup e2e, with Node.js there.")
    with synapse.Synapse.running(folder / "synapse") as server:
        async with on_matrix(server, folder) as talk:
            yield talk


def table(result: dict[str, object]) -> str:
    """The figures for people."""
    return "\n".join(f"{name:>16}: {value}" for name, value in result.items())
