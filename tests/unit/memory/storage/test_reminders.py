"""The table of reminders: scope, one row a wish, and looks that an index answers."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage import people, reminders
from memory.storage.database import Database
from memory.storage.reminders import Wish
from memory.types import Audience, Role
from tests.unit.memory.storage.plans import asked, plan

ADA = Audience(1, 1, is_private=True)
BOB = Audience(2, 2, is_private=True)
HOME = {"transport": "fake", "chat": "42", "thread": ""}
TEA = Wish(1, None, "u1", HOME, "tea", "2026-03-02T09:00", "Europe/Berlin", None, 1000)


@pytest.fixture
async def connection(database: Database) -> AsyncGenerator[AsyncConnection, None]:
    async with database.write() as opened:
        for name in ("Ada", "Bob"):
            await people.admit(opened, f"fake:{name}", name, Role.MEMBER, "en", 0)
        yield opened


async def test_the_same_wish_is_one_row_while_it_waits(connection: AsyncConnection) -> None:
    first, was_known = await reminders.add(connection, TEA, 0)
    assert not was_known
    assert await reminders.add(connection, TEA, 0) == (first, True)
    assert await reminders.ring(connection, first, None)
    again, was_known = await reminders.add(connection, TEA, 0)
    assert not was_known
    assert again.id != first.id


@pytest.mark.parametrize(
    "other",
    [{"text": "coffee"}, {"due_at": 2000}, {"rule": "FREQ=DAILY"}, {"owner": "c7"}, {"user_id": 2, "owner": "u2"}],
)
async def test_another_wish_is_another_row(connection: AsyncConnection, other: dict[str, Any]) -> None:
    await reminders.add(connection, TEA, 0)
    assert not (await reminders.add(connection, replace(TEA, **other), 0))[1]


async def test_a_stored_reminder_reads_as_it_was_returned(connection: AsyncConnection) -> None:
    stored, _ = await reminders.add(connection, replace(TEA, rule="FREQ=DAILY"), 0)
    assert await reminders.by_id(connection, ADA, stored.id) == stored


async def test_p01_nobody_elses_reminder_is_seen_or_changed(connection: AsyncConnection) -> None:
    stored, _ = await reminders.add(connection, TEA, 0)
    assert await reminders.by_id(connection, BOB, stored.id) is None
    assert await reminders.page(connection, BOB, offset=0, limit=9) == []
    assert await reminders.count(connection, BOB) == 0
    assert await reminders.wait_until(connection, BOB, stored.id, 5) is None
    assert await reminders.done(connection, BOB, stored.id) is None
    assert not await reminders.delete(connection, BOB, stored.id)
    assert await reminders.by_id(connection, ADA, stored.id) == stored


async def test_a_ring_counts_once_and_not_after_a_change(connection: AsyncConnection) -> None:
    stored, _ = await reminders.add(connection, TEA, 0)
    await reminders.wait_until(connection, ADA, stored.id, 9000)
    assert not await reminders.ring(connection, stored, None)
    moved = replace(stored, due_at=9000)
    assert await reminders.ring(connection, moved, 10_000)
    assert not await reminders.ring(connection, moved, 10_000)
    assert await reminders.ring(connection, replace(moved, due_at=10_000), None)
    assert await reminders.page(connection, ADA, offset=0, limit=9) == []


async def test_what_is_due_comes_in_order_and_page_by_page(connection: AsyncConnection) -> None:
    for due_at in (3000, 1000, 2000, 1000, 9000):
        await reminders.add(connection, replace(TEA, due_at=due_at, text=f"tea {due_at}"), 0)
    seen, found = (-1, -1), list[int]()
    while batch := await reminders.due(connection, 5000, ["fake"], 2, seen):
        found += [each.reminder.due_at for each in batch]
        seen = (batch[-1].reminder.due_at, batch[-1].reminder.id)
    assert found == [1000, 2000, 3000]
    assert await reminders.next_due(connection, 5000, ["fake"]) == 9000
    assert await reminders.next_due(connection, 9000, ["fake"]) is None
    assert await reminders.due(connection, 5000, ["other"], 2) == []


async def test_only_what_is_over_is_pruned(connection: AsyncConnection) -> None:
    rung, _ = await reminders.add(connection, TEA, 0)
    await reminders.ring(connection, rung, None)
    await reminders.add(connection, replace(TEA, text="waits"), 0)
    assert await reminders.prune(connection, 1000) == 0
    assert await reminders.prune(connection, 1001) == 1
    assert await reminders.count(connection, ADA) == 1


async def test_a_look_for_what_is_due_reads_an_index(connection: AsyncConnection) -> None:
    """However many wait: no row that is not due is read."""
    with asked(connection) as statements:
        await reminders.due(connection, 5000, ["fake"], 2)
        await reminders.next_due(connection, 5000, ["fake"])
    plans = [" / ".join(await plan(connection, *each)) for each in statements]
    assert len(plans) == 2
    for steps in plans:
        assert steps.startswith("SEARCH reminders USING")
        assert "ix_reminders_due" in steps
        assert "TEMP B-TREE" not in steps
