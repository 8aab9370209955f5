"""One owner's messages as columns: what is known of each as evidence, side by side in memory. Pure.

Rule: no text is here, only figures; a shelf is derived from SQL and may be dropped at any time.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_MANY = 1024
"""Vectors that are compared exactly; of more, this many of the likeliest are."""
_FEW = 30
"""So many vectors count as much as no knowledge of what they have in common."""
_SHORTEST = 1e-3
"""What is this near to the middle has no direction from there."""
_ROWS = 512
"""Vectors unpacked at a time: they stay in the processor's cache."""
_SMALL = 4096
_SHARE = 16
"""Vectors that came later are kept beside a volume of at least this many until they are one in so many of its own."""


@dataclass(frozen=True)
class Volume:
    """Vectors of messages, packed: `of` is the message that each belongs to, ascending."""

    of: Ints
    scales: Floats
    numbers: NDArray[np.int8]
    whose: Ints
    """Of each message with vectors here, its number in the order of ids."""
    middle: Floats | None = None
    """What all vectors have in common; None: what these have."""

    def __len__(self) -> int:
        return len(self.of)

    def with_later(self, later: "Volume") -> "Volume":
        """Both as one, later messages behind."""
        return Volume(
            np.concatenate([self.of, later.of]),
            np.concatenate([self.scales, later.scales]),
            np.concatenate([self.numbers, later.numbers]),
            np.concatenate([self.whose, later.whose]),
            self.middle,
        )

    @cached_property
    def firsts(self) -> Ints:
        """Where the first vector of each message is."""
        return _beginnings(self.of)

    @cached_property
    def signs(self) -> NDArray[np.uint64]:
        """Whether each number is above zero, 64 to a word: the words in rows, a vector a column."""
        return np.ascontiguousarray(_words_of(self.numbers > 0).T)

    def cosines(self, vector: Floats) -> Floats:
        """With a vector of length one: exact for the likeliest `_MANY`, by the signs' angle for the rest (±0.07)."""
        if len(self) <= _MANY:
            return self._exact(slice(None), vector)
        apart = np.zeros(len(self), dtype=np.uint16)
        for theirs, ours in zip(self.signs, _words_of(vector[None, :] > 0)[0], strict=True):
            apart += np.bitwise_count(theirs ^ ours)
        found: Floats = np.cos(apart * np.float32(np.pi / len(vector)))
        last = np.partition(apart, _MANY)[_MANY]
        likeliest = np.concatenate([np.flatnonzero(apart < last), np.flatnonzero(apart == last)[:_MANY]])
        found[likeliest] = self._exact(likeliest, vector)
        return found

    def _exact(self, which: slice | Ints, vector: Floats) -> Floats:
        numbers, scales = self.numbers[which], self.scales[which]
        found = np.empty(len(numbers), dtype=np.float32)
        for start in range(0, len(numbers), _ROWS):
            found[start : start + _ROWS] = numbers[start : start + _ROWS].astype(np.float32) @ vector
        return (found * scales).astype(np.float32)

    @cached_property
    def mean(self) -> Floats:
        """What all have in common, the less trusted the fewer they are."""
        if self.middle is not None:
            return self.middle
        total = np.zeros(self.numbers.shape[1], dtype=np.float32)
        for start in range(0, len(self), _ROWS):
            total += self.scales[start : start + _ROWS] @ self.numbers[start : start + _ROWS].astype(np.float32)
        return (total / (len(self) + _FEW)).astype(np.float32)

    @cached_property
    def _along(self) -> Floats:
        """Each one's product with the mean."""
        return self._exact(slice(None), self.mean)

    def centred(self, cosines: Floats, vector: Floats) -> Floats:
        """The cosines as if `mean` were the middle of all directions.

        Without it what is like everything is like every question: on 45 questions in three languages among 267 facts
        the right one is first for .80 with plain cosines and for .91 with these.
        """
        middle, along = float(self.mean @ self.mean), float(self.mean @ vector)
        apart = cosines - self._along
        apart += np.float32(middle - along)
        apart *= self._lengths
        apart *= np.float32(1 / np.sqrt(max(1 - 2 * along + middle, _SHORTEST)))
        return apart

    @cached_property
    def _lengths(self) -> Floats:
        """One over each one's distance from the mean."""
        distances = 1 - 2 * self._along + np.float32(self.mean @ self.mean)
        return (1 / np.sqrt(np.maximum(distances, _SHORTEST))).astype(np.float32)

    def best(self, values: Floats) -> Floats:
        """Of each message's vectors the greatest value."""
        return values if len(self.firsts) == len(self) else np.maximum.reduceat(values, self.firsts)

    @property
    def nbytes(self) -> int:
        return self.of.nbytes + self.scales.nbytes + self.numbers.nbytes + self.whose.nbytes


