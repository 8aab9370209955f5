"""Work on sessions, by kind of memory: claimed by a lease, written only by who still holds it, retried with backoff.

Rule: the watermark advances only with success, in the transaction of the result (pitfall P19).
"""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.database import Database
from memory.storage.tables import learning, sessions

LEASE_MS = 10 * 60 * 1000
_FIRST_RETRY_MS = 30 * 1000
_LAST_RETRY_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write the result of one piece of work, until the lease runs out or somebody resets it."""

    kind: str
    session_id: int
    token: str
    attempts: int


def of(kind: str, session_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    return sa.and_(learning.c.kind == kind, learning.c.session_id == session_id)


def is_free(now: int) -> sa.ColumnElement[bool]:
    """Of an outer join with `learning`: nobody works on it, and its time has come."""
    return sa.and_(sa.func.coalesce(learning.c.lease_until, 0) <= now, sa.func.coalesce(learning.c.retry_at, 0) <= now)


async def claim(  # noqa: PLR0913 - a compare-and-swap names what it compares
    connection: AsyncConnection, database: Database, kind: str, session_id: int, *, watermark: int, token: str, now: int
) -> Claim | None:
    """Take a session's work by compare-and-swap; None when somebody else has it or it has changed or is gone."""
    if not (await connection.execute(sa.select(sessions.c.id).where(sessions.c.id == session_id))).first():
        return None
    fresh = database.insert(learning).values(kind=kind, session_id=session_id)
    await connection.execute(fresh.on_conflict_do_nothing())
    taken = await connection.execute(
        learning.update()
        .where(
            of(kind, session_id),
            learning.c.watermark == watermark,
            learning.c.lease_until <= now,
            learning.c.retry_at <= now,
        )
        .values(lease_until=now + LEASE_MS, claim=token, attempts=learning.c.attempts + 1)
    )
    if not taken.rowcount:
        return None
    query = sa.select(learning.c.attempts).where(of(kind, session_id))
    return Claim(kind, session_id, token, int((await connection.execute(query)).scalar_one()))


async def finish(connection: AsyncConnection, claimed: Claim, watermark: int) -> bool:
    """Note the success and give the lease back. False when it was lost: then nothing may be written."""
    done = await connection.execute(
        learning.update()
        .where(of(claimed.kind, claimed.session_id), learning.c.claim == claimed.token)
        .values(watermark=watermark, lease_until=0, claim=None, attempts=0, retry_at=0, last_error=None)
    )
    return done.rowcount > 0


async def fail(connection: AsyncConnection, claimed: Claim, error: str, retry_at: int) -> None:
    """Note the failure: the watermark stays, the work comes back later."""
    await connection.execute(
        learning.update()
        .where(of(claimed.kind, claimed.session_id), learning.c.claim == claimed.token)
        .values(lease_until=0, claim=None, retry_at=retry_at, last_error=error)
    )


def retry_ms(attempts: int, retry_after: float | None = None) -> int:
    """How long to wait after so many attempts; `retry_after` in seconds, where the other side named it."""
    wait = min(_FIRST_RETRY_MS * 2 ** (attempts - 1), _LAST_RETRY_MS)
    return max(wait, round(retry_after * 1000)) if retry_after else wait


async def release_all(connection: AsyncConnection, kind: str) -> None:
    """Give back the leases of a process that died: at start nobody else works here."""
    await connection.execute(
        learning.update().where(learning.c.kind == kind, learning.c.lease_until > 0).values(lease_until=0, claim=None)
    )


async def next_retry(connection: AsyncConnection, kind: str, since: int) -> int | None:
    """When the next failed piece of work may be tried again, of those that could not be tried at `since` yet.

    A retry that fell due after `since` counts although it is past: nobody has looked at it.
    """
    query = sa.select(sa.func.min(learning.c.retry_at)).where(learning.c.kind == kind, learning.c.retry_at > since)
    return (await connection.execute(query)).scalar_one_or_none()


async def failures(connection: AsyncConnection, kind: str) -> list[str]:
    """The classes of the last errors of work that is still to be done."""
    query = sa.select(learning.c.last_error).where(learning.c.kind == kind, learning.c.last_error.is_not(None))
    return [str(error) for error in (await connection.execute(query)).scalars()]


async def rewind(connection: AsyncConnection, kind: str, session_id: int, watermark: int) -> None:
    """Let a session be read again from a message on; whoever works on it has lost the lease."""
    await connection.execute(
        learning.update()
        .where(of(kind, session_id), learning.c.watermark > watermark)
        .values(watermark=watermark, lease_until=0, claim=None, attempts=0, retry_at=0, last_error=None)
    )
