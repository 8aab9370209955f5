"""What answers made of observations: read from their traces after the fact, so that no answer waits for it.

Rule: each answer is counted once, over restarts: how far the log was read is kept in the transaction that counts.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.observations.changing import feed_back
from memory.scope import Audience
from memory.storage import kept
from memory.storage.database import Database
from memory.storage.tables import messages, observations, sessions

WATERMARK = "observations-used"
_BATCH = 100
_asked = messages.alias()
_ASKER = (
    sa.select(_asked.c.user_id)
    .where(_asked.c.session_id == messages.c.session_id, _asked.c.inbox_id == messages.c.inbox_id)
    .where(_asked.c.role == "user")
    .correlate(messages)
    .limit(1)
    .scalar_subquery()
)


async def count_uses(database: Database, now: int) -> int:
    """Note which observations the answers since the last time were made with, and which they cite."""
    counted = 0
    while True:
        async with database.read() as connection:
            seen, newest = await _seen(connection)
        if newest <= seen:
            return counted
        async with database.write() as connection:
            counted += await _count_some(connection, now)


async def _seen(connection: AsyncConnection) -> tuple[int, int]:
    """How far the log was read, and how far it goes."""
    newest = int((await connection.execute(sa.select(sa.func.coalesce(sa.func.max(messages.c.id), 0)))).scalar_one())
    return min(int(await kept.load(connection, WATERMARK) or 0), newest), newest


async def _count_some(connection: AsyncConnection, now: int) -> int:
    seen, newest = await _seen(connection)
    query = (
        sa.select(
            messages.c.id,
            messages.c.memory_trace,
            sessions.c.owner,
            sessions.c.chat_id,
            sa.func.coalesce(_ASKER, sessions.c.user_id).label("asker"),
        )
        .join(sessions, sessions.c.id == messages.c.session_id)
        .where(messages.c.id > seen, messages.c.role == "assistant", ~messages.c.is_ephemeral)
        .order_by(messages.c.id)
        .limit(_BATCH)
    )
    rows = (await connection.execute(query)).mappings().all()
    counted = 0
    for row in rows:
        counted += await _count(connection, row, now)
    await kept.put(connection, WATERMARK, rows[-1]["id"] if len(rows) == _BATCH else newest, now)
    return counted


async def _count(connection: AsyncConnection, row: sa.RowMapping, now: int) -> int:
    trace: dict[str, Any] = row["memory_trace"] or {}
    shown = [int(each["id"]) for each in trace.get("observations", ())]
    if not shown:
        return 0
    there = set((await connection.execute(sa.select(observations.c.id).where(observations.c.id.in_(shown)))).scalars())
    # a model may cite what it was never shown: that is no use of it
    cited = set(trace.get("cited", {}).get("observations", ()))
    audience = Audience(row["asker"], row["chat_id"], is_private=row["owner"].startswith("u"))
    for each in shown:
        if each in there:
            await feed_back(connection, each, audience, "retrieved", row["id"], now)
            if each in cited:
                await feed_back(connection, each, audience, "cited", row["id"], now)
    return len(there)
