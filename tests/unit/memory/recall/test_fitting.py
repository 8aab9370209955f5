"""Learning the weights of fusion: a little from many questions, nothing from few, and never for the worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.recall.fitting import FITTED, LEAST_SAMPLES, Sample, fit, refit, whole
from memory.recall.fusion import WEIGHTS, fuse
from memory.recall.shelf import Floats

MESSAGES = 40


def sample(seed: int, telling: str, *, strength: float = 1.0) -> Sample:
    """A question whose evidence stands out in one view and nowhere else."""
    chance = np.random.default_rng(seed)
    views: dict[str, Floats] = {name: chance.random(MESSAGES, dtype=np.float32) for name in FITTED}
    gold = int(chance.integers(MESSAGES))
    views[telling] = (views[telling] * 0.5).astype(np.float32)
    views[telling][gold] = 0.5 + 0.5 * strength
    return Sample(views, [gold], np.zeros(MESSAGES, dtype=np.bool_))


def test_a_view_that_tells_gets_the_weight() -> None:
    weights = fit([sample(seed, "meaning") for seed in range(90)], FITTED)
    assert max(weights, key=weights.__getitem__) == "meaning"


def test_weights_that_begin_somewhere_are_held_there() -> None:
    samples = [sample(seed, "keys") for seed in range(30)]
    loose, tight = (fit(samples, FITTED, start=WEIGHTS, shrink=shrink) for shrink in (0.0, 1.0))
    assert abs(tight["keys"] - WEIGHTS["keys"]) < abs(loose["keys"] - WEIGHTS["keys"])


def test_too_few_questions_teach_nothing() -> None:
    assert refit([sample(seed, "meaning") for seed in range(LEAST_SAMPLES - 1)]) is None


def test_what_people_cite_can_teach_better_weights() -> None:
    """Judged on questions that were not learned from."""
    found = refit([sample(seed, "asks") for seed in range(150)])
    assert found is not None
    assert found.is_better
    assert found.weights["asks"] > WEIGHTS["asks"]
    assert found.weights["replaced"] == WEIGHTS["replaced"]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), telling=st.sampled_from(FITTED), strength=st.floats(0, 1))
def test_what_is_taken_is_never_worse_than_the_default_on_the_questions_held_out(
    seed: int, telling: str, strength: float
) -> None:
    samples = [sample(seed + at, telling, strength=strength) for at in range(75)]
    found = refit(samples)
    assert found is not None
    taken = found.weights if found.is_better else WEIGHTS
    held_out = samples[::3]

    def first_evidence(weights: dict[str, float]) -> float:
        scores = [fuse(each.views, weights=weights, foreign=each.foreign) for each in held_out]
        ranks = [1 + int((of > of[list(each.gold)].max()).sum()) for of, each in zip(scores, held_out, strict=True)]
        return float(np.mean([1 / rank for rank in ranks]))

    assert first_evidence(dict(taken)) >= first_evidence(dict(WEIGHTS))
    assert found.default == pytest.approx(first_evidence(dict(WEIGHTS)))


def test_a_view_that_a_question_lacks_is_nothing() -> None:
    found = whole({"said": np.ones(3, dtype=np.float32)})
    assert set(FITTED) <= found.keys()
    assert found["keys"].tolist() == [0, 0, 0]
