"""Standing instructions: a person's own, and the persona that the owners give the bot.

Rule: snapshots are only added. The newest of a subject is in force, one with an empty text clears, and a rollback is
a new snapshot that names the old one.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms
from memory.language.text import clean
from memory.scope import Audience
from memory.secrets import redact_secrets
from memory.storage.tables import instructions

MAX_LENGTH = 2000
"""Characters: they go into every request."""
PERSONA = "persona"
"""The subject of the bot's own."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was in force from `created_at` on."""

    id: int
    subject: str
    version: int
    """Counts the snapshots of the subject, from 1."""
    text: str
    user_id: int | None
    """Who applied it; None when they are gone."""
    restored_from: int | None
    """The snapshot that was rolled back to."""
    created_at: datetime


def subject_of(user_id: int) -> str:
    """The subject of a person's own: their scope key."""
    return Audience(user_id, chat_id=0, is_private=True).owner


def tidy(text: str) -> tuple[str, bool]:
    """The text as it may be stored, and whether a secret was taken out of it."""
    redacted, had_secret = redact_secrets(text)
    return clean(redacted), had_secret


async def in_force(connection: AsyncConnection, subject: str) -> Snapshot | None:
    """The newest snapshot, be it an empty one; None before the first."""
    newest = await history(connection, subject, 1)
    return newest[0] if newest else None


_NEWEST = (
    sa.select(sa.func.max(instructions.c.id))
    .where(instructions.c.subject.in_(sa.bindparam("subjects", expanding=True)))
    .group_by(instructions.c.subject)
)
# built once: every message asks it
_STANDING = sa.select(instructions.c.subject, instructions.c.text).where(
    instructions.c.id.in_(_NEWEST), instructions.c.text != ""
)


async def standing(connection: AsyncConnection, subjects: Collection[str]) -> dict[str, str]:
    """What holds for each subject, in one statement; nothing for those that have none."""
    rows = (await connection.execute(_STANDING, {"subjects": list(subjects)})).all()
    return {subject: clean(text) for subject, text in rows}


async def history(
    connection: AsyncConnection, subject: str, limit: int, *, before: int | None = None
) -> list[Snapshot]:
    """Snapshots, newest first, older than the one with the id `before`."""
    query = _snapshots().where(instructions.c.subject == subject).order_by(instructions.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(instructions.c.id < before)
    return [_snapshot(row) for row in (await connection.execute(query)).mappings()]


async def by_id(connection: AsyncConnection, subject: str, id: int) -> Snapshot | None:
    """A snapshot of this subject; the id of another's finds nothing."""
    query = _snapshots().where(instructions.c.id == id, instructions.c.subject == subject)
    row = (await connection.execute(query)).mappings().first()
    return _snapshot(row) if row else None


async def apply(
    connection: AsyncConnection, subject: str, text: str, user_id: int, now: int, restored_from: int | None = None
) -> Snapshot:
    """Put a text in force and return its row; the text that holds already is not stored twice.

    Raises `ValueError` for more than `MAX_LENGTH` characters.
    """
    text = tidy(text)[0]  # keys and card numbers are kept nowhere (pitfall P24)
    if len(text) > MAX_LENGTH:
        raise ValueError(f"instructions have at most {MAX_LENGTH} characters, these have {len(text)}")
    holding = await in_force(connection, subject)
    if holding is not None and holding.text == text:
        return holding
    values = {"subject": subject, "text": text, "user_id": user_id, "restored_from": restored_from, "created_at": now}
    await connection.execute(instructions.insert().values(values))
    stored = await in_force(connection, subject)
    assert stored is not None
    return stored


async def rewrite_history(connection: AsyncConnection, subject: str, rewrite: Callable[[str], str]) -> bool:
    """Take words out of what held before; return whether the text in force would change too.

    That one stays: it is the person's explicit word, and they are told that it still says so.
    """
    query = sa.select(instructions.c.id, instructions.c.text).where(instructions.c.subject == subject)
    rows = (await connection.execute(query.order_by(instructions.c.id))).all()
    for snapshot_id, text in rows[:-1]:
        if (new := rewrite(text)) != text:
            await connection.execute(instructions.update().where(instructions.c.id == snapshot_id).values(text=new))
    return bool(rows) and rewrite(rows[-1][1]) != rows[-1][1]


async def forget(connection: AsyncConnection, subject: str) -> int:
    """Delete everything of a subject; return how many snapshots."""
    return (await connection.execute(instructions.delete().where(instructions.c.subject == subject))).rowcount


def _snapshots() -> sa.Select[Any]:
    earlier = instructions.alias()
    version = (
        sa.select(sa.func.count())
        .where(earlier.c.subject == instructions.c.subject, earlier.c.id <= instructions.c.id)
        .correlate(instructions)
        .scalar_subquery()
    )
    return sa.select(instructions, version.label("version"))


def _snapshot(row: sa.RowMapping) -> Snapshot:
    values: dict[str, Any] = {**row, "created_at": from_ms(row["created_at"])}
    return Snapshot(**values)
