"""Words of time as spans of days."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.dates import spans

TODAY = date(2026, 3, 18)


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("What did I say yesterday?", date(2026, 3, 17)),
        ("Was habe ich gestern gesagt?", date(2026, 3, 17)),
        ("Что я говорил вчера?", date(2026, 3, 17)),
        ("What did we plan last week?", date(2026, 3, 11)),
        ("Was war letzte Woche?", date(2026, 3, 11)),
        ("О чём мы говорили на прошлой неделе?", date(2026, 3, 11)),
        ("What was that three days ago?", date(2026, 3, 15)),
        ("Was war vor drei Tagen?", date(2026, 3, 15)),
        ("Что было три дня назад?", date(2026, 3, 15)),
        ("What did I do in May?", date(2025, 5, 10)),
        ("Wohin wollte ich im März?", date(2026, 3, 2)),
        ("Куда мы ездили в мае 2024?", date(2024, 5, 20)),
        ("What happened in 2019?", date(2019, 7, 1)),
    ],
)
def test_a_time_is_understood_in_three_languages(question: str, day: date) -> None:
    assert any(first <= day <= last for first, last in spans(question, TODAY)), spans(question, TODAY)


@pytest.mark.parametrize("question", ["What may I eat?", "We march on", "Wie heißt mein Hund?", "Как зовут кота?", ""])
def test_other_words_are_no_time(question: str) -> None:
    assert spans(question, TODAY) == []


@given(st.text(), st.dates(date(1990, 1, 1), date(2090, 1, 1)))
def test_any_text_is_survived_and_spans_run_forwards(question: str, today: date) -> None:
    assert all(first <= last for first, last in spans(question, today))
