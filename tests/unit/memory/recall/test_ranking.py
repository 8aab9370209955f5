"""Which sessions are recalled: pure arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from memory.recall.ranking import rank

FLOOR = 0.15
shares = st.dictionaries(st.integers(1, 9), st.floats(0, 1), max_size=9)
cosines = st.dictionaries(st.integers(1, 9), st.floats(-1, 1), max_size=9)


def _ids(cosines: dict[int, float], words: dict[int, float]) -> list[int]:
    return [each.session_id for each in rank(cosines, words, floor=FLOOR, limit=3)]


def test_p12_what_is_far_and_shares_no_words_is_not_recalled() -> None:
    assert _ids({1: 0.1, 2: -0.3}, {}) == []
    assert _ids({1: 0.1}, {1: 0.3}) == []


def test_another_language_is_not_drowned_by_a_shared_word() -> None:
    """A right answer in another language stands before a chance hit of half of the words."""
    assert _ids({1: 0.32, 2: 0.1}, {2: 0.5}) == [1, 2]


def test_r1_a_rare_word_without_a_near_meaning_is_found() -> None:
    assert _ids({1: 0.05}, {1: 0.5}) == [1]


def test_words_lift_the_better_of_two() -> None:
    assert _ids({1: 0.31, 2: 0.3}, {2: 0.5}) == [2, 1]


def test_r4_noise_beside_a_clear_hit_stays_out() -> None:
    assert _ids({1: 0.6, 2: 0.3, 3: 0.37}, {}) == [1, 3]


def test_without_meaning_words_decide() -> None:
    assert _ids({}, {1: 0.7, 2: 1.0, 3: 0.3}) == [2, 1]


def test_the_reason_says_why() -> None:
    (found,) = rank({1: 0.314}, {1: 0.5}, floor=FLOOR, limit=3)
    assert found.reason == "meaning 0.31, words 0.50"
    (found,) = rank({}, {1: 1.0}, floor=FLOOR, limit=3)
    assert found.reason == "words 1.00"


@given(cosines, shares)
def test_the_order_is_by_score_and_nothing_is_made_up(near: dict[int, float], words: dict[int, float]) -> None:
    found = rank(near, words, floor=FLOOR, limit=3)
    assert len(found) <= 3
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert {each.session_id for each in found} <= {*near, *words}
    assert all(each.words >= 0.5 or (each.cosine or 0.0) >= FLOOR for each in found)
