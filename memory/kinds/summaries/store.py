"""Rows of summaries and of the work on them. Work is claimed by a lease and written only by who still holds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.summaries.summary import FIELDS, Condensed, Summary
from memory.kinds.summaries.views import views
from memory.storage import lexical
from memory.storage import log as message_log
from memory.storage.database import Database
from memory.storage.tables import learning, messages, sessions, summaries

KIND = "summaries"


@dataclass(frozen=True, slots=True)
class Due:
    """A session with something new to learn from."""

    session_id: int
    owner: str
    title: str
    watermark: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write the result of one piece of work, until the lease runs out or somebody resets it."""

    session_id: int
    token: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A session's summary as it stands."""

    summary: Summary
    watermark: int
    """The last message it covers."""
    made_by: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """A session as the indexes know it."""

    session_id: int
    owner: str
    views: tuple[str, ...]


async def due(connection: AsyncConnection, now: int) -> list[Due]:
    """The sessions with an answer that was not learned from, that nobody works on and whose time has come."""
    watermark = sa.func.coalesce(learning.c.watermark, 0)
    answered = sa.select(messages.c.id).where(
        messages.c.session_id == sessions.c.id,
        messages.c.id > watermark,
        messages.c.role == "assistant",
        ~messages.c.is_ephemeral,
    )
    query = (
        sa.select(sessions.c.id, sessions.c.owner, sessions.c.title, watermark)
        .select_from(sessions.outerjoin(learning, _is_of(sessions.c.id)))
        .where(
            answered.exists(),
            sa.func.coalesce(learning.c.lease_until, 0) <= now,
            sa.func.coalesce(learning.c.retry_at, 0) <= now,
        )
        .order_by(sessions.c.last_used_at, sessions.c.id)
    )
    return [Due(*row) for row in (await connection.execute(query)).all()]


async def next_retry(connection: AsyncConnection, now: int) -> int | None:
    """When the next failed piece of work may be tried again."""
    query = sa.select(sa.func.min(learning.c.retry_at)).where(learning.c.kind == KIND, learning.c.retry_at > now)
    return (await connection.execute(query)).scalar_one_or_none()


async def claim(
    connection: AsyncConnection, database: Database, session: Due, token: str, *, now: int, lease_until: int
) -> Claim | None:
    """Take a session's work by compare-and-swap; None when somebody else has it or it has changed or is gone."""
    if not (await connection.execute(sa.select(sessions.c.id).where(sessions.c.id == session.session_id))).first():
        return None
    fresh = database.insert(learning).values(kind=KIND, session_id=session.session_id)
    await connection.execute(fresh.on_conflict_do_nothing())
    taken = await connection.execute(
        learning.update()
        .where(
            _is_of(session.session_id),
            learning.c.watermark == session.watermark,
            learning.c.lease_until <= now,
            learning.c.retry_at <= now,
        )
        .values(lease_until=lease_until, claim=token, attempts=learning.c.attempts + 1)
    )
    if not taken.rowcount:
        return None
    query = sa.select(learning.c.attempts).where(_is_of(session.session_id))
    return Claim(session.session_id, token, int((await connection.execute(query)).scalar_one()))


async def finish(connection: AsyncConnection, claimed: Claim, watermark: int) -> bool:
    """Note the success and give the lease back. False when it was lost: then nothing may be written."""
    done = await connection.execute(
        learning.update()
        .where(_is_of(claimed.session_id), learning.c.claim == claimed.token)
        .values(watermark=watermark, lease_until=0, claim=None, attempts=0, retry_at=0, last_error=None)
    )
    return done.rowcount > 0


async def fail(connection: AsyncConnection, claimed: Claim, error: str, retry_at: int) -> None:
    """Note the failure: the watermark stays, the work comes back later (pitfall P19)."""
    await connection.execute(
        learning.update()
        .where(_is_of(claimed.session_id), learning.c.claim == claimed.token)
        .values(lease_until=0, claim=None, retry_at=retry_at, last_error=error)
    )


async def release_all(connection: AsyncConnection) -> None:
    """Give back the leases of a process that died: at start nobody else works here."""
    await connection.execute(
        learning.update().where(learning.c.kind == KIND, learning.c.lease_until > 0).values(lease_until=0, claim=None)
    )


async def failures(connection: AsyncConnection) -> list[str]:
    """The classes of the last errors of work that is still to be done."""
    query = sa.select(learning.c.last_error).where(learning.c.kind == KIND, learning.c.last_error.is_not(None))
    return [str(error) for error in (await connection.execute(query)).scalars()]


async def load(connection: AsyncConnection, session_id: int) -> Stored | None:
    query = sa.select(summaries).where(summaries.c.session_id == session_id)
    row = (await connection.execute(query)).mappings().first()
    return Stored(of_row(row), row["watermark"], row["generated_by_model"]) if row else None


async def save(
    connection: AsyncConnection, database: Database, session: Due, made: Condensed, *, watermark: int, now: int
) -> None:
    """Put the summary in its place: row, word index and, where there is none, the session's title."""
    values: dict[str, Any] = {name: getattr(made.summary, name) for name in FIELDS}
    values |= {"generated_by_model": made.made_by, "watermark": watermark, "indexed_as": None, "updated_at": now}
    row = database.insert(summaries).values(
        session_id=session.session_id, owner=session.owner, created_at=now, **values
    )
    await connection.execute(row.on_conflict_do_update(index_elements=["session_id"], set_=values))
    await entitle(connection, session.session_id, made.title)
    await index_words(connection, session.session_id)


async def entitle(connection: AsyncConnection, session_id: int, title: str) -> None:
    """Name a session that has no title; a title that somebody chose stays."""
    await connection.execute(
        sessions.update().where(sessions.c.id == session_id, sessions.c.title == "").values(title=title)
    )


async def index_words(connection: AsyncConnection, session_id: int) -> None:
    """Index a session's views. The title is none: a person may change it, and it could not be forgotten here."""
    for row in await with_views(connection, summaries.c.session_id == session_id):
        await lexical.put(connection, row.session_id, row.owner, "\n".join(row.views))


async def with_views(
    connection: AsyncConnection, which: sa.ColumnElement[bool], limit: int | None = None
) -> list[Indexed]:
    """Summaries with the texts under which they are found: those of the messages that they cover."""
    query = sa.select(summaries).where(which).order_by(summaries.c.session_id).limit(limit)
    found: list[Indexed] = []
    for row in (await connection.execute(query)).mappings().all():
        messages = await message_log.since(connection, row["session_id"], 0)
        covered = [message for message in messages if message.id <= row["watermark"]]
        found.append(Indexed(row["session_id"], row["owner"], tuple(views(of_row(row), covered))))
    return found


async def discard(connection: AsyncConnection, session_ids: Sequence[int]) -> int:
    """Remove summaries that must not be read any more and let their sessions be learned anew, from the beginning.

    Returns how many pieces of work were set back. Whoever works on one of them has lost the lease.
    """
    await connection.execute(summaries.delete().where(summaries.c.session_id.in_(session_ids)))
    await lexical.remove(connection, session_ids)
    reset = await connection.execute(
        learning.update()
        .where(learning.c.kind == KIND, learning.c.session_id.in_(session_ids))
        .values(watermark=0, lease_until=0, claim=None, attempts=0, retry_at=0, last_error=None)
    )
    return reset.rowcount


def of_row(row: sa.RowMapping) -> Summary:
    return Summary(**{name: row[name] for name in FIELDS})


def _is_of(session_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    return sa.and_(learning.c.kind == KIND, learning.c.session_id == session_id)
