"""Every reminder rings exactly once, whatever the clock and the program do."""

import asyncio
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.jobs import ringing
from bot.jobs.ringing import Ringing
from bot.schedule import Schedule
from bot.transports.base import Fault, SendError
from bot.transports.delivery import Delivery
from bot.transports.limiter import Limiter
from handlers.types import Card, Place
from memory.instants import SystemClock, from_ms, to_ms
from memory.storage import people, reminders
from memory.storage.database import Database
from memory.storage.outbox import OutboxRow
from memory.storage.reminders import Wish
from memory.storage.tables import outbox, sessions, users
from memory.storage.tables import reminders as table
from memory.types import Role
from tests.fakes.clock import FrozenClock
from tests.fakes.house import House, house

HOME = {"transport": "fake", "chat": "42", "thread": ""}


class _RunningClock(FrozenClock):
    """The machine's."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


async def rings(opened: House) -> list[str]:
    """Ring what is due and return what was shown for it."""
    before = set(opened.transport.shown)
    await opened.app.ringing.ring()
    await opened.settle()
    return [plain(shown.text) for ref, shown in opened.transport.shown.items() if ref not in before]


# --- what a person reads -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "told", "labels"),
    [
        ("en", "Reminder: tea", ["In 10 min", "In 1 h", "Done"]),
        ("de", "Erinnerung: tea", ["In 10 Min.", "In 1 Std.", "Erledigt"]),
        ("ru", "Напоминание: tea", ["Через 10 мин", "Через 1 ч", "Готово"]),
    ],
)
async def test_it_rings_in_the_persons_language(
    database: Database, tmp_path: Path, language: str, told: str, labels: list[str]
) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        async with database.write() as connection:
            await connection.execute(users.update().values(language=language))
        opened.clock.advance(minutes=19)
        assert await rings(opened) == []
        opened.clock.advance(minutes=1)
        assert await rings(opened) == [told]
        assert opened.labels() == labels
        assert await rings(opened) == []


async def test_it_is_put_off_and_rings_again(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        opened.clock.advance(minutes=20)
        await rings(opened)
        (told,) = await opened.press("In 10 min")
        assert plain(told) == "I will remind you again: tea\nSunday, March 1, 2026, 1:30 PM"
        opened.clock.advance(minutes=10)
        assert await rings(opened) == ["Reminder: tea"]
        assert await opened.press("Done") == ["Done: tea"]
        opened.clock.advance(days=400)
        assert await rings(opened) == []


async def test_one_that_comes_back_is_put_off_without_losing_its_next_time(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind every day at 14 pills")
        opened.clock.advance(hours=1)
        assert await rings(opened) == ["Reminder: pills"]
        await opened.press("In 1 h")
        opened.clock.advance(hours=1)
        assert await rings(opened) == ["Reminder: pills"]
        (told,) = await opened.press("Done")
        assert plain(told) == "Done: pills\nNext time: Monday, March 2, 2026, 2:00 PM"
        opened.clock.advance(hours=22, minutes=59)
        assert await rings(opened) == []
        opened.clock.advance(minutes=1)
        assert await rings(opened) == ["Reminder: pills"]


async def test_a_second_press_is_told_what_the_first_one_did(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        opened.clock.advance(minutes=20)
        await rings(opened)
        token = opened.transport.tokens()["Done"]
        await opened.press("Done")
        assert await opened.press_token(token, "9") == ["This is done already."]


async def test_in_a_group_it_says_for_whom(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea", chat="-7", group=True)
        opened.clock.advance(minutes=20)
        assert await rings(opened) == ["Reminder for Person 42: tea"]
        assert opened.transport.texts(Place("fake", "-7"))[-1] == "Reminder for Person 42: tea"


# --- over a restart ----------------------------------------------------------------------------------


async def test_what_was_missed_rings_once_at_start_and_says_when_it_was_due(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind tomorrow at 9 tea")
    opened.clock.advance(days=3)
    async with house(database, tmp_path, before=opened) as again:
        await again.app.ringing.ring()
        await again.settle()
        assert [plain(text) for text in again.transport.texts()[1:]] == [
            "Reminder: tea\nThis was due on Monday, March 2, 2026, 9:00 AM; I was not running then."
        ]
    async with house(database, tmp_path, before=again) as later:
        assert await rings(later) == []


async def test_ten_missed_recurrences_ring_once(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind every day at 9 pills")
        opened.clock.advance(days=10)
        late = "This was due 10 times while I was not running, last on Wednesday, March 11, 2026, 9:00 AM."
        assert await rings(opened) == [f"Reminder: pills\n{late}"]
        opened.clock.advance(hours=20)
        assert await rings(opened) == ["Reminder: pills"]


async def test_a_crash_before_the_commit_rings_at_the_next_look_and_only_then(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: Any) -> None:
        raise OSError("the power went")

    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        opened.clock.advance(minutes=20)
        with monkeypatch.context() as patched:
            patched.setattr(ringing, "post", crash)
            assert await rings(opened) == []
        assert await rings(opened) == ["Reminder: tea"]


async def test_a_crash_after_the_commit_delivers_what_was_posted(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        opened.clock.advance(minutes=20)
        await opened.app.delivery.drain(0)  # the process dies between the commit and the send
        await opened.app.ringing.ring()
        assert len(opened.transport.texts()) == 1
    async with house(database, tmp_path, before=opened) as again:
        await again.app.ringing.ring()
        await again.settle()
        assert again.transport.texts()[1:] == ["Reminder: tea"]


async def test_one_that_fails_holds_up_no_other(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        async with database.write() as connection:
            await connection.execute(table.update().values(timezone="Nowhere/Land"))
        await opened.say("/remind in 21 minutes coffee")
        opened.clock.advance(minutes=25)
        assert [text.splitlines()[0] for text in await rings(opened)] == ["Reminder: coffee"]


async def test_two_looks_at_once_ring_once(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        opened.clock.advance(minutes=20)
        await asyncio.gather(*(opened.app.ringing.ring() for _ in range(5)), opened.app.sweep())
        await opened.settle()
        assert opened.transport.texts().count("Reminder: tea") == 1


async def test_what_is_to_ring_on_another_transport_waits_for_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        opened.clock.advance(minutes=30)
        async with database.write() as connection:
            await connection.execute(table.update().values(place={**HOME, "transport": "other"}))
        assert await rings(opened) == []
        async with database.write() as connection:
            await connection.execute(table.update().values(place=HOME))
        assert len(await rings(opened)) == 1


# --- where it rings ----------------------------------------------------------------------------------


async def test_p37_in_a_deleted_thread_it_is_offered_in_the_chat(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.transports.delivery.LOST_THREAD_TRIES", 1)
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea", thread="7")
        opened.clock.advance(minutes=20)
        opened.transport.faults.append(SendError(Fault.NO_THREAD, "message thread not found"))
        assert await rings(opened) == ["This topic is gone; my answer from there waits here."]
        assert "Reminder: tea" in await opened.press("Show the answer")
        assert await opened.press("Done") == ["Done: tea"]


async def test_it_rings_after_its_session_was_deleted(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        async with database.write() as connection:
            await connection.execute(sessions.delete())
        opened.clock.advance(minutes=20)
        assert await rings(opened) == ["Reminder: tea"]
        assert await opened.press("Done") == ["Done: tea"]


async def test_a_chat_with_a_new_id_takes_its_reminders_along(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        group = {"chat": "-7", "group": True}
        await opened.say("/remind in 20 minutes tea", **group)
        await opened.say("", **group, moved=["-7", "-100"])
        opened.clock.advance(minutes=20)
        assert await rings(opened) == ["Reminder for Person 42: tea"]
        assert opened.transport.texts(Place("fake", "-100")) == ["Reminder for Person 42: tea"]


async def test_an_erased_person_is_not_reminded_and_an_export_has_what_waits(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind every day at 9 pills")
        exported = await opened.memory.export(1)
        assert [each["text"] for each in exported["reminders"]] == ["pills"]
        assert exported["reminders"][0]["due_at"] == "2026-03-02T08:00:00+00:00"
        await opened.memory.erase_history(1)
        assert len((await opened.memory.export(1))["reminders"]) == 1
        await opened.memory.erase_user(1)
        opened.clock.advance(days=3)
        assert await rings(opened) == []


# --- the wake-up -------------------------------------------------------------------------------------


async def test_the_schedule_wakes_it_when_it_is_due(database: Database, tmp_path: Path) -> None:
    """On the machine's own clock: nobody but APScheduler looks."""
    async with house(database, tmp_path, clock=_RunningClock()) as opened:
        await opened.say("/remind in 1 second tea")
        async with asyncio.timeout(10):
            while "Reminder: tea" not in opened.transport.texts():  # noqa: ASYNC110 - a transport sets no event
                await asyncio.sleep(0.02)
        row = await _first(opened)
        assert timedelta(0) <= datetime.now(UTC) - from_ms(row["due_at"]) < timedelta(seconds=1)


