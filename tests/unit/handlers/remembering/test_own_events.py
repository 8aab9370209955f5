"""What Merk itself does becomes events of memory, once each, without anybody's words, and while nobody waits."""

import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from memory.kinds.observations.observations import Observations
from memory.scope import own_key
from memory.storage.database import Database
from memory.storage.tables import observations
from tests.fakes.house import House, house

CANARY = "zebra marmalade"


async def events(database: Database) -> list[dict[str, Any]]:
    async with database.read() as connection:
        rows = await connection.execute(sa.select(observations).order_by(observations.c.id))
        return [dict(row) for row in rows.mappings().all()]


async def change_instructions(opened: House, text: str) -> None:
    await opened.say(f"/instructions {text}")
    await opened.press("Apply")


async def test_changed_instructions_are_noted_with_their_number_and_not_their_words(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await change_instructions(opened, f"Always speak of {CANARY}.")
        assert await events(database) == []  # not while the person waits
        await opened.app.sweep()
        await opened.app.sweep()
        [event] = await events(database)
    assert (event["type"], event["trigger_source"]) == ("event", "hook")
    assert re.fullmatch(r"Instructions changed: version \d+ is in force", event["title"])
    assert event["owner"] == own_key(event["user_id"])
    assert "zebra" not in str(event)


async def test_a_finished_reminder_is_noted_with_its_time_and_not_its_words(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say(f"/remind in 10 minutes {CANARY}")
        opened.clock.advance(minutes=11)
        await opened.app.ringing.ring()
        await opened.settle()
        await opened.press("Done")
        await opened.app.sweep()
        [event] = await events(database)
    assert event["title"].startswith("A reminder for ")
    assert event["title"].endswith(" was done")
    assert "zebra" not in str(event)


async def test_newcomers_are_counted_in_the_group_and_not_named(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"chat": "-100", "came": ["7", "8"]})
        await opened.transport.accept("b", {"chat": "-100", "came": ["8"]})  # known by now
        await opened.app.sweep()
        [event] = await events(database)
    assert event["title"] == "New members of the group: 2"
    assert event["owner"].startswith("c")


async def test_what_could_not_be_kept_is_kept_at_the_end(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_args: object, **_more: object) -> None:
        raise OSError("disk full")

    async with house(database, tmp_path) as opened:
        await change_instructions(opened, "Be brief.")
        with monkeypatch.context() as broken:
            broken.setattr(Observations, "note_event", fails)
            with pytest.raises(OSError, match="disk full"):
                await opened.app.sweep()
        assert await events(database) == []
    assert len(await events(database)) == 1
