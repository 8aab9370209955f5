"""Several judgements of the same candidates made one: pure arithmetic, and the one place of its weights.

Rule: nothing is left out before fusion, and a judgement that cannot be made of a candidate (words of another language)
does not count against it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from memory.recall.shelf import Flags, Floats

Method = Literal["linear", "rrf", "weighted_rrf", "minmax"]

WORDS: Final = ("said", "around", "session")
"""The views that need words in common."""

WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "said": 1.85,
        "around": 3.25,
        "session": 2.4,
        "meaning": 3.25,
        "speaker": 2.6,
        "asks": -0.6,
        "answers": 1.75,
        "when": 1.0,
        "newer": 0.2,
        "replaced": -3.0,
        "keys": 1.4,
        "keyed": 1.2,
    }
)
"""Each view's weight; a view is 0 to 1. docs/adr/0019 names the run that chose them."""

PARAPHRASED: Final = 0.3
ACROSS: Final = 0.4
"""Of all that words could give, the share that full likeness in meaning stands in for where there are no common words:
in the question's language and in another one."""


def fuse(
    views: Mapping[str, Floats],
    *,
    method: Method = "linear",
    weights: Mapping[str, float] = WEIGHTS,
    foreign: Flags | None = None,
    k: int = 60,
) -> Floats:
    """One score a candidate from a score each of every view, all of equal length.

    `linear` adds the views as they are, weighted; `minmax` brings each to 0..1 first and weighs all alike; `rrf` adds
    1 / (k + rank), `weighted_rrf` with the weights. What has a negative weight counts against a candidate in all of
    them. `foreign` marks candidates in another language than the question:
    there likeness in meaning stands in for words. Raises ValueError for an unknown method.
    """
    if method == "rrf":
        return _sum({name: _sign(name, weights) * _reciprocal(view, k) for name, view in views.items()})
    if method == "weighted_rrf":
        return _sum({name: weights.get(name, 0.0) * _reciprocal(view, k) for name, view in views.items()})
    if method == "minmax":
        return _sum({name: _sign(name, weights) * to_unit(view) for name, view in views.items()})
    if method != "linear":
        raise ValueError(f"unknown fusion {method!r}: use linear, rrf, weighted_rrf or minmax")
    words, others = _apart(views)
    lexical = _weighted(words, weights)
    if "meaning" in views and words:
        could = np.float32(sum(weights.get(name, 0.0) for name in WORDS))
        across, paraphrased = could * np.float32(ACROSS), could * np.float32(PARAPHRASED)
        share = paraphrased if foreign is None else np.where(foreign, across, paraphrased)
        np.maximum(lexical, share * views["meaning"], out=lexical)
    return lexical + _weighted(others, weights)


def to_unit(scores: Floats) -> Floats:
    """Scores from 0, the least, to 1, the most."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    return ((scores - low) / max(float(high - low), 1e-9)).astype(np.float32)


def _sign(name: str, weights: Mapping[str, float]) -> np.float32:
    return np.float32(-1.0 if weights.get(name, 1.0) < 0 else 1.0)


def _reciprocal(scores: Floats, k: int) -> Floats:
    """Of the rank of each; equal scores share the last of theirs, so that having none of it is worth nothing."""
    ranks = len(scores) - np.searchsorted(np.sort(scores), scores, side="left")
    return (1 / (k + ranks)).astype(np.float32)


def _apart(views: Mapping[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The views that need words in common, and the others."""
    words = {name: view for name, view in views.items() if name in WORDS}
    return words, {name: view for name, view in views.items() if name not in WORDS}


def _weighted(views: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """The sum of views, each times its weight; one 0 for no views."""
    total = np.zeros(len(next(iter(views.values()), "0")), dtype=np.float32)
    for name, view in views.items():
        total += view * np.float32(weights.get(name, 0.0))
    return total


def _sum(parts: Mapping[str, Floats]) -> Floats:
    total = np.zeros(1, dtype=np.float32)
    for part in parts.values():
        total = total + part
    return total
