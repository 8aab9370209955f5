"""kill -9 in the middle of a conversation. `merk bench kill` does it more often, with `--network matrix` there, too."""

from pathlib import Path

import pytest

from tests.e2e.killing import kill_at_random_points, on_telegram
from tests.e2e.killing_matrix import on_matrix
from tests.e2e.synapse import Synapse


async def test_p57_kill_9_at_random_points_loses_nothing_and_answers_nothing_twice(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as talk:
        aftermath = await kill_at_random_points(talk, kills=8, seed=20261130)
    assert aftermath.is_clean, aftermath


@pytest.mark.external
@pytest.mark.timeout(300)
async def test_p57_kill_9_loses_nothing_in_an_encrypted_room_either(synapse: Synapse, tmp_path: Path) -> None:
    async with on_matrix(synapse, tmp_path) as talk:
        aftermath = await kill_at_random_points(talk, kills=6, seed=20261130)
    assert aftermath.is_clean, aftermath
