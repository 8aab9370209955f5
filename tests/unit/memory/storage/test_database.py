"""Reads side by side, writes one at a time."""

import asyncio
import sqlite3
from contextlib import suppress

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from memory.storage.database import Database
from memory.storage.tables import kept_values, users


async def test_p58_writers_side_by_side_lose_nothing(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(kept_values.insert().values(key="n", value=0, updated_at=0))

    async def add_one() -> None:
        async with database.write() as connection:
            value = (await connection.execute(sa.select(kept_values.c.value))).scalar_one()
            await asyncio.sleep(0)
            await connection.execute(kept_values.update().values(value=value + 1))

    await asyncio.gather(*(add_one() for _ in range(120)))
    async with database.read() as connection:
        assert (await connection.execute(sa.select(kept_values.c.value))).scalar_one() == 120


async def test_p58_two_processes_wait_for_each_other(database: Database) -> None:
    other = Database(database.url)

    async def write(opened: Database, key: str) -> None:
        for number in range(20):
            async with opened.write() as connection:
                await connection.execute(kept_values.insert().values(key=f"{key}{number}", value=1, updated_at=0))

    await asyncio.gather(write(database, "a"), write(other, "b"))
    await other.close()
    async with database.read() as connection:
        assert (await connection.execute(sa.select(sa.func.count()).select_from(kept_values))).scalar_one() == 40


async def test_a_failed_write_leaves_nothing(database: Database) -> None:
    async def fail_half_way() -> None:
        async with database.write() as connection:
            await connection.execute(kept_values.insert().values(key="n", value=0, updated_at=0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_half_way()
    async with database.read() as connection:
        assert (await connection.execute(sa.select(kept_values))).first() is None


async def test_an_error_does_not_quote_what_somebody_said(database: Database) -> None:
    with pytest.raises(IntegrityError) as caught:
        async with database.write() as connection:
            await connection.execute(users.insert().values(name=None, role="secret words", created_at=0))
    assert "secret words" not in str(caught.value)


async def test_a_write_that_says_nothing_leaves_no_transaction_behind(database: Database) -> None:
    other = Database(database.url)
    async with database.write():
        pass
    async with other.write() as connection:
        await connection.execute(kept_values.insert().values(key="n", value=1, updated_at=0))
    await other.close()
    async with database.write() as connection:
        assert (await connection.execute(sa.select(kept_values.c.value))).scalar_one() == 1


async def test_more_readers_than_connections_wait_for_their_turn(database: Database) -> None:
    async def look() -> int:
        async with database.read() as connection, database.search() as searching:
            await asyncio.sleep(0)
            await searching.execute(sa.select(kept_values))
            return (await connection.execute(sa.select(sa.literal(1)))).scalar_one()

    async with asyncio.timeout(10):
        assert await asyncio.gather(*(look() for _ in range(30))) == [1] * 30


async def test_a_kept_connection_sees_what_was_written_since(database: Database) -> None:
    for number in range(3):
        async with database.read() as connection:
            assert len((await connection.execute(sa.select(kept_values))).all()) == number
        async with database.write() as connection:
            await connection.execute(kept_values.insert().values(key=str(number), value=0, updated_at=0))


async def test_a_search_that_is_given_up_while_it_connects_loses_no_connection(database: Database) -> None:
    """A slow machine and a short patience must not use up the pool."""
    for _ in range(20):
        with suppress(TimeoutError):
            async with asyncio.timeout(0), database.search() as connection:
                await connection.execute(sa.text("SELECT 1"))
    async with database.search() as connection:
        assert (await connection.execute(sa.text("SELECT 1"))).scalar_one() == 1


async def test_p58_jotting_and_writing_side_by_side_lose_nothing(database: Database) -> None:
    async with database.jot() as connection:
        await connection.execute(kept_values.insert().values(key="n", value=0, updated_at=0))

    async def add_one(number: int) -> None:
        async with database.jot() if number % 2 else database.write() as connection:
            value = (await connection.execute(sa.select(kept_values.c.value))).scalar_one()
            await asyncio.sleep(0)
            await connection.execute(kept_values.update().values(value=value + 1))

    await asyncio.gather(*(add_one(number) for number in range(120)))
    async with database.read() as connection:
        assert (await connection.execute(sa.select(kept_values.c.value))).scalar_one() == 120


async def test_a_failed_jot_leaves_nothing_and_the_next_one_works(database: Database) -> None:
    async def jot(key: str, *, fails: bool) -> None:
        async with database.jot() as connection:
            await connection.execute(kept_values.insert().values(key=key, value=0, updated_at=0))
            if fails:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await jot("lost", fails=True)
    await jot("kept", fails=False)
    async with database.read() as connection:
        assert (await connection.execute(sa.select(kept_values.c.key))).scalars().all() == ["kept"]


async def test_the_loop_goes_on_while_another_process_writes(database: Database) -> None:
    """A driver that waits for the lock would hold up everybody."""
    other = sqlite3.connect(database.url.partition("///")[2], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ticks = 0

    async def jot() -> None:
        async with database.jot() as connection:
            await connection.execute(kept_values.insert().values(key="n", value=1, updated_at=0))

    task = asyncio.create_task(jot())
    while ticks < 20:
        await asyncio.sleep(0.001)
        ticks += 1
    assert not task.done()
    other.execute("ROLLBACK")
    other.close()
    await task
    async with database.read() as connection:
        assert (await connection.execute(sa.select(kept_values.c.value))).scalar_one() == 1


async def test_a_jot_that_is_given_up_at_any_moment_leaves_all_or_nothing(database: Database) -> None:
    async def jot(number: int) -> None:
        async with database.jot() as connection:
            for half in "ab":
                await connection.execute(kept_values.insert().values(key=f"{number}{half}", value=1, updated_at=0))
                await asyncio.sleep(0)

    for number in range(40):
        task = asyncio.create_task(jot(number))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        if number >= 32:
            await asyncio.sleep(0.0002 * (number - 32))  # somewhere in the commit
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    async with database.read() as connection:
        keys = (await connection.execute(sa.select(kept_values.c.key))).scalars().all()
    assert all(f"{key[:-1]}a" in keys and f"{key[:-1]}b" in keys for key in keys)
    await jot(99)
