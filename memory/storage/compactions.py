"""What a provider condensed the beginning of a session to: one block a session, and the last message it stands for.

Rule: a block that was begun before any of what it stands for changed is never stored, nor is one kept after: every
change moves the session's epoch on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.ports import Compacted
from memory.storage.tables import compactions, messages, sessions


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a session's compaction stands; `compacted` is None while there is none."""

    compacted: Compacted | None = None
    through_id: int = 0
    """The last message that it stands for."""
    epoch: int = 0
    """Whoever makes the next one tells it back."""


_LOAD = sa.select(compactions).where(
    compactions.c.session_id == sa.bindparam("of")
)  # built once: every message asks it


async def load(connection: AsyncConnection, session_id: int) -> Stored:
    row = (await connection.execute(_LOAD, {"of": session_id})).mappings().first()
    if row is None:
        return Stored()
    if row["block"] is None:
        return Stored(epoch=row["epoch"])
    made = Compacted(row["text"], row["block"], row["model"])
    return Stored(made, row["through_id"], row["epoch"])


async def put(
    connection: AsyncConnection, session_id: int, compacted: Compacted, through_id: int, *, epoch: int, now: int
) -> bool:
    """Store a block. False where something that it stands for has changed since `epoch`: then nothing is stored."""
    here = sa.select(sessions.c.id).where(sessions.c.id == session_id)
    if (await connection.execute(here)).first() is None:
        return False
    await connection.execute(sqlite.insert(compactions).values(session_id=session_id).on_conflict_do_nothing())
    changed = await connection.execute(
        compactions.update()
        .where(compactions.c.session_id == session_id, compactions.c.epoch == epoch)
        .values(
            block=compacted.block,
            text=compacted.text,
            model=compacted.model,
            through_id=through_id,
            epoch=epoch + 1,
            created_at=now,
        )
    )
    return changed.rowcount > 0


async def drop(connection: AsyncConnection, session_ids: Sequence[int]) -> None:
    """Let go of the blocks of these sessions, also of those in the making."""
    for session_id in session_ids:
        await _move_on(connection, session_id, 0)


async def drop_of(connection: AsyncConnection, owners: Sequence[str]) -> None:
    """Let go of all blocks of these owners: what was said in one may stand in another, and some cannot be read."""
    query = sa.select(sessions.c.id).where(sessions.c.owner.in_(owners))
    await drop(connection, list((await connection.execute(query)).scalars()))


async def drop_around(connection: AsyncConnection, message_id: int) -> None:
    """A message says something else from now on, or nothing: its session's block goes, if it stands for it."""
    query = sa.select(messages.c.session_id).where(messages.c.id == message_id)
    session_id = (await connection.execute(query)).scalar_one_or_none()
    if session_id is not None:
        await _move_on(connection, session_id, message_id)


async def _move_on(connection: AsyncConnection, session_id: int, message_id: int) -> None:
    """Start a new epoch; the block goes where it stands for the message, or for any."""
    started = sqlite.insert(compactions).values(session_id=session_id, epoch=1)
    stays = compactions.c.through_id < message_id
    kept = {name: sa.case((stays, compactions.c[name])) for name in ("block", "text", "model")}
    await connection.execute(
        started.on_conflict_do_update(
            index_elements=["session_id"],
            set_={
                **kept,
                "through_id": sa.case((stays, compactions.c.through_id), else_=0),
                "epoch": compactions.c.epoch + 1,
            },
        )
    )
