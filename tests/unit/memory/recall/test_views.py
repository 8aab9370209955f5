"""What a message looks like to a question: by its words, by those around it, and by its day."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.question import take_apart
from memory.recall.shelf import Floats, Posting, Shelf
from memory.recall.views import look
from tests.unit.memory.recall.shelves import ADA, ASSISTANT, DAY, shelf

MAY = datetime(2025, 5, 9, tzinfo=UTC)


def views(of: Shelf, text: str, standing: list[list[int]]) -> dict[str, Floats]:
    """`standing`: for each word of the question the messages that it stands in."""
    hits: list[list[Posting]] = [[of.posting(np.array(ids, dtype=np.int64))] if ids else [] for ids in standing]
    return look(of, take_apart(text, DAY.date()), hits, None).views


def test_the_nearer_a_neighbour_with_the_word_the_more_it_counts() -> None:
    around = views(shelf([1] * 9), "violin", [[5]])["around"]
    assert around[4] > around[3] > around[2] > around[1] > around[0] == 0
    assert around[:4].tolist() == pytest.approx(around[:4:-1].tolist())


def test_a_neighbour_of_another_chat_is_none() -> None:
    around = views(shelf([1, 1, 2, 2]), "violin", [[2]])["around"]
    assert around[0] > 0
    assert around[2:].tolist() == [0, 0]


def test_an_assistant_beside_a_message_counts_less_than_a_person() -> None:
    told = shelf([1, 1, 1, 2, 2, 2], speakers=[ADA, ADA, ADA, ADA, ASSISTANT, ADA])
    around = views(told, "violin", [[2, 5]])["around"]
    assert around[0] > around[3] > 0


def test_the_day_counts_in_a_message_and_around_it_as_if_it_were_written_there() -> None:
    told = shelf([1, 1, 1, 2, 2, 2], days=[DAY] * 3 + [MAY] * 3)
    found = views(told, "violin May", [[1, 4], []])
    for name in ("said", "around", "session"):
        assert found[name][3] > found[name][0] > 0, name
    assert found["around"][5] > found["around"][2] > 0


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=12),
    st.lists(st.lists(st.integers(1, 12), max_size=6), min_size=2, max_size=2),
)
def test_every_view_is_between_0_and_1(sessions: list[int], standing: list[list[int]]) -> None:
    found = views(shelf(sessions), "violin garden", standing)
    for name, view in found.items():
        assert len(view) == len(sessions), name
        assert view.min() >= 0, name
        assert view.max() <= 1, name
