"""Which messages, and so which sessions, bear on a question: both arms, all views, one score.

Rule: the owners come first; within them nothing is left out before the scores are one.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial

import numpy as np

from memory.language.words import content_words
from memory.recall.evidence import Evidence, Found
from memory.recall.fusion import WEIGHTS, Method, fuse
from memory.recall.question import Question, named_in, take_apart
from memory.recall.shelf import Flags, Floats, Ints, Shelf
from memory.recall.views import ENOUGH_WORDS, key_views, look, newer_view, speaker_view, when_view
from memory.types import Lead

_FOREMOST = 1000
_AT_ONCE = 12_000
"""Fewer messages are judged within a millisecond: as long as a trip to another thread takes where cores are few."""


@dataclass(frozen=True, slots=True)
class Line:
    """A message that was found, and why."""

    message_id: int
    session_id: int
    score: float
    cosine: float | None
    words: float
    """Of the weight of the question's words, what share stands in or around it."""


@dataclass(frozen=True)
class Ranked:
    """All messages of the owners with their scores."""

    shelf: Shelf
    scores: Floats
    cosines: Floats | None
    words: Floats
    views: Mapping[str, Floats]
    foreign: Flags
    """Which are in another language than the question."""

    @cached_property
    def foremost(self) -> Ints:
        """The places of the best `_FOREMOST` messages."""
        return self._best(_FOREMOST)

    def best(self, most: int) -> Ints:
        """Places on the shelf, best first; on equal scores the later message."""
        return self.foremost[:most] if most <= _FOREMOST else self._best(most)

    def _best(self, most: int) -> Ints:
        if most < len(self.scores):
            least = np.partition(self.scores, -most)[-most]
            among = np.flatnonzero(self.scores >= least)
        else:
            among = np.arange(len(self.scores))
        return self.ordered(among)[:most]

    def ordered(self, among: Ints) -> Ints:
        """These places, best first; on equal scores the later message."""
        return among[np.lexsort((-self.shelf.ids[among], -self.scores[among]))]

    def line(self, place: int) -> Line:
        return Line(
            message_id=int(self.shelf.ids[place]),
            session_id=int(self.shelf.sessions[place]),
            score=float(self.scores[place]),
            cosine=None if self.cosines is None else float(self.cosines[place]),
            words=float(self.words[place]),
        )

    def why(self, place: int) -> dict[str, float]:
        """A message's score in every view."""
        return {name: float(view[place]) for name, view in self.views.items()}

    def sessions(self, most: int, *, without: int, lines: int, floor: float) -> list[list[Line]]:
        """The best sessions, each by its best messages; none whose best are neither near in meaning nor in words.

        A session's score is its best message's. `without` is the session that is going on.
        """
        places = self.best(50 * most)
        places = places[self.shelf.sessions[places] != without]
        sessions = self.shelf.sessions[places].tolist()
        found: dict[int, list[Line]] = {session: [] for session in list(dict.fromkeys(sessions))[:most]}
        for place, session in zip(places.tolist(), sessions, strict=True):
            if session in found and len(found[session]) < lines:
                found[session].append(self.line(place))
        return [each for each in found.values() if any(is_evidence(line, floor) for line in each)]


def is_evidence(line: Line, floor: float) -> bool:
    """Say whether it bears on the question at all: by its own figures, not beside the others'."""
    return line.words >= ENOUGH_WORDS or (line.cosine is not None and line.cosine >= floor)


def asks(text: str) -> bool:
    """Say whether a text asks memory for anything: "hi" and "thanks" do not (pitfall P12)."""
    return bool(content_words(text))


class Finder:
    """Searches messages."""

    def __init__(self, evidence: Evidence, method: Method = "linear") -> None:
        self._evidence = evidence
        self._method: Method = method
        self.weights: Mapping[str, float] = WEIGHTS

    async def words(self, owners: Sequence[str], text: str, today: date) -> tuple[Question, Found]:
        """The lexical arm: reads only SQL, so it can run beside the embedder."""
        question = take_apart(text, today)
        return question, await self._evidence.find(owners, question)

    async def rank(  # noqa: PLR0913 - all that a message is judged by
        self,
        question: Question,
        found: Found,
        vector: Floats | None,
        *,
        asker: int,
        replaced: Collection[int] = (),
        leads: Sequence[Lead] = (),
        floor: float = 0.0,
    ) -> Ranked:
        """Fuse. `replaced` are messages whose facts were superseded, `leads` observations with the messages under them,
        and `floor` the cosine below which they lead nowhere.
        """
        judging = partial(judge, question, found, vector, asker, replaced, leads, floor, self._method, self.weights)
        return judging() if len(found.shelf) < _AT_ONCE else await asyncio.to_thread(_sorted, judging)


def _sorted(judging: Callable[[], Ranked]) -> Ranked:
    """With its best at hand, so that sorting them is not left to the loop."""
    ranked = judging()
    _ = ranked.foremost
    return ranked


def judge(  # noqa: PLR0913, PLR0917 - see `Finder.rank`
    question: Question,
    found: Found,
    vector: Floats | None,
    asker: int,
    replaced: Collection[int] = (),
    leads: Sequence[Lead] = (),
    floor: float = 0.0,
    method: Method = "linear",
    weights: Mapping[str, float] = WEIGHTS,
) -> Ranked:
    """The scores of all messages found. Pure."""
    shelf = found.shelf
    named, its_words = named_in(question, found.names)
    kept = [at for at, word in enumerate(question.words) if word not in its_words]
    told = replace(
        question,
        words=tuple(question.words[at] for at in kept),
        months=tuple(question.months[at] for at in kept),
        numbers=tuple(question.numbers[at] for at in kept),
    )
    seen = look(shelf, told, [found.hits[at] for at in kept], vector)
    views = dict(seen.views) | {"speaker": speaker_view(shelf, question, named, asker), "newer": newer_view(shelf)}
    when = when_view(shelf, question)
    if when is not None:
        views["when"] = when
    if replaced:
        views["replaced"] = _marked(shelf, dict.fromkeys(replaced, 1.0))
    views |= key_views(shelf, leads, seen.cosines, floor)
    foreign = shelf.languages != question.language
    scores = fuse(views, method=method, weights=weights, foreign=foreign)
    return Ranked(shelf, scores, seen.cosines, seen.shares, views, foreign)


def _marked(shelf: Shelf, scores: Mapping[int, float]) -> Floats:
    """Scores by message as a view."""
    found = np.zeros(len(shelf), dtype=np.float32)
    for message_id, score in scores.items():
        found[shelf.places(np.array([message_id], dtype=np.int64))] = score
    return found
