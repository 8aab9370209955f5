"""What a place waits for: after "Edit" or "Rename" a person's next message there is the new text."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import sessions

PATIENCE_MS = 10 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Awaited:
    """`what` names a handler of theirs; `asked_at` is the inbox row of the tap: only what was said later counts."""

    what: str
    data: dict[str, Any]
    asked_at: int
    until: int


async def wait_for(connection: AsyncConnection, session_id: int, user_id: int, awaited: Awaited) -> None:
    """Wait for this person in the session that is current where they tapped; others' waits stay."""
    waits = await _waits(connection, session_id)
    value = {"what": awaited.what, "data": awaited.data, "asked_at": awaited.asked_at, "until": awaited.until}
    await _put(connection, session_id, {**waits, str(user_id): value})


async def take(connection: AsyncConnection, session_id: int, user_id: int, *, said_at: int, now: int) -> Awaited | None:
    """What this person's message is for, once; None for one that was sent before the tap."""
    waits = await _waits(connection, session_id)
    value = waits.get(str(user_id))
    if value is None or value["asked_at"] > said_at:
        return None
    await stop_waiting(connection, session_id, user_id)
    return Awaited(**value) if value["until"] > now else None


async def stop_waiting(connection: AsyncConnection, session_id: int, user_id: int) -> None:
    waits = await _waits(connection, session_id)
    await _put(connection, session_id, {user: value for user, value in waits.items() if user != str(user_id)})


async def _waits(connection: AsyncConnection, session_id: int) -> dict[str, dict[str, Any]]:
    query = sa.select(sessions.c.metadata).where(sessions.c.id == session_id)
    found: dict[str, Any] = (await connection.execute(query)).scalar_one_or_none() or {}
    return found.get("awaiting", {})


async def _put(connection: AsyncConnection, session_id: int, waits: dict[str, dict[str, Any]]) -> None:
    metadata = {"awaiting": waits} if waits else {}
    await connection.execute(sessions.update().where(sessions.c.id == session_id).values(metadata=metadata))
