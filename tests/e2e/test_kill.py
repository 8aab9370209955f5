"""kill -9 in the middle of a conversation. The full count is `merk bench kill`."""

from pathlib import Path

from tests.e2e.killing import kill_at_random_points


async def test_p57_kill_9_at_random_points_loses_nothing_and_answers_nothing_twice(tmp_path: Path) -> None:
    aftermath = await kill_at_random_points(tmp_path, kills=8, seed=20261130)
    assert aftermath.is_clean, aftermath
