"""What happened, appended and never changed: ids and figures only, never a word of anybody's."""

import re
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import telemetry_events

_CODE = re.compile(r"[\w.:-]{1,60}")


async def note(
    connection: AsyncConnection,
    name: str,
    data: Mapping[str, float | bool | str | None],
    *,
    now: int,
    user_id: int | None = None,
    session_id: int | None = None,
) -> None:
    """Append an event. A string is a code such as "unreachable": anything with a space in it raises ValueError."""
    for key, value in data.items():
        if isinstance(value, str) and not _CODE.fullmatch(value):
            raise ValueError(f"telemetry takes figures and codes, no text ({name}.{key})")
    await connection.execute(
        telemetry_events.insert().values(
            name=name, user_id=user_id, session_id=session_id, data=dict(data), created_at=now
        )
    )
