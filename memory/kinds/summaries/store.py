"""Rows of summaries and of the work on them. Work is claimed by a lease and written only by who still holds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.summaries.summary import FIELDS, Condensed, Summary
from memory.kinds.summaries.views import views
from memory.storage import leases
from memory.storage.database import Database
from memory.storage.index import lexical
from memory.storage.index.vectors import Indexed
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
class Stored:
    """A session's summary as it stands."""

    summary: Summary
    watermark: int
    """The last message it covers."""
    made_by: str


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
        .select_from(sessions.outerjoin(learning, leases.of(KIND, sessions.c.id)))
        .where(
            answered.exists(),
            leases.is_free(now),
        )
        .order_by(sessions.c.last_used_at, sessions.c.id)
    )
    return [Due(*row) for row in (await connection.execute(query)).all()]


_LOAD = sa.select(summaries).where(summaries.c.session_id == sa.bindparam("of"))  # built once: most messages ask it


async def load(connection: AsyncConnection, session_id: int) -> Stored | None:
    row = (await connection.execute(_LOAD, {"of": session_id})).mappings().first()
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
        await lexical.put(connection, row.row_id, row.owner, "\n".join(row.views))


async def with_views(
    connection: AsyncConnection, which: sa.ColumnElement[bool], limit: int | None = None
) -> list[Indexed]:
    """Summaries with the texts under which they are found."""
    query = sa.select(summaries).where(which).order_by(summaries.c.session_id).limit(limit)
    rows = (await connection.execute(query)).mappings().all()
    return [Indexed(row["session_id"], row["owner"], tuple(views(of_row(row)))) for row in rows]


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
