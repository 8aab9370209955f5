"""The wall clock and its changes, in Europe/Berlin: forward on 29 March 2026 at 02:00, back on 25 October at 03:00."""

# ruff: noqa: DTZ001 - wall clock times have no zone

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.reminding import recurring
from handlers.reminding.recurring import DAYS, find_zone, instant_of, next_time, times_between, wall_of

BERLIN = ZoneInfo("Europe/Berlin")
WALLS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda wall: wall.replace(second=0, microsecond=0))
INSTANTS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))
CHANGES = st.sampled_from([datetime(2026, 3, 29, 2), datetime(2026, 10, 25, 2)])
AROUND_CHANGES = st.tuples(CHANGES, st.integers(-600, 600)).map(lambda drawn: drawn[0] + timedelta(minutes=drawn[1]))
SOME_DAYS = st.lists(st.sampled_from(DAYS), min_size=1, unique=True)
RULES = st.one_of(
    st.integers(1, 5).map(recurring.daily),
    st.tuples(SOME_DAYS, st.integers(1, 4)).map(lambda drawn: recurring.weekly(tuple(drawn[0]), drawn[1])),
    st.tuples(st.integers(1, 31), st.integers(1, 6)).map(lambda drawn: recurring.monthly(*drawn)),
    st.tuples(st.integers(1, 12), st.integers(1, 28)).map(lambda drawn: recurring.yearly(*drawn)),
)


@given(st.one_of(WALLS, AROUND_CHANGES))
def test_an_instant_shows_its_wall_clock_time_or_is_the_end_of_the_gap(wall: datetime) -> None:
    instant = instant_of(wall, BERLIN)
    if wall_of(instant, BERLIN) != wall:
        before = wall_of(instant - timedelta(seconds=1), BERLIN)
        assert before < wall < wall_of(instant, BERLIN), "the clock jumps over it"


@given(st.one_of(WALLS, AROUND_CHANGES), st.one_of(WALLS, AROUND_CHANGES))
def test_the_order_of_the_wall_clock_is_the_order_of_the_instants(one: datetime, other: datetime) -> None:
    first, second = sorted((one, other))
    assert instant_of(first, BERLIN) <= instant_of(second, BERLIN)


@given(st.one_of(WALLS, AROUND_CHANGES))
def test_of_two_such_times_it_is_the_first(wall: datetime) -> None:
    earlier = instant_of(wall, BERLIN) - timedelta(hours=1)
    assert wall_of(earlier, BERLIN) != wall


@given(st.one_of(WALLS, AROUND_CHANGES), RULES, INSTANTS)
def test_the_next_time_is_to_come_and_none_is_passed_over(starts: datetime, rule: str, after: datetime) -> None:
    found = next_time(starts, rule, BERLIN, after)
    assert found is not None
    wall, instant = found
    assert instant > after
    assert instant == instant_of(wall, BERLIN)
    assert wall >= starts
    assert wall.time() == starts.time()
    assert times_between(starts, rule, BERLIN, after, instant) == [instant]


@given(AROUND_CHANGES, st.integers(1, 3))
def test_a_daily_ring_comes_once_a_day_over_both_changes(starts: datetime, every: int) -> None:
    since = instant_of(starts, BERLIN) - timedelta(seconds=1)
    rings = times_between(starts, recurring.daily(every), BERLIN, since, since + timedelta(days=30))
    days = [(wall_of(ring, BERLIN).date() - starts.date()).days for ring in rings]
    assert days == list(range(0, days[-1] + 1, every))


def test_a_time_in_the_gap_of_spring_rings_at_its_end() -> None:
    assert instant_of(datetime(2026, 3, 29, 2, 30), BERLIN) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_a_time_that_autumn_has_twice_rings_at_the_first() -> None:
    starts = datetime(2026, 10, 24, 2, 30)
    first = next_time(starts, "FREQ=DAILY", BERLIN, datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert first == (datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
    assert first is not None
    then = next_time(starts, "FREQ=DAILY", BERLIN, first[1])
    assert then == (datetime(2026, 10, 26, 2, 30), datetime(2026, 10, 26, 1, 30, tzinfo=UTC))


def test_a_day_that_a_zone_left_out_rings_when_the_next_begins() -> None:
    """Samoa had no 30 December 2011."""
    apia = ZoneInfo("Pacific/Apia")
    assert wall_of(instant_of(datetime(2011, 12, 30, 9), apia), apia) == datetime(2011, 12, 31)


def test_the_thirty_first_is_the_last_day_of_a_shorter_month() -> None:
    rings = times_between(
        datetime(2026, 1, 31, 9),
        recurring.monthly(31),
        BERLIN,
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 5, 1, tzinfo=UTC),
    )
    assert [f"{wall_of(ring, BERLIN):%d.%m.}" for ring in rings] == ["31.01.", "28.02.", "31.03.", "30.04."]


def test_the_twenty_ninth_of_february_comes_every_year() -> None:
    found = next_time(datetime(2028, 2, 29, 9), recurring.yearly(2, 29), BERLIN, datetime(2028, 3, 1, tzinfo=UTC))
    assert found is not None
    assert found[0] == datetime(2029, 2, 28, 9)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("UTC", "UTC"),
        ("Москва", None),
        ("../../etc/passwd", None),
        ("", None),
    ],
)
def test_a_zone_is_found_by_its_name_or_its_city(asked: str, name: str | None) -> None:
    assert find_zone(asked) == name
