"""Which earlier sessions bear on a question, and why: by what was said in them and by their summaries. Pure.

Rule: what was said decides; a summary raises a session that was found already, and finds one that words did not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.recall.finder import Line

WORDS_BONUS = 0.3
"""What all of the question's words in a summary add to a cosine."""
ENOUGH_WORDS = 0.5
"""Weight of the words of a summary that is evidence without meaning."""
BEST_OF_MANY = 0.05
"""On top of the embedder's floor, which is for one pair: a summary's cosine is the best of its sentences."""
NEAR_THE_BEST = 0.6
"""A summary that scores less than this share of the best is noise beside it."""
OF_SUMMARIES = 0.3
"""The best summary's share of the best line's score."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session, and why it was found."""

    session_id: int
    score: float
    """1 for the session of the best line, more where its summary agrees."""
    cosine: float | None
    words: float
    lines: tuple[Line, ...] = ()

    @property
    def reason(self) -> str:
        """As codes with figures: "meaning 0.31, words 0.50"."""
        parts = [f"meaning {self.cosine:.2f}"] if self.cosine is not None else []
        return ", ".join([*parts, f"words {self.words:.2f}"] if self.words else parts)


def rank(
    said: Sequence[Sequence[Line]],
    cosines: Mapping[int, float],
    words: Mapping[int, float],
    *,
    floor: float,
    limit: int,
) -> list[Candidate]:
    """The sessions to recall, best first.

    `said` holds each found session's best lines, `cosines` and `words` those of summaries; any may be empty.
    """
    lines = {of[0].session_id: tuple(of) for of in said}
    top = max((of[0].score for of in said), default=0.0)
    summaries = _of_summaries(cosines, words, floor)
    near = max(summaries.values(), default=0.0)
    found = [
        Candidate(
            session_id=each,
            score=(lines[each][0].score / top if each in lines and top > 0 else 0.0)
            + (OF_SUMMARIES * summaries[each] / near if each in summaries else 0.0),
            cosine=_best([line.cosine for line in lines.get(each, ())] + [cosines.get(each)]),
            words=max([line.words for line in lines.get(each, ())] + [words.get(each, 0.0)]),
            lines=lines.get(each, ()),
        )
        for each in sorted({*lines, *summaries}, reverse=True)
    ]
    return sorted(found, key=lambda each: -each.score)[:limit]


def _of_summaries(cosines: Mapping[int, float], words: Mapping[int, float], floor: float) -> dict[int, float]:
    found = {
        each: max(cosines.get(each, 0.0), 0.0) + WORDS_BONUS * words.get(each, 0.0)
        for each in {*cosines, *words}
        if cosines.get(each, -1.0) >= floor + BEST_OF_MANY or words.get(each, 0.0) >= ENOUGH_WORDS
    }
    least = max(found.values(), default=0.0) * NEAR_THE_BEST
    return {each: score for each, score in found.items() if score >= least}


def _best(cosines: Sequence[float | None]) -> float | None:
    return max((each for each in cosines if each is not None), default=None)
