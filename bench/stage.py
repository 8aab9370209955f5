"""A real `merk run` between the emulator and the stand-in, to be timed and weighed."""

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.merk_process import Merk, deployment

ADA = 42
WARM_TURNS = 10
SUMMARY = {
    "title": "The garden",
    "text": "Ada asked about the garden, time and again. It was told every time.",
    "request": "To be told about the garden.",
    "investigated": "",
    "learned": "The garden is what Ada likes to hear about.",
    "completed": "",
    "next_steps": "",
    "notes": "",
}


@dataclass(frozen=True)
class Start:
    seconds: float
    """From the process's start to its first getUpdates, median of five."""
    resident_mb: float
    """After ten turns and what was learned of them, with index and embedder loaded."""


async def started_process() -> Start:
    with tempfile.TemporaryDirectory() as folder:
        async with deployment(Path(folder)) as merk:
            merk.telegram.private_chat(ADA, "Ada")
            merk.model.on(background=True).reply(json=SUMMARY)  # an echo is no summary
            times: list[float] = []
            for _ in range(5):
                polls = merk.telegram.world.feed.polls
                began = time.monotonic()
                await merk.start(wait=False)
                await merk.telegram.wait_for(lambda before=polls: merk.telegram.world.feed.polls > before, timeout=60)
                times.append(time.monotonic() - began)
                if len(times) < 5:
                    await merk.stop()
            for number in range(WARM_TURNS):
                merk.telegram.say(ADA, f"tell me about the garden, {number}")
                await merk.telegram.wait_text(ADA, f"garden, {number}$", timeout=30)
            await _learned(merk)
            assert merk.process is not None
            return Start(round(sorted(times)[2], 2), resident_mb(merk.process.pid))


async def _learned(merk: Merk) -> None:
    """Wait until the session's summary has its vectors."""
    async with asyncio.timeout(60):
        while not merk.rows("SELECT 1 FROM summaries WHERE indexed_as IS NOT NULL"):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.5)


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return round(int(kilobytes) / 1024, 1)
