"""The weights of fusion from questions whose evidence is known: a listwise linear model, in numpy and seconds. Pure.

Rule: what weights are judged by was never seen by the run that chose them, and they are taken only if they do better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memory.recall.fusion import WEIGHTS, fuse
from memory.recall.shelf import Flags, Floats

STEPS = 120
FITTED = ("said", "around", "session", "meaning", "speaker", "asks", "answers", "keys", "keyed")
"""What can be learned from questions and their evidence; the others are set by hand."""
LEAST_SAMPLES = 60
"""Fewer say nothing about nine weights."""
_RATE = 0.1
_SHRINK = 0.002
"""Of each weight, towards 0 or where it began: what carries nothing gets nothing."""
_HELD_OUT = 3
"""Every so-manyth question judges and is not learned from."""


@dataclass(frozen=True)
class Sample:
    """One question: each message's views, and which messages are its evidence."""

    views: Mapping[str, Floats]
    gold: Sequence[int]
    foreign: Flags | None = None
    """Which messages are in another language than the question."""


@dataclass(frozen=True, slots=True)
class Refit:
    """What was learned, and what it is worth on the questions that were held out."""

    weights: Mapping[str, float]
    default: float
    fitted: float
    """Mean reciprocal rank of the first evidence, with the default weights and with these."""

    @property
    def is_better(self) -> bool:
        return self.fitted > self.default


def fit(
    samples: Sequence[Sample],
    names: Sequence[str],
    *,
    start: Mapping[str, float] | None = None,
    shrink: float = _SHRINK,
) -> dict[str, float]:
    """The weights under which the evidence gets the largest share of a softmax over all messages (Adam).

    With `start` they begin there and are held there, so that few questions move them little.
    """
    table = np.concatenate([np.stack([each.views[name] for name in names], axis=1) for each in samples])
    table = table.astype(np.float32)
    lengths = [len(next(iter(each.views.values()))) for each in samples]
    starts = np.cumsum([0, *lengths[:-1]])
    of = np.repeat(np.arange(len(samples)), lengths)
    gold = np.zeros(len(table), dtype=np.float32)
    for first, each in zip(starts, samples, strict=True):
        gold[first + np.array(each.gold)] = 1 / len(each.gold)
    wanted = gold @ table / len(samples)
    held = np.array([0.0 if start is None else start[name] for name in names], dtype=np.float32)
    weights = np.ones(len(names), dtype=np.float32) if start is None else held.copy()
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        scores = table @ weights
        scores = np.exp(scores - np.maximum.reduceat(scores, starts)[of])
        shares = scores / np.add.reduceat(scores, starts)[of]
        slope = shares @ table / len(samples) - wanted + shrink * (weights - held)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        rate = _RATE * (0.3 if step > STEPS * 0.7 else 1)
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}


def whole(views: Mapping[str, Floats], names: Sequence[str] = FITTED) -> dict[str, Floats]:
    """With the views that a question lacks: nobody is named, nothing was noticed, the embedder was silent."""
    nothing = np.zeros(len(next(iter(views.values()))), dtype=np.float32)
    return dict.fromkeys(names, nothing) | dict(views)


def refit(samples: Sequence[Sample]) -> Refit | None:
    """Fit on two thirds of the questions and judge on the rest; None where there are too few to learn from."""
    if len(samples) < LEAST_SAMPLES:
        return None
    learned = [each for at, each in enumerate(samples) if at % _HELD_OUT]
    judged = samples[::_HELD_OUT]
    weights = dict(WEIGHTS) | fit(learned, FITTED, start=WEIGHTS, shrink=_SHRINK * 10)
    return Refit(weights, _mean_reciprocal_rank(judged, WEIGHTS), _mean_reciprocal_rank(judged, weights))


def _mean_reciprocal_rank(samples: Sequence[Sample], weights: Mapping[str, float]) -> float:
    found: list[float] = []
    for each in samples:
        scores = fuse(each.views, weights=weights, foreign=each.foreign)
        found.append(1 / (1 + int((scores > scores[list(each.gold)].max()).sum())))
    return float(np.mean(found))
