"""The weights of fusion from questions whose evidence is known: a listwise linear model, in numpy and seconds.

Rule: what a weight is judged by was never seen by the run that chose it: one conversation is left out in turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memory.recall.shelf import Floats

STEPS = 120
_RATE = 0.1
_SHRINK = 0.002
"""Of each weight, towards 0: what carries nothing gets nothing."""


@dataclass(frozen=True)
class Sample:
    """One question: each message's views, and which messages are its evidence."""

    views: Mapping[str, Floats]
    gold: Sequence[int]


def fit(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, float]:
    """The weights under which the evidence gets the largest share of a softmax over all messages (Adam)."""
    table = np.concatenate([np.stack([each.views[name] for name in names], axis=1) for each in samples])
    table = table.astype(np.float32)
    lengths = [len(next(iter(each.views.values()))) for each in samples]
    starts = np.cumsum([0, *lengths[:-1]])
    of = np.repeat(np.arange(len(samples)), lengths)
    gold = np.zeros(len(table), dtype=np.float32)
    for start, each in zip(starts, samples, strict=True):
        gold[start + np.array(each.gold)] = 1 / len(each.gold)
    wanted = gold @ table / len(samples)
    weights = np.ones(len(names), dtype=np.float32)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        scores = table @ weights
        scores = np.exp(scores - np.maximum.reduceat(scores, starts)[of])
        shares = scores / np.add.reduceat(scores, starts)[of]
        slope = shares @ table / len(samples) - wanted + _SHRINK * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        rate = _RATE * (0.3 if step > STEPS * 0.7 else 1)
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}
