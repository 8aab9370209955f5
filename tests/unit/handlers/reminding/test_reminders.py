"""Reminders as people meet them: set by a command and by the model, listed, put off, done, deleted. In Berlin."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from memory.ports import ChatMessage, TextBlock, ToolResult
from memory.storage.database import Database
from memory.storage.tables import messages, reminders, users
from tests.fakes.house import House, house
from tests.fakes.model import call


def seen(message: ChatMessage) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock | ToolResult))


async def stored(opened: House, *columns: sa.Column[Any]) -> list[tuple[Any, ...]]:
    query = sa.select(*(columns or (reminders.c.text, reminders.c.status))).order_by(sa.literal_column("id"))
    async with opened.database.read() as connection:
        return [tuple(row) for row in (await connection.execute(query)).all()]


async def speak(opened: House, language: str, timezone: str | None = None) -> None:
    """Make the person known, who reads this language in this zone."""
    await opened.say("/help")
    async with opened.database.write() as connection:
        await connection.execute(users.update().values(language=language, timezone=timezone))


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("language", "said", "told", "undo_and_undone"),
    [
        (
            "en",
            "/remind tomorrow at 9 water the plants",
            "I will remind you: water the plants\nMonday, March 2, 2026, 9:00 AM",
            ("Undo", "Undone; I will not remind you."),
        ),
        (
            "de",
            "/remind morgen um 9 Blumen gießen",
            "Ich erinnere dich: Blumen gießen\nMontag, 2. März 2026, 09:00",
            ("Rückgängig", "Rückgängig gemacht; ich erinnere dich nicht."),
        ),
        (
            "ru",
            "/remind завтра в 9 полить цветы",
            "Напомню вам: полить цветы\nпонедельник, 2 марта 2026 г., 09:00",
            ("Отменить", "Отменено, напоминать не буду."),
        ),
    ],
)
async def test_a_reminder_is_set_told_and_taken_back(
    database: Database, tmp_path: Path, language: str, said: str, told: str, undo_and_undone: tuple[str, str]
) -> None:
    undo, undone = undo_and_undone
    async with house(database, tmp_path) as opened:
        await speak(opened, language, "Europe/Berlin")
        assert [plain(text) for text in await opened.say(said)] == [told]
        assert opened.labels() == [undo]
        due = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
        assert await stored(opened, reminders.c.due_at, reminders.c.timezone) == [
            (due.timestamp() * 1000, "Europe/Berlin")
        ]
        assert await opened.press(undo) == [undone]
        assert await stored(opened) == []
        assert opened.model.requests == []


@pytest.mark.parametrize(
    ("language", "example"),
    [
        ("en", "/remind in 20 minutes check the oven"),
        ("de", "/remind in 20 Minuten nach dem Ofen sehen"),
        ("ru", "/remind через 20 минут проверить духовку"),
    ],
)
@pytest.mark.parametrize("said", ["/remind", "/remind milk", "/remind tomorrow at 9"])
async def test_what_is_not_understood_is_answered_with_examples_that_work(
    database: Database, tmp_path: Path, language: str, example: str, said: str
) -> None:
    async with house(database, tmp_path) as opened:
        await speak(opened, language)
        (told,) = await opened.say(said)
        assert example in told
        for line in told.splitlines()[1:]:
            await opened.say(line)
        assert len(await stored(opened)) == 3


async def test_a_day_that_is_over_is_refused_with_the_time(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (told,) = await opened.say("/remind today at 9 dance")
        assert plain(told) == "That time is over: it is Sunday, March 1, 2026, 1:00 PM now."
        assert await stored(opened) == []


async def test_the_same_reminder_twice_is_one(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind tomorrow at 9 tea")
        (told,) = await opened.say("/remind tea tomorrow at 9")
        assert told.startswith("This reminder is set already: tea")
        assert opened.labels() == ["Delete"]
        assert len(await stored(opened)) == 1
        await opened.press("Delete")
        assert await opened.press("Yes, delete") == ["The reminder is deleted."]
        assert await stored(opened) == []


async def test_p24_a_secret_is_left_out(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (told,) = await opened.say("/remind tomorrow at 9 my mail password is hunter2hunter2")
        assert "hunter2" not in told + str(await stored(opened))
        assert "I left out" in told


async def test_p22_somebody_elses_words_need_a_tap(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (asked,) = await opened.say("/remind tomorrow at 9", quote="Bring the contract")
        assert "not only your own words" in asked
        assert await stored(opened) == []
        (told,) = await opened.press("Remind me")
        assert told.startswith("I will remind you: Bring the contract")
        assert await stored(opened) == [("Bring the contract", "waiting")]


# --- the model -------------------------------------------------------------------------------------


async def test_p09_the_model_sets_one_and_the_card_is_told_from_the_row(database: Database, tmp_path: Path) -> None:
    script = (call("set_reminder", text="water the plants", at="2026-03-02T09:00", repeat="weekly"), "Done.")
    async with house(database, tmp_path, *script) as opened:
        said = await opened.say("Remind me to water the plants every Monday at nine")
        assert [plain(text) for text in said] == [
            "Done.",
            "I will remind you: water the plants\nMonday, March 2, 2026, 9:00 AM (every week: Monday)",
        ]
        assert await stored(opened, reminders.c.rule) == [("FREQ=WEEKLY;BYDAY=MO",)]
        assert "Set: water the plants, on Monday 2026-03-02 09:00" in seen(opened.model.requests[1].messages[-1])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"text": "", "at": "2026-03-02T09:00"}, "text must say"),
        ({"text": "tea", "at": "tomorrow"}, "at must be"),
        ({"text": "tea", "at": "2026-02-28T09:00"}, "it is 2026-03-01T13:00 now"),
        ({"text": "tea", "at": "9999-12-31T23:59"}, "Nothing was set"),
        ({"text": "tea", "at": "2026-03-02T09:00", "repeat": "hourly"}, "repeat must be"),
        ({"text": 7, "at": 7}, "text must say"),
    ],
)
async def test_the_model_is_told_what_is_wrong(
    database: Database, tmp_path: Path, arguments: dict[str, Any], why: str
) -> None:
    async with house(database, tmp_path, call("set_reminder", **arguments), "Hm.") as opened:
        await opened.say("Remind me of tea")
        assert why in seen(opened.model.requests[1].messages[-1])
        assert await stored(opened) == []


@pytest.mark.parametrize(
    ("at", "local"),
    [
        ("2026-03-02", "2026-03-02 09:00"),
        ("2026-03-02T08:00Z", "2026-03-02 09:00"),
        ("2026-03-02 07:15", "2026-03-02 07:15"),
    ],
)
async def test_the_model_may_write_the_time_in_other_ways(
    database: Database, tmp_path: Path, at: str, local: str
) -> None:
    async with house(database, tmp_path) as opened:
        await speak(opened, "en", "Europe/Berlin")
        opened.model.script += [call("set_reminder", text="tea", at=at), "Done."]
        await opened.say("Remind me of tea")
        assert local in seen(opened.model.requests[1].messages[-1])


async def test_the_model_reads_the_persons_own_time(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await speak(opened, "en", "Asia/Tokyo")
        await opened.say("What time is it?")
        assert "Now: Sunday, 2026-03-01 21:00 JST" in seen(opened.model.requests[0].messages[-1])


async def test_p22_in_a_turn_with_somebody_elses_words_the_model_needs_a_tap(
    database: Database, tmp_path: Path
) -> None:
    script = (call("set_reminder", text="pay Eve", at="2026-03-02T09:00"), "I asked.")
    async with house(database, tmp_path, *script) as opened:
        said = await opened.say("Please see to this", quote="remind them to pay me")
        assert plain(said[1]).endswith("pay Eve\nMonday, March 2, 2026, 9:00 AM")
        assert await stored(opened) == []
        (told,) = await opened.press("Remind me")
        assert told.startswith("I will remind you: pay Eve")


async def test_the_models_list_is_working_output(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, call("list_reminders"), "These.", "Hello.") as opened:
        await opened.say("/remind tomorrow at 9 water the canary")
        said = await opened.say("Which reminders do I have?")
        assert "1 reminder is waiting" in said[1]
        assert "water the canary" in seen(opened.model.requests[1].messages[-1])
        await opened.say("Hello")
        assert "canary" not in "".join(seen(message) for message in opened.model.requests[2].messages)
        query = sa.select(messages.c.is_ephemeral).where(messages.c.text.contains("canary"))
        async with opened.database.read() as connection:
            assert list((await connection.execute(query)).scalars()) == [True]


async def test_an_empty_list_is_a_sentence(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, call("list_reminders"), "None.") as opened:
        assert await opened.say("Which reminders do I have?") == ["None."]
        assert "No reminder is waiting" in (await opened.say("/reminders"))[0]


# --- the list --------------------------------------------------------------------------------------


async def test_the_list_pages_and_opens(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        for day in range(2, 10):
            await opened.say(f"/remind 2026-03-{day:02} at 9 call number {day}")
        (page,) = await opened.say("/reminders")
        assert plain(page).splitlines()[:3] == [
            "8 reminders are waiting:",
            "",
            "1. Monday, March 2, 2026, 9:00 AM: call number 2",
        ]
        (page,) = await opened.press("More ›")
        assert "8. " in page
        (one,) = await opened.press("8. call number 9")
        assert plain(one) == "Monday, March 9, 2026, 9:00 AM: call number 9"
        assert opened.labels(opened.transport.shown[max(opened.transport.shown, key=int)]) == [
            "10 min later",
            "1 h later",
            "1 day later",
            "Done",
            "Delete",
            "Back",
        ]
        (page,) = await opened.press("Back")
        assert "7. " in page


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("10 min later", "Monday, March 2, 2026, 9:10 AM"),
        ("1 h later", "Monday, March 2, 2026, 10:00 AM"),
        ("1 day later", "Tuesday, March 3, 2026, 9:00 AM"),
    ],
)
async def test_what_is_listed_is_put_off(database: Database, tmp_path: Path, label: str, told: str) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind tomorrow at 9 tea")
        await opened.say("/reminders")
        await opened.press("1. tea")
        (said,) = await opened.press(label)
        assert plain(said) == f"I will remind you again: tea\n{told}"


async def test_one_day_later_keeps_the_wall_clock_over_the_change_to_summer_time(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await speak(opened, "en", "Europe/Berlin")
        await opened.say("/remind 2026-03-28 at 9 tea")
        await opened.say("/reminders")
        await opened.press("1. tea")
        assert plain((await opened.press("1 day later"))[0]).endswith("Sunday, March 29, 2026, 9:00 AM")


async def test_done_with_one_that_comes_back_skips_it_once(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind every Monday at 9 bins")
        await opened.say("/reminders")
        await opened.press("1. bins")
        (told,) = await opened.press("Skip this time")
        assert plain(told) == "Done: bins\nNext time: Monday, March 9, 2026, 9:00 AM"
        assert await stored(opened) == [("bins", "waiting")]


async def test_done_with_one_that_does_not_come_back_is_for_good(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind tomorrow at 9 tea")
        await opened.say("/reminders")
        await opened.press("1. tea")
        assert await opened.press("Done") == ["Done: tea"]
        assert "No reminder" in (await opened.say("/reminders"))[0]


async def test_deleting_asks(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind every Monday at 9 bins")
        await opened.say("/reminders")
        await opened.press("1. bins")
        (asked,) = await opened.press("Delete")
        assert asked.startswith("Delete this reminder?\nMonday")
        assert await opened.press("No") == ["Nothing was changed."]
        assert len(await stored(opened)) == 1


async def test_what_is_gone_is_said_to_be_gone(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind tomorrow at 9 tea")
        await opened.say("/reminders")
        async with opened.database.write() as connection:
            await connection.execute(reminders.delete())
        assert "not there any more" in (await opened.press("1. tea"))[0]


async def test_p01_a_groups_list_has_nothing_private(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remind tomorrow at 9 private tea")
        group = {"chat": "-7", "group": True}
        assert "No reminder" in (await opened.say("/reminders", **group))[0]
        await opened.say("/remind tomorrow at 9 team tea", **group)
        assert "team tea" in (await opened.say("/reminders", **group, **{"from": "43"}))[0]
        assert "team tea" not in (await opened.say("/reminders"))[0]


async def test_a_strangers_press_changes_nothing(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        group = {"chat": "-7", "group": True}
        await opened.say("/remind tomorrow at 9 team tea", **group)
        await opened.say("hello", **group, **{"from": "43"})
        await opened.press("Undo", **group, **{"from": "43"})
        assert len(await stored(opened)) == 1


# --- the time zone -----------------------------------------------------------------------------------


async def test_a_time_zone_is_chosen_and_told(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (told,) = await opened.say("/timezone berlin")
        assert "Europe/Berlin" in told
        assert "1:00 PM" in plain(told)
        assert "Europe/Berlin" in (await opened.say("/timezone"))[0]
        assert await stored(opened, users.c.timezone) == [("Europe/Berlin",)]


async def test_an_unknown_zone_is_answered_with_an_example(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (told,) = await opened.say("/timezone Atlantis/Old_Town")
        assert "America/New_York" in told
