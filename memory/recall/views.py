"""How each message of a shelf looks to a question, from several sides. Pure arithmetic over columns.

Each view is a number from 0 to 1 a message. The texts of the views are nowhere written down: what stands around a
message, or in its session, is added up from the single messages when it is asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from memory.recall.fusion import to_unit
from memory.recall.question import Question
from memory.recall.shelf import Floats, Posting, Shelf
from memory.types import Lead

K1, B = 1.2, 0.75
"""BM25's, as usual."""
_AROUND = (0.7, 0.5, 0.35)
"""What the neighbours on each side count that a message is read with, the nearest first."""
_MEANT = (0.5,)
"""The same of cosines: a short reply means what it replies to."""
_OF_ASSISTANT = 0.5
"""What an assistant's words count where they stand around a person's: they are many."""
_DATE_TERMS = 3
"""Day, month and year stand with every message."""
_KEYS_FALL, _SESSIONS_FALL = 7, 3
"""The place after which one counts about half of the first: among observations, and among the sessions they lead to."""
_HALF = 2
_LEAST_APART = 0.05
ENOUGH_WORDS = 0.4
"""Of the weight of a question's words; with so much in or around it a message is evidence whatever its vector."""
_ENOUGH = 0.3
"""Of what all words of a question together could score; less in the best message is a weak match, not a full one."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The views of all messages, and two figures that say whether any of it means something."""

    views: dict[str, Floats]
    cosines: Floats | None
    """Raw; None where the embedder did not answer."""
    shares: Floats
    """Of the weight of the question's words, what share stands in or around the message."""


@dataclass(frozen=True, slots=True)
class _Ground:
    """What the views of a shelf rest on, whatever is asked."""

    counted: Floats
    """What a message's words count where they stand around another one."""
    asks: Floats
    said: Floats
    """BM25's norms: of each message, of each with its neighbours, and of each session."""
    around: Floats
    session: Floats
    beside: Floats
    """Each message and its neighbours, weighed: what a smoothed cosine is divided by."""
    newer: Floats


_GROUNDS: WeakKeyDictionary[Shelf, _Ground] = WeakKeyDictionary()


def _ground_of(shelf: Shelf) -> _Ground:
    """As remembered: a shelf never changes."""
    if shelf not in _GROUNDS:
        _GROUNDS[shelf] = _lay(shelf)
    return _GROUNDS[shelf]


def _lay(shelf: Shelf) -> _Ground:
    counted = np.where(shelf.is_person, np.float32(1.0), np.float32(_OF_ASSISTANT))
    words = shelf.words * counted
    ones = np.ones(len(shelf), dtype=np.float32)
    return _Ground(
        counted=counted,
        asks=shelf.is_question.astype(np.float32),
        said=_norms(shelf.words + _DATE_TERMS),
        around=_norms(_with_neighbours(shelf, shelf.words, words, _AROUND)),
        session=_norms(np.add.reduceat(words, shelf.starts) if len(shelf) else words),
        beside=_with_neighbours(shelf, ones, ones, _MEANT),
        newer=to_unit((shelf.at - shelf.at.min()).astype(np.float32)) if len(shelf) else ones,
    )


def look(shelf: Shelf, question: Question, hits: Sequence[Sequence[Posting]], vector: Floats | None) -> Looks:
    """All views that come from words and meaning. `hits` are the question's words' occurrences, by form."""
    found = [at for at, forms in enumerate(hits) if forms or question.months[at] or question.numbers[at] > 0]
    absent = len(hits) - len(found)
    ground = _ground_of(shelf)
    said = _dated(shelf, question, found, occurrences(shelf, [hits[at] for at in found]))
    scores, weights = _bm25(said, ground.said)
    counted = said * ground.counted
    of_sessions = np.add.reduceat(counted, shelf.starts, axis=1) if len(shelf) else said
    around = _with_neighbours(shelf, said, counted, _AROUND)
    views = {
        "said": _unit(scores, weights, absent),
        "around": _unit(*_bm25(around, ground.around), absent),
        "session": _unit(*_bm25(of_sessions, ground.session), absent)[shelf.runs],
        "asks": ground.asks,
    }
    views["answers"] = np.zeros(len(shelf), dtype=np.float32)
    views["answers"][1:] = views["said"][:-1] * ground.asks[:-1] * shelf.together(1)
    cosines = None
    if vector is not None and len(shelf) and shelf.dimension == len(vector):  # none, or another embedder's
        cosines, centred = shelf.likeness(vector)
        views["meaning"] = to_unit(_with_neighbours(shelf, centred, centred, _MEANT) / ground.beside)
    total = max(float(weights.sum()) + absent * _weight_of_absent(len(shelf)), 1e-9)
    shares: Floats = weights @ (around > 0).astype(np.float32) / np.float32(total)
    return Looks(views, cosines, shares)


def speaker_view(shelf: Shelf, question: Question, named: frozenset[int], asker: int) -> Floats:
    """Whose words the question is about. A person who is named; else people rather than the assistant (its long
    answers would crowd out what people said), and of people the asker, where the question says "I".
    """
    if len(named) == 1:
        return (shelf.speakers == next(iter(named))).astype(np.float32)
    if question.is_about_answers:
        return np.where(shelf.is_person, 0.75, 1.0).astype(np.float32)
    people = np.where(shelf.speakers == asker, 1.0, 0.75) if question.is_about_asker else 1.0
    return np.where(shelf.is_person, people, 0.25).astype(np.float32)