@dataclass(frozen=True, slots=True)
class Posting:
    """Where one term stands."""

    whose: Ints
    """Of each message with it, its number in the order of ids; ascending."""
    counts: Floats
    """How often it stands there."""

    @property
    def nbytes(self) -> int:
        return self.whose.nbytes + self.counts.nbytes

    def with_later(self, later: "Posting") -> "Posting":
        return Posting(np.concatenate([self.whose, later.whose]), np.concatenate([self.counts, later.counts]))


NOWHERE: Ints = np.zeros(0, np.int64)
"""The messages with a word that stands in none."""

Codes = tuple[Ints, Floats, NDArray[np.int8]]
"""Packed vectors as they are read: whose, ascending, their scales, and the numbers."""
NO_CODES: Codes = (np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros((0, 0), np.int8))


@dataclass(frozen=True, eq=False)
class Shelf:
    """The messages that may be evidence, ordered by session and, within one, by their place in the log."""

    ids: Ints
    sessions: Ints
    speakers: Ints
    """Who spoke (users.id); 0 = the assistant."""
    is_question: Flags
    words: Floats
    """How many terms each is found under."""
    at: Ints
    """Milliseconds since the epoch."""
    languages: NDArray[np.int8]
    by_id: Ints
    """The places of the messages in the order of their ids."""
    volumes: tuple[Volume, ...] = ()
    """The vectors: most of them, and those that came later."""

    @classmethod
    def of(cls, rows: Ints, codes: Codes = NO_CODES) -> "Shelf":
        """From rows of message, session, speaker, question, words, instant and language."""
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        return cls(*_columns(rows), by_id=np.argsort(rows[:, 0])).with_vectors(codes)

    def with_later(self, rows: Ints, codes: Codes = NO_CODES) -> "Shelf":
        """With messages whose ids are greater than all here. What is there already is not looked at again."""
        if not len(rows):
            return self.with_vectors(codes)
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        before = np.searchsorted(self.sessions, rows[:, 1], side="right")
        ids, sessions, speakers, is_question, words, at, languages = _columns(rows)
        moved = self.by_id + np.searchsorted(before, self.by_id, side="right")
        landed = before + np.arange(len(rows))
        together = Shelf(
            ids=np.insert(self.ids, before, ids),
            sessions=np.insert(self.sessions, before, sessions),
            speakers=np.insert(self.speakers, before, speakers),
            is_question=np.insert(self.is_question, before, is_question),
            words=np.insert(self.words, before, words),
            at=np.insert(self.at, before, at),
            languages=np.insert(self.languages, before, languages),
            by_id=np.concatenate([moved, landed[np.argsort(ids)]]),
            volumes=self.volumes,
        )
        return together.with_vectors(codes)

    def with_vectors(self, codes: Codes) -> "Shelf":
        """With vectors of messages that have none yet; those of messages that are not here are left out."""
        of, scales, numbers = codes
        whose, is_here = self._numbers(of)
        if not is_here.any():
            return self
        if not is_here.all():
            of, scales, numbers, whose = of[is_here], scales[is_here], numbers[is_here], whose[is_here]
        later = Volume(of, scales, numbers, whose[_beginnings(of)])
        if not self.volumes:
            return replace(self, volumes=(later,))
        first, *second = self.volumes
        if len(first) < _SMALL:
            return replace(self, volumes=(first.with_later(later),))
        beside = second[0].with_later(later) if second else replace(later, middle=first.mean)
        if len(beside) * _SHARE > len(first):
            return replace(self, volumes=(first.with_later(beside),))
        return replace(self, volumes=(first, beside))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return len(self) * 240 + sum(volume.nbytes for volume in self.volumes)

    @property
    def last(self) -> int:
        """The id of the newest message; 0 = there is none."""
        return int(self.ids[self.by_id[-1]]) if len(self) else 0

    @property
    def last_coded(self) -> int:
        """The id of the newest message with vectors; 0 = there is none."""
        return max((int(volume.of[-1]) for volume in self.volumes), default=0)

    @property
    def dimension(self) -> int:
        """Of the vectors; 0 = there are none."""
        return self.volumes[0].numbers.shape[1] if self.volumes else 0

    @cached_property
    def is_person(self) -> Flags:
        return self.speakers != 0

    @cached_property
    def people(self) -> frozenset[int]:
        """Everybody who spoke."""
        return frozenset(np.flatnonzero(np.bincount(np.maximum(self.speakers, 0))).tolist()) - {0}

    @cached_property
    def starts(self) -> Ints:
        """Where each session begins."""
        return _beginnings(self.sessions)

    @cached_property
    def runs(self) -> Ints:
        """Each message's session, counted from 0."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.r_[self.starts, len(self)]))

    def together(self, step: int) -> Floats:
        """1 for a message whose session has the message `step` further on as well, else 0; shorter by `step`."""
        if step not in self._together:
            self._together[step] = (self.sessions[step:] == self.sessions[:-step]).astype(np.float32)
        return self._together[step]

    @cached_property
    def _together(self) -> dict[int, Floats]:
        return {}

    def posting(self, message_ids: Ints) -> Posting:
        """Of a term that stands in these messages, each as often as it is named; those not here are left out."""
        told, counts = np.unique(message_ids, return_counts=True)
        whose, is_here = self._numbers(told)
        return Posting(whose[is_here], counts[is_here].astype(np.float32))

    def _numbers(self, message_ids: Ints) -> tuple[Ints, Flags]:
        """Of each message its number in the order of ids, and whether it is here at all."""
        numbers = np.searchsorted(self._sorted_ids, message_ids)
        is_here = numbers < len(self)
        is_here[is_here] = self._sorted_ids[numbers[is_here]] == message_ids[is_here]
        return numbers, is_here

    @cached_property
    def _sorted_ids(self) -> Ints:
        return self.ids[self.by_id]

    @cached_property
    def days(self) -> NDArray[np.datetime64]:
        return self.at.astype("datetime64[ms]").astype("datetime64[D]")

    def places(self, message_ids: Ints) -> Ints:
        """Where messages stand here; those that do not are left out."""
        numbers, is_here = self._numbers(message_ids)
        return self.by_id[numbers[is_here]]

    def likeness(self, vector: Floats) -> tuple[Floats, Floats]:
        """Each message's cosine with a question, and the same centred: of its nearest part; 0 without a vector."""
        plain, centred = np.zeros(len(self), dtype=np.float32), np.zeros(len(self), dtype=np.float32)
        for volume in self.volumes:
            places = self.by_id[volume.whose]
            cosines = volume.cosines(vector)
            plain[places] = volume.best(cosines)
            centred[places] = volume.best(volume.centred(cosines, vector))
        return plain, centred


def _columns(rows: Ints) -> tuple[Ints, Ints, Ints, Flags, Floats, Ints, NDArray[np.int8]]:
    """The columns of a shelf, from rows as `Shelf.of` takes them."""
    return (
        rows[:, 0].copy(),
        rows[:, 1].copy(),
        rows[:, 2].copy(),
        rows[:, 3] != 0,
        rows[:, 4].astype(np.float32),
        rows[:, 5].copy(),
        rows[:, 6].astype(np.int8),
    )


def _words_of(flags: Flags) -> NDArray[np.uint64]:
    """Rows of flags as rows of words, 64 flags to each; what is missing to the last one is false."""
    packed = np.packbits(flags, axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)


def _beginnings(values: Ints) -> Ints:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else values
