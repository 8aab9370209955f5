"""A shelf that grew is the shelf that would be made of all of it at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall import shelf as module
from memory.recall.shelf import NO_CODES, Codes, Shelf

WIDTH = 64


def _rows(sessions: list[int], first: int = 1) -> module.Ints:
    """A message in each of these sessions, by one of three speakers."""
    made = [(n, session, n % 3, n % 2, 1 + n % 5, 1000 * n, n % 3) for n, session in enumerate(sessions, first)]
    return np.array(made, dtype=np.int64).reshape(len(made), 7)


def _codes(of: list[int]) -> Codes:
    """A vector of each of these messages: always the same for the same message and part."""
    if not of:
        return NO_CODES
    numbers = np.stack([np.random.default_rng(each + 7 * n).integers(-127, 128, WIDTH) for n, each in enumerate(of)])
    scales = (1 / np.linalg.norm(numbers, axis=1)).astype(np.float32)
    return np.array(of, dtype=np.int64), scales, numbers.astype(np.int8)


def _vector() -> module.Floats:
    vector = np.random.default_rng(0).normal(size=WIDTH)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _assert_same(grown: Shelf, whole: Shelf, *, centred_within: float = 1e-5) -> None:
    for name in ("ids", "sessions", "speakers", "is_question", "words", "at", "languages", "by_id", "starts", "runs"):
        assert np.array_equal(getattr(grown, name), getattr(whole, name)), name
    assert (grown.people, grown.last, grown.last_coded) == (whole.people, whole.last, whole.last_coded)
    plain, centred = grown.likeness(_vector())
    of_whole, centred_of_whole = whole.likeness(_vector())
    assert np.allclose(plain, of_whole, atol=1e-6)
    assert np.allclose(centred, centred_of_whole, atol=centred_within)


@given(
    batches=st.lists(st.lists(st.integers(1, 5), max_size=6), min_size=1, max_size=6),
    without=st.sets(st.integers(1, 36), max_size=8),
)
def test_it_does_not_matter_in_which_steps_it_grew(batches: list[list[int]], without: set[int]) -> None:
    """Messages of any session in any step, some without a vector, some with two."""
    grown, first = Shelf.of(_rows([])), 1
    for sessions in batches:
        ids = range(first, first + len(sessions))
        of = sorted([*(each for each in ids if each not in without), *(each for each in ids if not each % 4)])
        grown = grown.with_later(_rows(sessions, first), _codes(of))
        first += len(sessions)
    everything = [session for sessions in batches for session in sessions]
    _assert_same(grown, Shelf.of(_rows(everything), _codes_of(grown)))


def test_vectors_of_messages_that_are_not_there_are_left_out() -> None:
    shelf = Shelf.of(_rows([1, 1, 2]), _codes([2, 3, 9, 40]))
    assert [len(volume) for volume in shelf.volumes] == [2]
    assert shelf.last_coded == 3
    assert Shelf.of(_rows([1]), _codes([5])).volumes == ()


def test_what_came_later_is_kept_beside_much_and_joined_when_it_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The many are not packed, summed and compared with their middle anew for every message."""
    monkeypatch.setattr(module, "_SMALL", 32)
    shelf = Shelf.of(_rows([1] * 64), _codes(list(range(1, 65))))
    much = shelf.volumes[0]
    for number in range(65, 69):
        shelf = shelf.with_later(_rows([1], number), _codes([number]))
        assert shelf.volumes[0] is much
        assert len(shelf.volumes[1]) == number - 64
    whole = Shelf.of(np.concatenate([_rows([1] * 64), *(_rows([1], n) for n in range(65, 69))]), _codes_of(shelf))
    _assert_same(shelf, whole, centred_within=0.05)
    shelf = shelf.with_later(_rows([1], 69), _codes([69]))
    assert [len(volume) for volume in shelf.volumes] == [69]


def _codes_of(shelf: Shelf) -> Codes:
    if not shelf.volumes:
        return NO_CODES
    return (
        np.concatenate([volume.of for volume in shelf.volumes]),
        np.concatenate([volume.scales for volume in shelf.volumes]),
        np.concatenate([volume.numbers for volume in shelf.volumes]),
    )