def when_view(shelf: Shelf, question: Question) -> Floats | None:
    """How near each message's day is to the days asked about: 1 within, falling off by the span's own length."""
    if not question.spans:
        return None
    found = np.zeros(len(shelf), dtype=np.float32)
    for first, last in question.spans:
        days = shelf.days
        away = np.maximum(np.datetime64(first) - days, days - np.datetime64(last)).astype(np.int64)
        length = max((last - first).days, 2)
        np.maximum(found, np.exp(-np.maximum(away, 0) / length), out=found)
    return found


def key_views(shelf: Shelf, leads: Sequence[Lead], cosines: Floats | None, floor: float) -> dict[str, Floats]:
    """Where observations lead to: messages and their sessions, by the place of the best one that rests on them.

    A place says nothing of how good the best one is, so it counts as far as an observation is half as near as the
    nearest message, or has half of the question's words; below the floor it counts nothing.
    """
    best = floor + _LEAST_APART if cosines is None else max(float(cosines.max(initial=0)), floor + _LEAST_APART)
    found = {name: np.zeros(len(shelf), dtype=np.float32) for name in ("keys", "keyed")}
    seen: dict[int, None] = {}
    rank = 0
    for lead in leads:
        near = 0.0 if lead.cosine is None else (lead.cosine - floor) / (best - floor)
        trust = min(_HALF * max(near, lead.words), 1.0)
        places = shelf.places(np.array(lead.message_ids, dtype=np.int64))
        if (near < 0 and lead.words < ENOUGH_WORDS) or trust <= 0 or not len(places):
            continue
        rank += 1
        np.maximum.at(found["keys"], places, trust * _KEYS_FALL / (_KEYS_FALL - 1 + rank))
        for run in shelf.runs[places].tolist():
            if run not in seen:
                seen[run] = None
                found["keyed"][shelf.runs == run] = trust * _SESSIONS_FALL / (_SESSIONS_FALL - 1 + len(seen))
    return found if seen else {}


def newer_view(shelf: Shelf) -> Floats:
    """The place in time among all messages: what is said later may have replaced what was said before."""
    return _ground_of(shelf).newer


def occurrences(shelf: Shelf, hits: Sequence[Sequence[Posting]]) -> Floats:
    """How often each word stands in each message; of several forms of a word the one that stands there most."""
    found = np.zeros((len(hits), len(shelf)), dtype=np.float32)
    for row, forms in zip(found, hits, strict=True):
        for posting in forms:
            places = shelf.by_id[posting.whose]
            row[places] = np.maximum(row[places], posting.counts)
    return found


def _dated(shelf: Shelf, question: Question, which: Sequence[int], said: Floats) -> Floats:
    """As if the day stood in each message: those of a question's words that are a month, a day or a year."""
    if not any(question.months) and max(question.numbers, default=-1) < 1:
        return said
    found = said.copy()
    months = shelf.days.astype("datetime64[M]")
    month = months.astype(np.int64) % 12 + 1
    year = months.astype("datetime64[Y]").astype(np.int64) + 1970
    day = (shelf.days - months.astype("datetime64[D]")).astype(np.int64) + 1
    for row, at in zip(found, which, strict=True):
        named, number = question.months[at], question.numbers[at]
        if named:
            row[month == named] += 1
        elif number > 0:
            row[(day == number) | (year == number)] += 1
    return found


def _with_neighbours(shelf: Shelf, values: Floats, theirs: Floats, shares: Sequence[float]) -> Floats:
    """Each message's value with shares of those of its neighbours within the session, the nearest first."""
    found = values.copy()
    for step, share in enumerate(shares, 1):
        weights = shelf.together(step) * np.float32(share)
        found[..., :-step] += theirs[..., step:] * weights
        found[..., step:] += theirs[..., :-step] * weights
    return found


def bm25(occurrences: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """The scores of the documents, and each word's weight: its rarity."""
    return _bm25(occurrences, _norms(lengths))


def _bm25(occurrences: Floats, norms: Floats) -> tuple[Floats, Floats]:
    count = occurrences.shape[1]
    holding = np.count_nonzero(occurrences, axis=1)
    weights = np.log1p((count - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    shares = occurrences + norms
    np.divide(occurrences, shares, out=shares)
    return (weights * np.float32(K1 + 1)) @ shares, weights


def _norms(lengths: Floats) -> Floats:
    """How much a word in each document has to compete with, by its length."""
    mean = float(lengths.mean()) if len(lengths) else 1.0
    return (K1 * (1 - B) + np.float32(K1 * B / max(mean, 1e-9)) * lengths).astype(np.float32)


def _weight_of_absent(count: int) -> float:
    """The rarity of a word that none of so many documents has."""
    return math.log1p((count + 0.5) / 0.5)


def _unit(scores: Floats, weights: Floats, absent: int) -> Floats:
    """`absent` words of the question stand nowhere: they could have scored all the same."""
    could = float(weights.sum()) + absent * _weight_of_absent(len(scores))
    best = max(float(scores.max(initial=0)), could * (K1 + 1) * _ENOUGH, 1e-9)
    return (scores / np.float32(best)).astype(np.float32)