async def test_a_nearer_plan_takes_the_place_of_the_last(database: Database) -> None:
    del database
    clock = SystemClock()
    schedule = Schedule("UTC", clock)
    schedule.start()
    done: list[str] = []
    rang = asyncio.Event()

    def job(name: str) -> Callable[[], Any]:
        async def run() -> None:
            done.append(name)
            rang.set()

        return run

    schedule.at(clock.now() + timedelta(seconds=0.2), job("first"))
    schedule.at(clock.now() + timedelta(seconds=0.1), job("second"))
    async with asyncio.timeout(5):
        await rang.wait()
    await asyncio.sleep(0.3)
    schedule.stop()
    assert done == ["second"]


async def _first(opened: House) -> dict[str, Any]:
    async with opened.database.read() as connection:
        return dict((await connection.execute(sa.select(table))).mappings().one())


async def test_what_has_rung_is_dropped_after_two_weeks_and_what_waits_is_not(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind in 20 minutes tea")
        await opened.say("/remind 2026-12-24 presents")
        opened.clock.advance(hours=1)
        await rings(opened)
        opened.clock.advance(days=15)
        await opened.app.tidy()
        assert (await _first(opened))["text"] == "presents"


# --- over any clock ----------------------------------------------------------------------------------


def _autumn(day: date) -> datetime:
    """02:30 in Berlin; 25 October has it twice, and rings at the first."""
    return datetime(day.year, day.month, day.day, 0 if day <= date(2026, 10, 25) else 1, 30, tzinfo=UTC)


def _spring(day: date) -> datetime:
    """02:30 in Berlin; 29 March has none, and rings when the gap ends."""
    if day == date(2026, 3, 29):
        return datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    return datetime(day.year, day.month, day.day, 1 if day < date(2026, 3, 29) else 0, 30, tzinfo=UTC)


STEPS = st.lists(
    st.tuples(st.integers(-36 * 60, 48 * 60), st.booleans()),  # minutes that the clock jumps; a restart before it
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize(("begins", "rings_on"), [(date(2026, 10, 23), _autumn), (date(2026, 3, 27), _spring)])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_each_time_rings_once_over_jumps_restarts_and_the_change_of_the_clock(
    empty_database: Path, begins: date, rings_on: Callable[[date], datetime], steps: list[tuple[int, bool]]
) -> None:
    times = [rings_on(begins + timedelta(days=day)) for day in range(120)]
    with TemporaryDirectory() as folder:
        shutil.copy(empty_database, Path(folder) / "merk.db")
        asyncio.run(_walk(Path(folder) / "merk.db", begins, times, steps))


async def _walk(path: Path, begins: date, times: list[datetime], steps: list[tuple[int, bool]]) -> None:
    """A time rings at the first look after it, with all that went by since the last; no look rings it again."""
    clock = FrozenClock(datetime(begins.year, begins.month, begins.day, tzinfo=UTC))
    database = Database.at(path)
    await _plan_daily(database, begins, times[0])
    ringer = _ringing(database, clock)
    latest, rung = clock.now(), 0
    for minutes, restarts in steps:
        if restarts:
            await database.close()
            database = Database.at(path)
            ringer = _ringing(database, clock)
        clock.advance(minutes=minutes)
        await ringer.ring()
        rung += any(latest < each <= clock.now() for each in times)
        latest = max(latest, clock.now())
        assert await _posted(database) == rung
    await database.close()


async def _plan_daily(database: Database, begins: date, first: datetime) -> None:
    async with database.write() as connection:
        user = await people.admit(connection, "fake:42", "Ada", Role.MEMBER, "en", 0)
        starts = f"{begins}T02:30"
        wish = Wish(user.id, None, f"u{user.id}", HOME, "pills", starts, "Europe/Berlin", "FREQ=DAILY", to_ms(first))
        await reminders.add(connection, wish, 0)


def _ringing(database: Database, clock: FrozenClock) -> Ringing:
    async def offer(_row: OutboxRow) -> Card:
        return Card("")

    delivery = Delivery(database, clock, {}, Limiter(), offer)
    return Ringing(database, clock, Schedule("UTC", clock), delivery, ["fake"])


async def _posted(database: Database) -> int:
    async with database.read() as connection:
        return int((await connection.execute(sa.select(sa.func.count()).select_from(outbox))).scalar_one())
