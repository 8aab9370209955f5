"""Until when something holds, from the words that were said."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.kinds.observations.validity import ends_at

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 12, 2, 15, 0, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("I'm away until Friday", "2026-12-04"),
        ("bis Freitag bin ich im Urlaub", "2026-12-04"),
        ("до пятницы я в отпуске", "2026-12-04"),
        ("till Wednesday", "2026-12-02"),
        ("through next Monday", "2026-12-07"),
        ("bis nächsten Dienstag", "2026-12-08"),
        ("до понедельника", "2026-12-07"),
        ("this week I work from home", "2026-12-06"),
        ("diese Woche arbeite ich zu Hause", "2026-12-06"),
        ("на этой неделе я дома", "2026-12-06"),
        ("this month", "2026-12-31"),
        ("until the end of March", "2027-03-31"),
        ("bis Ende März", "2027-03-31"),
        ("до конца марта", "2027-03-31"),
        ("until March", "2027-02-28"),
        ("until May 3rd, 2027", "2027-05-03"),
        ("bis zum 12.12.", "2026-12-12"),
        ("bis 3.1.2027", "2027-01-03"),
        ("bis 12. Dezember", "2026-12-12"),
        ("до 15 января", "2027-01-15"),
        ("until the 5th of January", "2027-01-05"),
        ("until 2026-12-24", "2026-12-24"),
        ("until tomorrow", "2026-12-03"),
        ("bis morgen", "2026-12-03"),
        ("до завтра", "2026-12-03"),
        ("for the next two weeks", "2026-12-16"),
        ("die nächsten drei Tage", "2026-12-05"),
        ("в ближайшие два дня", "2026-12-04"),
        ("bis Ende der Woche", "2026-12-06"),
        ("до конца недели", "2026-12-06"),
        ("until the end of next month", "2027-01-31"),
        ("until dawn", None),
        ("bis bald", None),
        ("до свидания", None),
        ("until 31 February", None),
        ("until 2020-01-01", None),
        ("today I bought milk", None),
        ("I moved here in May", None),
    ],
)
def test_an_end_is_the_midnight_after_its_last_day(text: str, last: str | None) -> None:
    expected = None
    if last is not None:
        day = date.fromisoformat(last) + timedelta(days=1)
        expected = datetime(day.year, day.month, day.day, tzinfo=BERLIN)
    assert ends_at(text, WEDNESDAY) == expected


@pytest.mark.parametrize(("text", "days"), [("today", 0), ("heute", 0), ("сегодня", 0), ("tomorrow", 1), ("завтра", 1)])
def test_a_passing_day_ends_something_only_where_it_is_meant(text: str, days: int) -> None:
    assert ends_at(f"The car is here {text}", WEDNESDAY) is None
    found = ends_at(f"The car is here {text}", WEDNESDAY, is_passing=True)
    assert found is not None
    assert found.date() == WEDNESDAY.date() + timedelta(days=days + 1)


def test_the_end_is_that_of_the_persons_day() -> None:
    """When it is Friday in Tokyo already, "until Friday" is today there, and tomorrow in Berlin."""
    instant = datetime(2026, 12, 3, 20, 0, tzinfo=UTC)
    tokyo = ends_at("until Friday", instant.astimezone(ZoneInfo("Asia/Tokyo")))
    berlin = ends_at("until Friday", instant.astimezone(BERLIN))
    assert tokyo is not None
    assert berlin is not None
    assert berlin - tokyo == timedelta(hours=8)


@given(st.text(max_size=80), st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)))  # noqa: DTZ001 - zoned below
def test_an_end_is_never_in_the_past(text: str, at: datetime) -> None:
    said_at = at.replace(tzinfo=BERLIN)
    for phrase in (text, f"until {text}", f"bis {text}", f"до {text}"):
        found = ends_at(phrase, said_at, is_passing=True)
        assert found is None or found > said_at
