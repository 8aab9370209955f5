"""The floor of an embedder: measured, never guessed."""

import numpy as np
import pytest

from bot.embedders.calibration import PROBE, calibrate_floor
from memory.ports import Vector


def pairs(gold: float, noise: float) -> tuple[list[Vector], list[Vector]]:
    """As many questions and answers as the probe: cosine `gold` on the diagonal, `noise` beside it."""
    size = len(PROBE)
    cosines = np.full((size, size), noise) + np.eye(size) * (gold - noise)
    return list(np.eye(size, dtype=np.float32)), list(cosines.T.astype(np.float32))


@pytest.mark.parametrize(
    ("gold", "noise", "floor"),
    [
        (0.32, 0.03, 0.05),  # noise is nearly nothing: the lowest floor
        (0.32, 0.10, 0.10),
        (0.81, 0.74, 0.74),  # a model whose cosines are all high (P13: a fixed 0.6 would be worthless here)
        (0.30, 0.40, 0.30),  # a model that understands nothing still finds its answers
    ],
)
def test_p13_the_floor_follows_the_model(gold: float, noise: float, floor: float) -> None:
    assert calibrate_floor(*pairs(gold, noise)) == pytest.approx(floor)


def test_the_probe_has_three_languages_and_no_pair_twice() -> None:
    assert len(set(PROBE)) == len(PROBE) == 15
    assert sum(any("а" <= letter <= "я" for letter in question) for question, _ in PROBE) == 5
