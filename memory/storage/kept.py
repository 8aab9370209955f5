"""Small values that outlive a start, by name: marks and states of the program, never anybody's words."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import kept_values


async def put(connection: AsyncConnection, key: str, value: Any, now: int) -> None:
    """Keep a JSON-able value under a key, in the place of the former one."""
    changed = await connection.execute(
        kept_values.update().where(kept_values.c.key == key).values(value=value, updated_at=now)
    )
    if not changed.rowcount:
        await connection.execute(kept_values.insert().values(key=key, value=value, updated_at=now))


async def load(connection: AsyncConnection, key: str) -> Any:
    """The value kept under a key; None where there is none."""
    query = sa.select(kept_values.c.value).where(kept_values.c.key == key)
    return (await connection.execute(query)).scalar_one_or_none()
