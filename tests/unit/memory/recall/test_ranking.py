"""Which sessions are recalled: pure arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from memory.recall.finder import Line
from memory.recall.ranking import rank

FLOOR = 0.15
shares = st.dictionaries(st.integers(1, 9), st.floats(0, 1), max_size=9)
cosines = st.dictionaries(st.integers(1, 9), st.floats(-1, 1), max_size=9)
scores = st.dictionaries(st.integers(1, 9), st.floats(0.1, 20), max_size=9)


def _line(session_id: int, score: float = 1.0) -> Line:
    return Line(session_id * 10, session_id, score, 0.3, 0.5)


def _ids(said: list[Line], cosines: dict[int, float], words: dict[int, float]) -> list[int]:
    found = rank([[line] for line in said], cosines, words, floor=FLOOR, limit=3)
    return [each.session_id for each in found]


def test_p12_a_summary_that_is_far_and_shares_no_words_is_not_recalled() -> None:
    assert _ids([], {1: 0.1, 2: -0.3}, {}) == []
    assert _ids([], {1: 0.1}, {1: 0.3}) == []


def test_what_was_said_stands_before_what_only_a_summary_tells() -> None:
    assert _ids([_line(1, 2.0), _line(2, 1.8)], {3: 0.9}, {}) == [1, 2, 3]


def test_a_summary_that_agrees_raises_its_session() -> None:
    assert _ids([_line(1, 2.0), _line(2, 1.8)], {2: 0.9}, {}) == [2, 1]


def test_another_language_is_not_drowned_by_a_shared_word() -> None:
    """A right answer in another language stands before a chance hit of half of the words."""
    assert _ids([], {1: 0.32, 2: 0.1}, {2: 0.5}) == [1, 2]


def test_r1_a_rare_word_without_a_near_meaning_is_found() -> None:
    assert _ids([], {1: 0.05}, {1: 0.5}) == [1]


def test_r4_noise_beside_a_clear_hit_stays_out() -> None:
    assert _ids([], {1: 0.6, 2: 0.3, 3: 0.37}, {}) == [1, 3]


def test_the_reason_names_figures() -> None:
    (found,) = rank([[_line(1)]], {}, {}, floor=FLOOR, limit=3)
    assert found.reason == "meaning 0.30, words 0.50"


@given(scores, cosines, shares)
def test_there_are_at_most_as_many_as_asked_for_each_once_best_first(
    said: dict[int, float], near: dict[int, float], words: dict[int, float]
) -> None:
    lines = [[_line(each, score)] for each, score in said.items()]
    found = rank(lines, near, words, floor=FLOOR, limit=3)
    assert len(found) == len({each.session_id for each in found}) <= 3
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
