"""Which earlier sessions bear on a question, and why. Pure.

Nothing is gated before the two arms meet: meaning above its floor, or enough of the question's own words. Words are a
bonus to meaning, so that they never drown what was said in another language (measured: rank fusion does).
"""

from collections.abc import Mapping
from dataclasses import dataclass

WORDS_BONUS = 0.3
"""What all of the question's words add to a cosine. Tuned on two LoCoMo conversations (231 questions, 38 sessions, USE,
extractive summaries): right sessions among three .666 with .15, .772 with .3 and more; on 45 questions in three
languages among 35 sessions it makes no difference (.89)."""
ENOUGH_WORDS = 0.5
"""Weight of the words that is evidence without meaning."""
BEST_OF_MANY = 0.05
"""On top of the embedder's floor, which is for one pair: a session's cosine is the best of its many sentences."""
NEAR_THE_BEST = 0.6
"""What scores less than this share of the best is noise beside it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a session was found."""

    session_id: int
    cosine: float | None
    words: float
    score: float

    @property
    def reason(self) -> str:
        """As codes with figures: "meaning 0.31, words 0.50"."""
        parts = [f"meaning {self.cosine:.2f}"] if self.cosine is not None else []
        return ", ".join([*parts, f"words {self.words:.2f}"] if self.words else parts)


def rank(cosines: Mapping[int, float], words: Mapping[int, float], *, floor: float, limit: int) -> list[Evidence]:
    """The sessions to recall, best first. `cosines` is empty where the dense arm did not answer."""
    found = [
        Evidence(session_id, cosines.get(session_id), weight, _score(cosines.get(session_id), weight))
        for session_id, weight in ((each, words.get(each, 0.0)) for each in sorted({*cosines, *words}, reverse=True))
        if cosines.get(session_id, -1.0) >= floor + BEST_OF_MANY or weight >= ENOUGH_WORDS
    ]
    best = max((each.score for each in found), default=0.0)
    near = [each for each in found if each.score >= best * NEAR_THE_BEST]
    return sorted(near, key=lambda each: -each.score)[:limit]


def _score(cosine: float | None, weight: float) -> float:
    return max(cosine or 0.0, 0.0) + WORDS_BONUS * weight
