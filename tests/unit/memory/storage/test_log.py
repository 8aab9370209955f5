"""The log: what it costs to look at a chat does not grow with what was said in it."""

from memory.storage import log
from memory.storage.database import Database
from tests.unit.memory.storage.plans import asked, plan


async def test_a_chat_is_counted_without_reading_its_rows(database: Database) -> None:
    """A chat that goes on for years is counted with every message: by an index that holds durable messages only."""
    async with database.search() as connection:
        with asked(connection) as statements:
            await log.newest_and_count(connection, 1, 25, before=9)
        ((statement, parameters),) = statements
        newest, subquery, count = await plan(connection, statement, parameters)
    assert "ix_messages_durable (session_id=? AND id<?)" in newest
    assert subquery.startswith("SCALAR SUBQUERY")
    assert "ix_messages_durable (session_id=? AND id<?)" in count
