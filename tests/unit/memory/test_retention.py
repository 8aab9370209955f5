"""What is too old goes once a day, in whatever zone and over whatever restart, and nothing else goes."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from memory import telemetry
from memory.retention import Ages, Counts, Retention, is_due
from memory.storage.backups import take_backup
from memory.storage.tables import inbox, messages, outbox, session_states, summaries
from memory.types import Session
from tests.fakes.noticing import Noticing, noticed
from tests.unit.memory.world import World

DAY_MS = 86_400_000
BERLIN = "Europe/Berlin"
FOR_EVER = Ages(telemetry=None, inbox=None, outbox=None)


def retention(world: World, ages: Ages) -> Retention:
    return world.memory.retention(ages)


@pytest.mark.parametrize(
    ("day", "zone", "at"),
    [
        ("2026-03-29", BERLIN, "02:30"),  # the clock never shows it
        ("2026-10-25", BERLIN, "02:30"),  # the clock shows it twice
        ("2026-10-25", BERLIN, "03:30"),
        ("2026-10-04", "Australia/Lord_Howe", "02:15"),
        ("2026-06-01", "UTC", "00:00"),
        ("2026-06-01", "Asia/Kathmandu", "23:59"),
    ],
)
def test_every_day_has_exactly_one_run_whatever_the_clock_does(day: str, zone: str, at: str) -> None:
    now = datetime.fromisoformat(f"{day}T00:00").replace(tzinfo=ZoneInfo(zone)) - timedelta(days=2)
    ran_on = (now - timedelta(days=1)).date().isoformat()
    runs: list[str] = []
    for _ in range(5 * 24 * 60):
        now = (now.astimezone(UTC) + timedelta(minutes=1)).astimezone(ZoneInfo(zone))
        if is_due(now, zone, at, ran_on):
            ran_on = now.date().isoformat()
            runs.append(ran_on)
    days = sorted(set(runs))
    assert len(runs) == len(days)
    assert day in days
    first = datetime.fromisoformat(days[0])
    assert days == [(first + timedelta(days=number)).date().isoformat() for number in range(len(days))]


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis adds it
def test_after_a_run_there_is_none_until_tomorrow(now: datetime) -> None:
    today = now.astimezone(ZoneInfo(BERLIN)).date().isoformat()
    assert not is_due(now, BERLIN, "00:00", today)
    assert is_due(now + timedelta(days=1, hours=1), BERLIN, "00:00", today)


async def test_it_runs_once_a_day_across_restarts(world: World) -> None:
    world.clock.advance(hours=15)  # 03:00 UTC
    assert await retention(world, FOR_EVER).is_due("UTC", "03:00")
    await retention(world, FOR_EVER).run("UTC")
    world.reborn()
    assert not await retention(world, FOR_EVER).is_due("UTC", "03:00")
    world.clock.advance(hours=23, minutes=59)
    assert not await retention(world, FOR_EVER).is_due("UTC", "03:00")
    world.clock.advance(minutes=1)
    assert await retention(world, FOR_EVER).is_due("UTC", "03:00")


async def events(world: World) -> list[str]:
    return [row["name"] for row in await world.rows("telemetry_events")]


async def test_old_events_go_in_steps_and_what_went_is_an_event(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.retention.ROWS", 7)
    async with world.database.write() as connection:
        for number in range(40):
            await telemetry.record(connection, telemetry.TurnFailed(failure="bug"), world.now - number * DAY_MS)
    ages = Ages(telemetry=10, inbox=None, outbox=None)
    assert (await retention(world, ages).count()).telemetry == 29
    counts = await retention(world, ages).run("UTC")
    assert counts == Counts(telemetry=29)
    rows = await world.rows("telemetry_events")
    assert len(rows) == 12
    assert (rows[-1]["name"], rows[-1]["data"]["telemetry"]) == ("memory.retention", 29)


async def old_session(world: World) -> Session:
    """A chat with an answer and a summary, a hundred days ago."""
    ada = await world.person("Ada")
    session = await world.talk(ada, "My dentist is called Brown", "Noted.", "And my dog is Rex", "Noted, too.")
    await world.memory.open()
    await world.memory.learn()
    await world.session(ada)  # another one is current now
    world.clock.advance(days=100)
    return session


async def test_without_a_setting_nothing_is_forgotten(world: World) -> None:
    session = await old_session(world)
    before = await world.snapshot(session.owner)
    await retention(world, Ages()).run("UTC")
    assert await world.snapshot(session.owner) == before


async def test_old_messages_go_with_everything_they_are_found_by(world: World) -> None:
    session = await old_session(world)
    ada = (await world.rows("users"))[0]["id"]
    fact = {"owner": session.owner, "scope": "private", "user_id": ada, "speaker": "Ada", "text": "x"}
    await world.insert(
        "facts", **fact, content_hash="h", source_message_ids=[1, 3], valid_from=0, created_at=0, slot=None
    )
    ages = Ages(messages=99, telemetry=None)
    assert (await retention(world, ages).count()).messages == 4
    assert (await retention(world, ages).run("UTC")).messages == 4
    await world.memory.learn()
    assert await world.rows("messages") == []
    assert [row["source_message_ids"] for row in await world.rows("facts")] == [[]]
    assert [row["session_id"] for row in await world.rows("summaries")] == [session.id]  # kept for ever: not set
    assert b"Noted, too" not in world.bytes_on_disk()


async def test_what_was_noticed_in_old_messages_goes_or_is_made_anew_and_no_word_of_them_is_left(world: World) -> None:
    rules = {
        "Bruno": noticed("my dog is called Bruno", title="The dog", narrative="The speaker's dog has the name Bruno."),
        "Lisbon": noticed("we fly to Lisbon in May", "event", title="Trip", narrative="A flight to Lisbon in May."),
    }
    memory = world.reborn(model=Noticing(dict(rules)).model())
    await memory.open()
    ada = await world.person("Ada")
    session = await world.talk(ada, "By the way, my dog is called Bruno.", "OK", "So we fly to Lisbon in May.", "Fine")
    world.clock.advance(minutes=1)
    await memory.learn()
    world.clock.advance(days=100)
    await world.say(session, "Again: my dog is called Bruno.", ada)
    await world.say(session, "I know.")
    world.clock.advance(minutes=1)
    await memory.learn()
    assert [row["proof_count"] for row in await world.rows("observations")] == [2, 1]
    ages = Ages(messages=99, telemetry=None, summaries=99)
    assert (await retention(world, ages).count()).observations == 1
    ran = await retention(world, ages).run("UTC")
    assert (ran.messages, ran.observations) == (4, 1)
    await memory.learn()
    [dog] = await world.rows("observations")
    assert (dog["narrative"], dog["proof_count"]) == ("my dog is called Bruno", 1)  # of the words that remain
    there = {row["id"] for row in await world.rows("messages")}
    assert {row["message_id"] for row in await world.rows("observation_evidence")} <= there
    assert b"Lisbon" not in world.bytes_on_disk()
    assert len(await world.vectors.ids(f"o.{session.owner}")) == 1


async def test_what_somebody_kept_by_hand_outlives_the_message_but_others_words_do_not(world: World) -> None:
    ada, bob = await world.person("Ada"), await world.person("Bob")
    ada_there, bob_there = await world.in_group(ada, bob)
    private, group = await world.session(ada), await world.session(ada_there)
    kept = [await world.say(private, "My locker is number 12.", ada), await world.say(private, "It is on floor two.")]
    for message in kept:
        await world.memory.observations.keep(ada, message)
    own = await world.say(group, "The meeting room is Aspen.", ada_there)
    others = await world.say(group, "My badge is lost again.", bob_there)
    for message in (own, others):
        await world.memory.observations.keep(ada_there, message)
    world.clock.advance(days=100)
    ages = Ages(messages=99, telemetry=None)
    assert (await retention(world, ages).count()).observations == 1
    assert (await retention(world, ages).run("UTC")).observations == 1
    left = [row["narrative"] for row in await world.rows("observations")]
    assert left == ["My locker is number 12.", "It is on floor two.", "The meeting room is Aspen."]
    assert {row["message_id"] for row in await world.rows("observation_evidence")} == {None}
    await world.memory.learn()
    assert b"badge" not in world.bytes_on_disk()


async def test_ids_of_events_go_by_their_age_in_steps_and_never_within_the_replay_window(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.retention.ROWS", 7)
    for number in range(20):
        await world.insert("hook_events", hook="shop", event_id=str(number), received_at=world.now)
    world.clock.advance(days=1, seconds=1)
    await world.insert("hook_events", hook="shop", event_id="new", received_at=world.now)
    ages = Ages(telemetry=None, hooks=1)
    assert (await retention(world, ages).count()).hooks == 20
    assert (await retention(world, ages).run("UTC")).hooks == 20
    assert [row["event_id"] for row in await world.rows("hook_events")] == ["new"]
    assert (await retention(world, ages).run("UTC")).hooks == 0


async def test_old_summaries_go_are_found_no_more_and_are_not_made_again(world: World) -> None:
    session = await old_session(world)
    ages = Ages(summaries=99, telemetry=None)
    assert (await retention(world, ages).run("UTC")).summaries == 1
    await world.memory.learn()
    assert await world.rows("summaries") == []
    assert await world.vectors.ids(session.owner) == set()
    assert len(await world.texts(session)) == 4


async def test_a_chat_of_which_nothing_is_left_goes_but_never_the_current_one(world: World) -> None:
    session = await old_session(world)
    await retention(world, Ages(messages=99, summaries=99, telemetry=None)).run("UTC")
    left = await world.rows("sessions")
    assert session.id not in [row["id"] for row in left]
    assert [row["is_current"] for row in left] == [True]


async def test_new_messages_of_an_old_chat_stay_and_are_found(world: World) -> None:
    ada = await world.person("Ada")
    session = await world.talk(ada, "My dentist is called Brown", "Noted.")
    await world.memory.open()
    await world.memory.learn()
    world.clock.advance(days=100)
    await world.say(session, "My dog is called Rex", ada)
    await world.say(session, "Noted.")
    await world.memory.learn()
    assert (await retention(world, Ages(messages=99, telemetry=None)).run("UTC")).messages == 2
    await world.memory.learn()
    assert await world.texts(session) == ["My dog is called Rex", "Noted."]
    other = await world.session(ada)
    found = await world.memory.recall(ada, other.id, "What is my dog called?")
    assert [each.session_id for each in found.recollections] == [session.id]


async def test_working_output_of_open_work_stays(world: World) -> None:
    ada = await world.person("Ada")
    closed, still_open = await world.session(ada, title="a"), await world.session(ada, title="b")
    for session in (closed, still_open):
        await world.say(session, "Dear landlord", is_ephemeral=True)
    state = {"tool": "draft", "title": "Mail", "user_id": ada.user_id, "opened_at": 1, "touched_at": 1}
    await world.insert(session_states.name, session_id=still_open.id, **state)
    world.clock.advance(days=31)
    ages = Ages(working_output=30, telemetry=None)
    assert (await retention(world, ages).count()).working_output == 1
    assert (await retention(world, ages).run("UTC")).working_output == 1
    assert [row["session_id"] for row in await world.rows("messages")] == [still_open.id]


async def test_traffic_and_backups_go_by_their_own_ages(world: World) -> None:
    old, new = world.now - 15 * DAY_MS, world.now - 13 * DAY_MS
    for number, at in enumerate((old, new)):
        row = {"transport": "telegram", "external_id": str(number), "received_at": at}
        await world.insert(inbox.name, **row, status="done", done_at=at)
        sent: dict[str, Any] = {"transport": "telegram", "place": {}, "lane": "x", "status": "sent"}
        await world.insert(outbox.name, **sent, created_at=at, sent_at=at)
    await world.insert(inbox.name, transport="telegram", external_id="3", received_at=old, status="running")
    path = world.data_dir / "merk.db"
    take_backup(path, "0001", world.clock.now() - timedelta(days=8))
    take_backup(path, "0001", world.clock.now() - timedelta(days=6))
    expected = Counts(inbox=1, outbox=1, backups=1)
    assert await retention(world, Ages()).count() == expected
    assert await retention(world, Ages()).run("UTC") == expected
    assert await retention(world, Ages(backups=6)).count() == Counts(backups=1)


async def test_a_dry_run_changes_nothing(world: World) -> None:
    await old_session(world)
    ages = Ages(1, 1, 1, 1, 1, 1, 1, 1)
    async with world.database.read() as connection:
        before = [(await connection.execute(sa.select(table))).all() for table in (messages, summaries)]
    counts = await retention(world, ages).count()
    assert (counts.messages, counts.summaries) == (4, 1)
    async with world.database.read() as connection:
        assert [(await connection.execute(sa.select(table))).all() for table in (messages, summaries)] == before
    assert "memory.retention" not in await events(world)
