"""The nightly measurement: once a day at its hour, over restarts, and noted even where it fails."""

from pathlib import Path

import pytest

from bot.jobs.measuring import RecallMeasuring
from memory.storage.database import Database
from tests.fakes.clock import FrozenClock
from tests.fakes.house import House, house


class Counting:
    """Stands where the measurement is made."""

    def __init__(self, *, fails: bool = False) -> None:
        self.runs = 0
        self.fails = fails

    async def run(self) -> None:
        self.runs += 1
        if self.fails:
            raise OSError("no disk")


def job(opened: House) -> RecallMeasuring:
    return RecallMeasuring(opened.database, opened.clock, opened.app.memory, "UTC", "03:30")


@pytest.mark.parametrize("fails", [False, True])
async def test_it_runs_once_a_day(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    async with house(database, tmp_path) as opened:
        counting = Counting(fails=fails)
        monkeypatch.setattr(opened.app.memory, "quality", counting)
        clock: FrozenClock = opened.clock
        clock.advance(hours=24 - clock.now().hour)
        for _ in range(3):
            await tried(job(opened))
        assert counting.runs == 0
        clock.advance(hours=4)
        for _ in range(3):
            await tried(job(opened))
        assert counting.runs == 1
        clock.advance(hours=24)
        await tried(job(opened))
        assert counting.runs == 2


async def tried(measuring: RecallMeasuring) -> None:
    """As the watch does: a failure does not end the clock."""
    try:
        await measuring.run()
    except OSError:
        return
