"""What of the sessions found is shown."""

from datetime import UTC, datetime

from memory.recall.injection import LINES, fitted
from memory.types import Cited, Recollection

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def _session(number: int, *, lines: int = 3, length: int = 100) -> Recollection:
    said = tuple(Cited(number * 10 + at, "Ada", "x" * length, NOW) for at in reversed(range(lines)))
    return Recollection(number, "title", "summary", NOW, 1.0, "words 1.00", said)


def test_lines_stand_in_the_order_of_the_log() -> None:
    (found,) = fitted([_session(1)])
    assert [line.message_id for line in found.lines] == [10, 11, 12]


def test_long_texts_are_cut_before_lines_and_lines_before_sessions() -> None:
    found = fitted([_session(number, length=1000) for number in (1, 2, 3)], budget=1600)
    assert [each.session_id for each in found] == [1, 2, 3]
    assert sum(len(each.told) for each in found) <= 1600
    assert len(found[0].lines) >= len(found[-1].lines) == 1


def test_a_budget_for_nothing_shows_nothing() -> None:
    assert fitted([_session(1)], budget=5) == ()


def test_there_are_at_most_so_many_lines_of_a_session() -> None:
    (found,) = fitted([_session(1, lines=9)])
    assert len(found.lines) == LINES
