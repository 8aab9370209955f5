"""What a session waits for: after "Edit" or "Rename" the person's next plain message is the new text."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import sessions

PATIENCE_MS = 10 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Awaited:
    """`what` names a handler of theirs."""

    what: str
    data: dict[str, Any]


async def wait_for(
    connection: AsyncConnection, session_id: int, user_id: int, what: str, data: dict[str, Any], now: int
) -> None:
    value = {"what": what, "data": data, "user": user_id, "until": now + PATIENCE_MS}
    await _put(connection, session_id, value)


async def take(connection: AsyncConnection, session_id: int, user_id: int, now: int) -> Awaited | None:
    """What this person's next message is for, once."""
    query = sa.select(sessions.c.metadata).where(sessions.c.id == session_id)
    found: dict[str, Any] = (await connection.execute(query)).scalar_one_or_none() or {}
    value: dict[str, Any] | None = found.get("awaiting")
    if not value or value["user"] != user_id:
        return None
    await _put(connection, session_id, None)
    return Awaited(value["what"], value["data"]) if value["until"] > now else None


async def _put(connection: AsyncConnection, session_id: int, value: dict[str, Any] | None) -> None:
    metadata = {"awaiting": value} if value else {}
    await connection.execute(sessions.update().where(sessions.c.id == session_id).values(metadata=metadata))
