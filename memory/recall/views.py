"""How each message of a shelf looks to a question, from several sides. Pure arithmetic over columns.

Each view is a number from 0 to 1 a message. The texts of the views are nowhere written down: what stands around a
message, or in its session, is added up from the single messages when it is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.recall.fusion import to_unit
from memory.recall.question import Question
from memory.recall.shelf import Floats, Ints, Shelf
from memory.types import Lead

K1, B = 1.2, 0.75
"""BM25's, as usual."""
_AROUND = 2
"""Neighbours on each side that a message is read with."""
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


def look(shelf: Shelf, question: Question, hits: Sequence[Sequence[Ints]], vector: Floats | None) -> Looks:
    """All views that come from words and meaning. `hits` are the question's words' occurrences, by form."""
    said = occurrences(shelf, hits)
    dated = said + _dates(shelf, question)
    counted = np.where(shelf.is_person, 1.0, _OF_ASSISTANT).astype(np.float32)
    around, lengths = _around(shelf, said, counted)
    scores, weights = bm25(dated, shelf.words + _DATE_TERMS)
    of_sessions = np.add.reduceat(dated * counted, shelf.starts, axis=1) if len(shelf) else dated
    session_lengths = np.add.reduceat(shelf.words * counted, shelf.starts) if len(shelf) else shelf.words
    views = {
        "said": _unit(scores, weights),
        "around": _unit(*bm25(around, lengths)),
        "session": _unit(*bm25(of_sessions, session_lengths))[shelf.runs],
        "asks": shelf.is_question.astype(np.float32),
    }
    views["answers"] = _neighbour(shelf, views["said"] * shelf.is_question, -1)
    cosines = None
    if vector is not None and len(shelf) and shelf.dimension == len(vector):  # none, or another embedder's
        cosines, centred = shelf.likeness(vector)
        views["meaning"] = to_unit(_smooth(shelf, centred))
    total = max(float(weights.sum()), 1e-9)
    return Looks(views, cosines, (weights @ (around > 0)).astype(np.float32) / total)


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
    return to_unit((shelf.at - shelf.at.min()).astype(np.float32)) if len(shelf) else shelf.words


def occurrences(shelf: Shelf, hits: Sequence[Sequence[Ints]]) -> Floats:
    """How often each word stands in each message; of several forms of a word the one that stands there most."""
    found = np.zeros((len(hits), len(shelf)), dtype=np.float32)
    for row, forms in zip(found, hits, strict=True):
        for docs in forms:
            np.maximum(row, np.bincount(shelf.places(docs), minlength=len(shelf)), out=row)
    return found


def _dates(shelf: Shelf, question: Question) -> Floats:
    """As if the day stood in each message: the words of a question that are a month, a day or a year."""
    found = np.zeros((len(question.words), len(shelf)), dtype=np.float32)
    if not any(question.months) and max(question.numbers, default=-1) < 1:
        return found
    months = shelf.days.astype("datetime64[M]")
    month = months.astype(np.int64) % 12 + 1
    year = months.astype("datetime64[Y]").astype(np.int64) + 1970
    day = (shelf.days - months.astype("datetime64[D]")).astype(np.int64) + 1
    for row, named, number in zip(found, question.months, question.numbers, strict=True):
        if named:
            row[month == named] = 1
        elif number > 0:
            row[(day == number) | (year == number)] = 1
    return found


def _around(shelf: Shelf, said: Floats, counted: Floats) -> tuple[Floats, Floats]:
    """The same with the neighbours within the session, and how long that is."""
    words, lengths = said.copy(), shelf.words.copy()
    beside, beside_lengths = said * counted, shelf.words * counted
    for step in range(1, _AROUND + 1):
        for way in (step, -step):
            words += _neighbour(shelf, beside, way)
            lengths += _neighbour(shelf, beside_lengths, way)
    return words, lengths


def _neighbour(shelf: Shelf, values: Floats, step: int) -> Floats:
    """Of each message the value of the one `step` further in its session; 0 where there is none."""
    found = np.zeros_like(values)
    size = len(shelf) - abs(step)
    if size <= 0:
        return found
    here, there = (slice(0, size), slice(step, None)) if step > 0 else (slice(-step, None), slice(0, size))
    found[..., here] = values[..., there] * (shelf.runs[here] == shelf.runs[there])
    return found


def _smooth(shelf: Shelf, cosines: Floats) -> Floats:
    """Each cosine with half of each neighbour's: a short reply means what it replies to."""
    ones = np.ones(len(shelf), dtype=np.float32)
    beside = _neighbour(shelf, ones, 1) + _neighbour(shelf, ones, -1)
    near = _neighbour(shelf, cosines, 1) + _neighbour(shelf, cosines, -1)
    return ((cosines + near / 2) / (1 + beside / 2)).astype(np.float32)


def bm25(occurrences: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """The scores of the documents, and each word's weight: its rarity."""
    count = occurrences.shape[1]
    holding = (occurrences > 0).sum(axis=1)
    weights = np.log1p((count - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    mean = float(lengths.mean()) if count else 1.0
    norm = K1 * (1 - B + B * lengths / max(mean, 1e-9))
    return (weights @ (occurrences * (K1 + 1) / (occurrences + norm))).astype(np.float32), weights


def _unit(scores: Floats, weights: Floats) -> Floats:
    best = max(float(scores.max(initial=0)), float(weights.sum()) * (K1 + 1) * _ENOUGH, 1e-9)
    return (scores / best).astype(np.float32)
