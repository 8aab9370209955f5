"""One owner's messages as columns: what is known of each as evidence, side by side in memory. Pure.

Rule: no text is here, only figures; a shelf is derived from SQL and may be dropped at any time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_MANY = 2048
"""Vectors that are compared exactly; of more, this many of the likeliest are."""
_FEW = 30
"""So many vectors count as much as no knowledge of what they have in common."""
_ROWS = 2048
"""Vectors unpacked at a time: they stay in the processor's cache."""


@dataclass(frozen=True)
class Codes:
    """Packed vectors: `of` is the message that each belongs to, ascending."""

    of: Ints
    scales: Floats
    numbers: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.of)

    @classmethod
    def joined(cls, several: "Sequence[Codes]") -> "Codes":
        """One after the other; one alone stays itself, with what was computed of it."""
        held = [each for each in several if len(each)]
        if len(held) < 2:  # noqa: PLR2004 - there is nothing to join
            return held[0] if held else NO_CODES
        return cls(
            np.concatenate([each.of for each in held]),
            np.concatenate([each.scales for each in held]),
            np.concatenate([each.numbers for each in held]),
        )

    @cached_property
    def signs(self) -> NDArray[np.uint64]:
        """Whether each number is above zero, 64 to a word."""
        bits = np.packbits(self.numbers > 0, axis=1)
        width = -(-bits.shape[1] // 8) * 8
        return np.pad(bits, ((0, 0), (0, width - bits.shape[1]))).view(np.uint64)

    def cosines(self, vector: Floats) -> Floats:
        """With a vector of length one: exact for the likeliest `_MANY`, by the signs' angle for the rest (±0.07)."""
        if len(self) <= _MANY:
            return self._exact(slice(None), vector)
        bits = np.pad(np.packbits(vector > 0), (0, self.signs.shape[1] * 8 - -(-len(vector) // 8)))
        apart = np.bitwise_count(self.signs ^ bits.view(np.uint64)).sum(axis=1, dtype=np.uint16)
        found: Floats = np.cos(apart * np.float32(np.pi / len(vector))).astype(np.float32)
        likeliest = np.argpartition(apart, _MANY)[:_MANY]
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
        middle = float(self.mean @ self.mean)
        ours = 1 - 2 * self._along + middle
        theirs = 1 - 2 * float(self.mean @ vector) + middle
        apart = cosines - self._along - float(self.mean @ vector) + middle
        return (apart / np.sqrt(np.maximum(ours * theirs, 1e-6))).astype(np.float32)

    @property
    def nbytes(self) -> int:
        return self.of.nbytes + self.scales.nbytes + self.numbers.nbytes


NO_CODES = Codes(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros((0, 0), np.int8))


@dataclass(frozen=True)
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
    codes: Codes = NO_CODES

    @classmethod
    def of(cls, rows: Ints, codes: Codes = NO_CODES) -> "Shelf":
        """From rows of message, session, speaker, question, words, instant and language."""
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        return cls(
            ids=rows[:, 0].copy(),
            sessions=rows[:, 1].copy(),
            speakers=rows[:, 2].copy(),
            is_question=rows[:, 3] != 0,
            words=rows[:, 4].astype(np.float32),
            at=rows[:, 5].copy(),
            languages=rows[:, 6].astype(np.int8),
            codes=codes,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return len(self) * 200 + self.codes.nbytes

    @property
    def rows(self) -> Ints:
        """As `of` takes them."""
        columns = (self.ids, self.sessions, self.speakers, self.is_question, self.words, self.at, self.languages)
        return np.stack([column.astype(np.int64) for column in columns], axis=1)

    @cached_property
    def is_person(self) -> Flags:
        return self.speakers != 0

    @cached_property
    def people(self) -> frozenset[int]:
        """Everybody who spoke."""
        return frozenset(int(each) for each in np.unique(self.speakers) if each > 0)

    @cached_property
    def starts(self) -> Ints:
        """Where each session begins."""
        return np.flatnonzero(np.r_[True, self.sessions[1:] != self.sessions[:-1]]) if len(self) else self.ids

    @cached_property
    def runs(self) -> Ints:
        """Each message's session, counted from 0."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.r_[self.starts, len(self)]))

    @cached_property
    def _by_id(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.ids)
        return self.ids[order], order

    @cached_property
    def days(self) -> NDArray[np.datetime64]:
        return self.at.astype("datetime64[ms]").astype("datetime64[D]")

    def places(self, message_ids: Ints) -> Ints:
        """Where messages stand here; those that do not are left out."""
        ids, order = self._by_id
        at = np.searchsorted(ids, message_ids)
        at[at == len(ids)] = 0
        return order[at[ids[at] == message_ids]] if len(ids) else at[:0]

    @cached_property
    def _coded(self) -> tuple[Ints, Ints]:
        """Which messages have vectors, and where the first of each is."""
        return np.unique(self.codes.of, return_index=True)

    def likeness(self, vector: Floats) -> tuple[Floats, Floats]:
        """Each message's cosine with a question, and the same centred: of its nearest part; 0 without a vector."""
        plain, centred = np.zeros(len(self), dtype=np.float32), np.zeros(len(self), dtype=np.float32)
        if len(self.codes):
            _, firsts = self._coded
            places, here = self._coded_places
            cosines = self.codes.cosines(vector)
            plain[places] = np.maximum.reduceat(cosines, firsts)[here]
            centred[places] = np.maximum.reduceat(self.codes.centred(cosines, vector), firsts)[here]
        return plain, centred

    @cached_property
    def _coded_places(self) -> tuple[Ints, Flags]:
        """Where the messages with vectors stand here, and which of them do."""
        owners, _ = self._coded
        ids, order = self._by_id
        at = np.minimum(np.searchsorted(ids, owners), len(ids) - 1)
        here = ids[at] == owners
        return order[at[here]], here
