"""Which of some texts a person means by a few words. Pure; similarity by vectors comes only after it found nothing."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory.language.text import normal_form
from memory.language.words import keys, telling_words

_ENOUGH = 0.5  # share of the query's words

_ABOVE: Final = 0.14
"""How far between noise and identity a text has to be near a query.

Measured with the built-in embedder (floor 0.07, so 0.20) on 15 + 20 facts in three languages, 161 questions and
paraphrases without a word in common, and 120 unrelated words: 79 % of the true ones are found and 11 % of the
unrelated find something; at the embedder's own floor it were 97 % and 82 %. A wrong fact offered to be forgotten is
worse than none.
"""
_GAP: Final = 0.06
"""By how much they have to be nearer than all the others."""
_LIKE_THE_BEST: Final = 0.8
_NEAREST: Final = 5


def by_words(texts: Sequence[str], query: str) -> list[int]:
    """The numbers of `all_words`; where there are none, of the texts with half of the words."""
    if whole := all_words(texts, query):
        return whole
    words = [keys(word) for word in telling_words(query)]
    shares = [_share(words, text) for text in texts]
    return sorted((i for i, share in enumerate(shares) if share >= _ENOUGH), key=lambda i: (-shares[i], i))


def all_words(texts: Sequence[str], query: str) -> list[int]:
    """The numbers of the texts that hold the query, and of those with all of its words in any form and language."""
    wanted = normal_form(query)
    if not wanted:
        return []
    words = [keys(word) for word in telling_words(query)]
    literal = {i for i, text in enumerate(texts) if wanted in normal_form(text)}
    whole = [i for i, text in enumerate(texts) if i in literal or _share(words, text) == 1]
    return sorted(whole, key=lambda i: (i not in literal, i))


def clearly_nearest(cosines: NDArray[np.float32], floor: float) -> list[int]:
    """The numbers of the vectors that are near and stand out from the rest, best first; none when nothing does."""
    if not len(cosines):
        return []
    order = [int(i) for i in np.argsort(-cosines, kind="stable")]
    best = float(cosines[order[0]])
    least = max(floor + _ABOVE * (1 - floor), best * _LIKE_THE_BEST)
    near = [i for i in order if cosines[i] >= least]
    rest = [float(cosines[i]) for i in order[len(near) :]]
    if len(near) > _NEAREST or (rest and best - rest[0] < _GAP):
        return []
    return near


def _share(words: Sequence[frozenset[str]], text: str) -> float:
    if not words:
        return 0.0
    there = frozenset(key for word in telling_words(text) for key in keys(word))
    return sum(not word.isdisjoint(there) for word in words) / len(words)
