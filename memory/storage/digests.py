"""Who wants a weekly digest of what was noticed, and when each was sent last; kept by name, so it outlives a start."""

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage import kept
from memory.storage.tables import kept_values

_PREFIX = "digest:"


async def want(connection: AsyncConnection, user_id: int, now: int) -> bool:
    """From now on, a week apart. Say whether it was off before."""
    if await sent_at(connection, user_id) is not None:
        return False
    await kept.put(connection, _key(user_id), now, now)
    return True


async def drop(connection: AsyncConnection, user_id: int) -> bool:
    """No more of them. Say whether it was on."""
    gone = await connection.execute(kept_values.delete().where(kept_values.c.key == _key(user_id)))
    return gone.rowcount > 0


async def sent_at(connection: AsyncConnection, user_id: int) -> int | None:
    """When this person's last one was sent, or wanted, in ms; None for whoever wants none."""
    value = await kept.load(connection, _key(user_id))
    return None if value is None else int(value)


async def due(connection: AsyncConnection, before: int) -> list[tuple[int, int]]:
    """Whose last one is older than that: user id and when it was, in ms."""
    query = sa.select(kept_values.c.key, kept_values.c.value).where(
        kept_values.c.key.startswith(_PREFIX), kept_values.c.updated_at <= before
    )
    return [(int(row[0].removeprefix(_PREFIX)), int(row[1])) for row in await connection.execute(query)]


async def note_sent(connection: AsyncConnection, user_id: int, last: int, now: int) -> bool:
    """Claim the one that is due; False where it was sent, or is wanted no more."""
    if await sent_at(connection, user_id) != last:
        return False
    await kept.put(connection, _key(user_id), now, now)
    return True


def _key(user_id: int) -> str:
    return f"{_PREFIX}{user_id}"
