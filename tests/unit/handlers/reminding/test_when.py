"""What people say for a time, in three languages. It is Sunday, 1 March 2026, 13:00 in Berlin."""

# ruff: noqa: DTZ001 - wall clock times have no zone

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.reminding import recurring
from handlers.reminding.when import When, repeat_rule, understand

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WORKDAYS = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"


def heard(said: str, now: datetime = NOW) -> tuple[str, str | None, str]:
    """The first time in Berlin, the rule, the text."""
    found = understand(said, now, BERLIN)
    assert found is not None, said
    when, text = found
    return f"{when.due.astimezone(BERLIN):%Y-%m-%d %H:%M}", when.rule, text


ONCE = [
    # English
    ("tomorrow at 9 water the plants", "2026-03-02 09:00", "water the plants"),
    ("tomorrow water the plants", "2026-03-02 09:00", "water the plants"),
    ("water the plants tomorrow at 9", "2026-03-02 09:00", "water the plants"),
    ("tomorrow water the plants at 9:30", "2026-03-02 09:30", "water the plants"),
    ("me to water the plants tomorrow at 9", "2026-03-02 09:00", "water the plants"),
    ("remind me tomorrow at 9 to water the plants", "2026-03-02 09:00", "water the plants"),
    ("in 20 minutes check the oven", "2026-03-01 13:20", "check the oven"),
    ("in an hour call mum", "2026-03-01 14:00", "call mum"),
    ("in half an hour call mum", "2026-03-01 13:30", "call mum"),
    ("in 1 hour and 30 minutes call mum", "2026-03-01 14:30", "call mum"),
    ("in 1h 5m call mum", "2026-03-01 14:05", "call mum"),
    ("in 3 days call mum", "2026-03-04 09:00", "call mum"),
    ("in two weeks at 8pm call mum", "2026-03-15 20:00", "call mum"),
    ("in a month call mum", "2026-04-01 09:00", "call mum"),
    ("today 18:30 dinner", "2026-03-01 18:30", "dinner"),
    ("tonight take the bins out", "2026-03-01 19:00", "take the bins out"),
    ("tonight at 8 take the bins out", "2026-03-01 20:00", "take the bins out"),
    ("at 15 tea", "2026-03-01 15:00", "tea"),
    ("at 9 tea", "2026-03-02 09:00", "tea"),
    ("3pm tea", "2026-03-01 15:00", "tea"),
    ("at 12 am sleep", "2026-03-02 00:00", "sleep"),
    ("at noon lunch", "2026-03-02 12:00", "lunch"),
    ("at half past five pack the bag", "2026-03-02 05:30", "pack the bag"),
    ("tomorrow evening dinner", "2026-03-02 19:00", "dinner"),
    ("tomorrow evening at 8 dinner", "2026-03-02 20:00", "dinner"),
    ("Monday call Bob", "2026-03-02 09:00", "call Bob"),
    ("on Mon at 10 call Bob", "2026-03-02 10:00", "call Bob"),
    ("Sunday at 15:00 call Bob", "2026-03-01 15:00", "call Bob"),
    ("Sunday at 10 call Bob", "2026-03-08 10:00", "call Bob"),
    ("next Sunday at 15:00 call Bob", "2026-03-08 15:00", "call Bob"),
    ("on 24.12. at 10 presents", "2026-12-24 10:00", "presents"),
    ("on 24 December at 10 presents", "2026-12-24 10:00", "presents"),
    ("December 24th, 2027 at 10am: presents", "2027-12-24 10:00", "presents"),
    ("28.2. tax", "2027-02-28 09:00", "tax"),
    ("29.2. leap", "2028-02-29 09:00", "leap"),
    ("2026-12-24 10:00 presents", "2026-12-24 10:00", "presents"),
    ("2026-12-24T10:00 presents", "2026-12-24 10:00", "presents"),
    ("on the 15th at 8 rent", "2026-03-15 08:00", "rent"),
    ("the day after tomorrow at 7 run", "2026-03-03 07:00", "run"),
    ("tomorrow at 9 call at 5 Downing Street", "2026-03-02 09:00", "call at 5 Downing Street"),
    # German
    ("morgen um 9 Blumen gießen", "2026-03-02 09:00", "Blumen gießen"),
    ("morgen Blumen gießen um 9", "2026-03-02 09:00", "Blumen gießen"),
    ("erinnere mich morgen um 9 daran, Blumen zu gießen", "2026-03-02 09:00", "Blumen zu gießen"),
    ("in 20 Minuten Ofen", "2026-03-01 13:20", "Ofen"),
    ("in einer halben Stunde Ofen", "2026-03-01 13:30", "Ofen"),
    ("in anderthalb Stunden Ofen", "2026-03-01 14:30", "Ofen"),
    ("in einer Woche Ofen putzen", "2026-03-08 09:00", "Ofen putzen"),
    ("heute 18:30 Essen", "2026-03-01 18:30", "Essen"),
    ("heute um 18 Uhr 30 Essen", "2026-03-01 18:30", "Essen"),
    ("heute Abend Essen", "2026-03-01 19:00", "Essen"),
    ("morgen früh laufen", "2026-03-02 09:00", "laufen"),
    ("übermorgen um halb 10 laufen", "2026-03-03 09:30", "laufen"),
    ("um 9.15 Uhr laufen", "2026-03-02 09:15", "laufen"),
    ("um 15 am Bahnhof sein", "2026-03-01 15:00", "am Bahnhof sein"),
    ("am Mittwoch um 14 Uhr Arzt", "2026-03-04 14:00", "Arzt"),
    ("am Do um 14 Uhr Arzt", "2026-03-05 14:00", "Arzt"),
    ("nächsten Samstag Arzt", "2026-03-07 09:00", "Arzt"),
    ("am 24.12. um 10 Geschenke", "2026-12-24 10:00", "Geschenke"),
    ("24. Dezember 18 Uhr Geschenke", "2026-12-24 18:00", "Geschenke"),
    ("am 15. um 8 Miete", "2026-03-15 08:00", "Miete"),
    ("Sonntag 9 Uhr abends Tatort", "2026-03-01 21:00", "Tatort"),
    # Russian
    ("завтра в 9 полить цветы", "2026-03-02 09:00", "полить цветы"),
    ("полить цветы завтра в 9", "2026-03-02 09:00", "полить цветы"),
    ("напомни мне завтра в 9 полить цветы", "2026-03-02 09:00", "полить цветы"),
    ("через 20 минут духовка", "2026-03-01 13:20", "духовка"),
    ("через час духовка", "2026-03-01 14:00", "духовка"),
    ("через полчаса духовка", "2026-03-01 13:30", "духовка"),
    ("через две недели духовка", "2026-03-15 09:00", "духовка"),
    ("сегодня в 18:30 ужин", "2026-03-01 18:30", "ужин"),
    ("сегодня вечером ужин", "2026-03-01 19:00", "ужин"),
    ("завтра в 7 вечера ужин", "2026-03-02 19:00", "ужин"),
    ("завтра в 3 часа дня врач", "2026-03-02 15:00", "врач"),
    ("в девять утра врач", "2026-03-02 09:00", "врач"),
    ("послезавтра утром врач", "2026-03-03 09:00", "врач"),
    ("в среду в 14:00 врач", "2026-03-04 14:00", "врач"),
    ("в следующую пятницу врач", "2026-03-06 09:00", "врач"),
    ("24 декабря в 10 подарки", "2026-12-24 10:00", "подарки"),
    ("24.12 в 10 подарки", "2026-12-24 10:00", "подарки"),
    ("15 числа в 8 аренда", "2026-03-15 08:00", "аренда"),
]
AGAIN = [
    ("every Monday at 9 bins", "2026-03-02 09:00", "FREQ=WEEKLY;BYDAY=MO", "bins"),
    ("every Monday bins", "2026-03-02 09:00", "FREQ=WEEKLY;BYDAY=MO", "bins"),
    ("bins every Monday at 9", "2026-03-02 09:00", "FREQ=WEEKLY;BYDAY=MO", "bins"),
    ("every Tuesday and Thursday at 18:00 gym", "2026-03-03 18:00", "FREQ=WEEKLY;BYDAY=TU,TH", "gym"),
    ("every day at 8 pills", "2026-03-02 08:00", "FREQ=DAILY", "pills"),
    ("daily at 20:00 pills", "2026-03-01 20:00", "FREQ=DAILY", "pills"),
    ("every evening pills", "2026-03-01 19:00", "FREQ=DAILY", "pills"),
    ("every weekday at 7 up", "2026-03-02 07:00", WORKDAYS, "up"),
    ("weekly on Friday at 16 report", "2026-03-06 16:00", "FREQ=WEEKLY;BYDAY=FR", "report"),
    ("every 2 weeks on Friday report", "2026-03-06 09:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=FR", "report"),
    ("every other day report", "2026-03-02 09:00", "FREQ=DAILY;INTERVAL=2", "report"),
    ("monthly on the 15th at 8 rent", "2026-03-15 08:00", "FREQ=MONTHLY;BYMONTHDAY=15", "rent"),
    ("every month on the 31st rent", "2026-03-31 09:00", "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1", "rent"),
    ("yearly on 24 December presents", "2026-12-24 09:00", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24", "presents"),
    ("jeden Montag um 9 Müll", "2026-03-02 09:00", "FREQ=WEEKLY;BYDAY=MO", "Müll"),
    ("montags Müll", "2026-03-02 09:00", "FREQ=WEEKLY;BYDAY=MO", "Müll"),
    ("jeden Dienstag und Donnerstag Sport", "2026-03-03 09:00", "FREQ=WEEKLY;BYDAY=TU,TH", "Sport"),
    ("täglich um 8 Tabletten", "2026-03-02 08:00", "FREQ=DAILY", "Tabletten"),
    ("jeden Morgen Tabletten", "2026-03-02 09:00", "FREQ=DAILY", "Tabletten"),
    ("werktags um 7 aufstehen", "2026-03-02 07:00", WORKDAYS, "aufstehen"),
    ("alle 2 Wochen Müll", "2026-03-08 09:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU", "Müll"),
    ("jeden Monat am 15. Miete", "2026-03-15 09:00", "FREQ=MONTHLY;BYMONTHDAY=15", "Miete"),
    ("jährlich am 24.12. Geschenke", "2026-12-24 09:00", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24", "Geschenke"),
    ("каждый понедельник в 9 мусор", "2026-03-02 09:00", "FREQ=WEEKLY;BYDAY=MO", "мусор"),
    ("каждую среду и пятницу спорт", "2026-03-04 09:00", "FREQ=WEEKLY;BYDAY=WE,FR", "спорт"),
    ("по вторникам в 18:00 спорт", "2026-03-03 18:00", "FREQ=WEEKLY;BYDAY=TU", "спорт"),
    ("по вторникам и четвергам в 18 спорт", "2026-03-03 18:00", "FREQ=WEEKLY;BYDAY=TU,TH", "спорт"),
    ("montags, mittwochs und freitags um 7 Sport", "2026-03-02 07:00", "FREQ=WEEKLY;BYDAY=MO,WE,FR", "Sport"),
    ("alle zwei Wochen dienstags Müll", "2026-03-03 09:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "Müll"),
    ("Mondays and Thursdays at 7 gym", "2026-03-02 07:00", "FREQ=WEEKLY;BYDAY=MO,TH", "gym"),
    ("каждый день в 8 таблетки", "2026-03-02 08:00", "FREQ=DAILY", "таблетки"),
    ("ежедневно в 8 таблетки", "2026-03-02 08:00", "FREQ=DAILY", "таблетки"),
    ("по будням в 7 вставать", "2026-03-02 07:00", WORKDAYS, "вставать"),
    ("каждый месяц 15 числа аренда", "2026-03-15 09:00", "FREQ=MONTHLY;BYMONTHDAY=15", "аренда"),
    ("каждый год 24 декабря подарки", "2026-12-24 09:00", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24", "подарки"),
]
NOTHING = [
    "",
    "milk",
    "buy milk",
    "every hour drink water",
    "every 2 hours drink water at the desk at 9",
    "on 31.02. dance",
    "at 25 dance",
    "daily on Monday dance",
    "through the park at dawn",
    "напомни",
    "через",
    "in 999 years dance",
    "0001-01-01 at 0:00 dance",
    "um drei viertel neun tanzen",
    "в 15 минут девятого танцы",
    "jeden Tag montags tanzen",
]


@pytest.mark.parametrize(("said", "due", "text"), ONCE, ids=[said for said, *_ in ONCE])
def test_a_time_is_understood(said: str, due: str, text: str) -> None:
    assert heard(said) == (due, None, text)


@pytest.mark.parametrize(("said", "due", "rule", "text"), AGAIN, ids=[said for said, *_ in AGAIN])
def test_what_comes_back_is_understood(said: str, due: str, rule: str, text: str) -> None:
    assert heard(said) == (due, rule, text)


@pytest.mark.parametrize("said", NOTHING)
def test_what_is_not_understood_is_not_guessed(said: str) -> None:
    assert understand(said, NOW, BERLIN) is None


@pytest.mark.parametrize("said", ["tomorrow at 9", "morgen", "каждый понедельник в 9"])
def test_a_time_without_a_text_is_a_time(said: str) -> None:
    assert heard(said)[2] == ""


def test_a_named_day_that_is_over_stays_in_the_past() -> None:
    found = understand("today at 9 dance", NOW, BERLIN)
    assert found is not None
    assert found[0].due < NOW


def test_in_twenty_minutes_is_twenty_minutes_also_over_the_change_to_summer_time() -> None:
    assert heard("in 20 minutes tea", datetime(2026, 3, 29, 0, 50, tzinfo=UTC))[0] == "2026-03-29 03:10"


@pytest.mark.parametrize(
    ("repeat", "rule"),
    [
        ("daily", "FREQ=DAILY"),
        ("weekly", "FREQ=WEEKLY;BYDAY=TU"),
        ("weekdays", WORKDAYS),
        ("monthly", "FREQ=MONTHLY;BYMONTHDAY=1"),
        ("yearly", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=1"),
        ("mon, thu", "FREQ=WEEKLY;BYDAY=MO,TH"),
        ("Monday,Thursday", "FREQ=WEEKLY;BYDAY=MO,TH"),
        ("TH TU", "FREQ=WEEKLY;BYDAY=TU,TH"),
        ("hourly", None),
        ("", None),
    ],
)
def test_a_word_of_the_model_is_a_rule(repeat: str, rule: str | None) -> None:
    assert repeat_rule(repeat, datetime(2026, 12, 1, 9)) == rule


WORDS = sorted({word for said, *_ in (*ONCE, *AGAIN) for word in said.split()})


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=12).map(" ".join))
def test_anything_that_people_type_is_a_time_to_come_or_a_named_day_or_nothing(said: str) -> None:
    found = understand(said, NOW, BERLIN)
    if found is not None:
        when, text = found
        assert when.rule is None or when.due > NOW
        assert when.due == recurring.instant_of(when.starts, BERLIN)
        assert all(word in said for word in text.split())


def test_there_are_sixty_phrases_in_three_languages() -> None:
    assert len(ONCE) + len(AGAIN) >= 60
    assert all(isinstance(found[0], When) for said, *_ in ONCE if (found := understand(said, NOW, BERLIN)))
