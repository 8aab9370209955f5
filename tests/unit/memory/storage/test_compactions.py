"""A compaction is stored only for what it was made of, and goes when that changes."""

from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.ports import Compacted
from memory.storage import compactions
from memory.storage import log as message_log
from memory.storage.compactions import Stored
from memory.storage.database import Database
from memory.storage.tables import chats, messages, sessions, users

MADE = Compacted("So far.", {"type": "compaction", "content": "So far.", "signature": "s", "ä": [1, None]}, "m")


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[AsyncConnection]:
    """A session 1 with messages 1 to 4."""
    async with database.write() as connection:
        await connection.execute(users.insert().values(id=1, name="Ada", role="owner", created_at=0))
        await connection.execute(chats.insert().values(id=1, transport="t", external_id="1", kind="ai", created_at=0))
        row = {"id": 1, "chat_id": 1, "thread": "", "user_id": 1, "owner": "u1", "is_current": True}
        await connection.execute(sessions.insert().values(**row, created_at=0, last_used_at=0))
        for number in range(1, 5):
            said = {"session_id": 1, "role": "user", "speaker": "Ada", "text": f"m{number}", "created_at": 0}
            await connection.execute(messages.insert().values(id=number, **said))
        yield connection


async def test_a_block_comes_back_as_it_was_stored(connection: AsyncConnection) -> None:
    assert await compactions.load(connection, 1) == Stored()
    assert await compactions.put(connection, 1, MADE, 2, epoch=0, now=5)
    assert await compactions.load(connection, 1) == Stored(MADE, 2, 1)


@pytest.mark.parametrize("change", ["amend", "withhold", "drop", "drop_of"])
async def test_one_that_was_begun_before_a_change_is_not_stored(connection: AsyncConnection, change: str) -> None:
    """What was read for it may hold what was forgotten meanwhile."""
    epoch = (await compactions.load(connection, 1)).epoch
    match change:
        case "amend":
            await message_log.amend(connection, 1, "new")
        case "withhold":
            await message_log.withhold(connection, 1)
        case "drop":
            await compactions.drop(connection, [1])
        case _:
            await compactions.drop_of(connection, ["u1"])
    assert not await compactions.put(connection, 1, MADE, 2, epoch=epoch, now=5)
    assert (await compactions.load(connection, 1)).compacted is None


async def test_a_change_of_what_it_stands_for_takes_it_away_and_no_other(connection: AsyncConnection) -> None:
    await compactions.put(connection, 1, MADE, 2, epoch=0, now=5)
    await message_log.amend(connection, 4, "new")
    assert (await compactions.load(connection, 1)).compacted == MADE
    await message_log.amend(connection, 2, "new")
    assert (await compactions.load(connection, 1)).compacted is None


async def test_a_session_takes_its_block_along(connection: AsyncConnection) -> None:
    await compactions.put(connection, 1, MADE, 2, epoch=0, now=5)
    await connection.execute(sessions.delete())
    assert (await connection.execute(sa.select(sa.func.count()).select_from(compactions.compactions))).scalar_one() == 0
    assert not await compactions.put(connection, 1, MADE, 2, epoch=0, now=5)
