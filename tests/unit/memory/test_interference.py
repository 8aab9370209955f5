"""Non-interference: nobody is shown a word whose sources they may not all see, whatever happened before."""

import asyncio
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench import interference
from bench.interference import OPERATIONS, PER_LIFE, LeakError, Town

SEQUENCES = int(os.environ.get("MERK_SEQUENCES", "2000"))

_OPERATION = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 2), st.integers(0, 11), st.integers(0, 11))
_SEQUENCE = st.tuples(
    st.lists(_OPERATION, min_size=1, max_size=interference.LONGEST), st.integers(0, 2), st.integers(0, 11)
)
_LIFE = st.lists(_SEQUENCE, min_size=PER_LIFE, max_size=PER_LIFE)


class _Towns:
    """A new town now and then: what lives in one database is told apart, too."""

    def __init__(self, folder: Path, runner: asyncio.Runner) -> None:
        self._folder = folder
        self._runner = runner
        self._empty = runner.run(interference.empty_database(folder))
        self._town: Town | None = None
        self._lives = 0

    def live(self, life: list[interference.Sequence_]) -> None:
        if self._lives % interference.PER_TOWN == 0:
            self.close()
            self._town = self._runner.run(interference.town_in(self._folder / f"town{self._lives}", self._empty))
        self._lives += 1
        assert self._town is not None
        self._runner.run(_live(self._town, life))

    def close(self) -> None:
        if self._town is not None:
            self._runner.run(self._town.close())
            self._town = None


async def _live(town: Town, life: list[interference.Sequence_]) -> None:
    await interference.live(town, await town.life(), life)


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Generator[_Towns, None, None]:
    with asyncio.Runner() as runner:
        made = _Towns(tmp_path_factory.mktemp("towns"), runner)
        yield made
        made.close()


@pytest.mark.timeout(600)  # on a machine that is busy with other things
@given(_LIFE)
@settings(
    max_examples=max(SEQUENCES // PER_LIFE, 1),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_s1_nobody_is_shown_what_they_may_not_see(towns: _Towns, life: list[interference.Sequence_]) -> None:
    towns.live(life)


def test_the_oracle_would_notice(towns: _Towns, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a scope that shows everything to everybody, the same look finds a leak."""

    def everything(*_of: object, **_rest: object) -> tuple[str, ...]:
        return (*(f"u{number}" for number in range(1, 100)), "p")

    monkeypatch.setattr("memory.storage.members.shown_to", everything)
    said: list[interference.Operation] = [("keep", 0, 0, 0), ("keep", 1, 0, 0)]
    with pytest.raises(LeakError):
        towns.live([(said, 2, 0)])
