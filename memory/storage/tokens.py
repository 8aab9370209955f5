"""Who may look in from outside the chat: tokens of programs, one-time links and sessions of browsers.

Rule: what opens a door is random, shown once and stored as a hash; a hash opens nothing.
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.scope import GRANTS
from memory.storage.tables import api_tokens, login_links, web_sessions

PREFIX = "merk_"
"""Begins a token, so that it is known for what it is where it should not be."""
LINK_MS = 10 * 60 * 1000
SESSION_MS = 7 * 24 * 3600 * 1000
_NOTED_MS = 60 * 1000
"""`last_used_at` is written at most so often."""


@dataclass(frozen=True, slots=True)
class Token:
    """A program's right to look in."""

    id: int
    name: str
    grants: frozenset[str]
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None

    def holds(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


# --- tokens of programs ---------------------------------------------------------------------------


async def create(
    connection: AsyncConnection, name: str, of: Collection[str], expires_at: int | None, now: int
) -> tuple[int, str]:
    """Make a token; return its id, and itself for the only time. Raises ValueError for a grant there is none of."""
    if unknown := sorted(set(of) - set(GRANTS)):
        raise ValueError(f"there is no grant {unknown[0]}")
    token = PREFIX + secrets.token_urlsafe(32)
    row = api_tokens.insert().values(
        name=name, hash=_hash(token), grants=sorted(set(of)), created_at=now, expires_at=expires_at
    )
    key = (await connection.execute(row)).inserted_primary_key
    assert key is not None
    return int(key[0]), token


async def listed(connection: AsyncConnection) -> list[Token]:
    rows = (await connection.execute(sa.select(api_tokens).order_by(api_tokens.c.id))).mappings()
    return [_token(row) for row in rows]


async def revoke(connection: AsyncConnection, token_id: int, now: int) -> bool:
    """Take a token back; False when there is none that holds."""
    which = sa.and_(api_tokens.c.id == token_id, api_tokens.c.revoked_at.is_(None))
    return (await connection.execute(api_tokens.update().where(which).values(revoked_at=now))).rowcount > 0


async def find(connection: AsyncConnection, token: str, now: int) -> Token | None:
    """The token that this is, while it holds."""
    query = sa.select(api_tokens).where(api_tokens.c.hash == _hash(token))
    row = (await connection.execute(query)).mappings().first()
    found = _token(row) if row else None
    return found if found is not None and found.holds(now) else None


def wants_note(token: Token, now: int) -> bool:
    """Whether its use is worth a write."""
    return token.last_used_at is None or now - token.last_used_at >= _NOTED_MS


async def note_use(connection: AsyncConnection, token_id: int, now: int) -> None:
    await connection.execute(api_tokens.update().where(api_tokens.c.id == token_id).values(last_used_at=now))


# --- people in browsers ---------------------------------------------------------------------------


async def offer_login(connection: AsyncConnection, user_id: int, now: int) -> str:
    """Make a link's secret, good once within ten minutes; an earlier one of this person is good no more."""
    await connection.execute(login_links.delete().where(login_links.c.user_id == user_id))
    secret = secrets.token_urlsafe(32)
    await connection.execute(login_links.insert().values(hash=_hash(secret), user_id=user_id, expires_at=now + LINK_MS))
    return secret


async def log_in(connection: AsyncConnection, secret: str, now: int, *, key: str = "") -> tuple[int, str] | None:
    """Use a link up; return the person and a new session's secret. None for a link that is not good (any more)."""
    good = sa.and_(login_links.c.hash == _hash(secret), login_links.c.used_at.is_(None), login_links.c.expires_at > now)
    used = login_links.update().where(good).values(used_at=now).returning(login_links.c.user_id)
    user_id = (await connection.execute(used)).scalar_one_or_none()
    if user_id is None:
        return None
    session = secrets.token_urlsafe(32)
    values: dict[str, Any] = {"created_at": now, "expires_at": now + SESSION_MS}
    await connection.execute(web_sessions.insert().values(hash=_hash(session, key), user_id=user_id, **values))
    return int(user_id), session


async def who(connection: AsyncConnection, session: str, now: int, *, key: str = "") -> int | None:
    """The person whose session this is. `key` is the tenant's own: with another, no session is known."""
    query = sa.select(web_sessions.c.user_id).where(
        web_sessions.c.hash == _hash(session, key), web_sessions.c.expires_at > now
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def log_out(connection: AsyncConnection, session: str, *, key: str = "") -> None:
    await connection.execute(web_sessions.delete().where(web_sessions.c.hash == _hash(session, key)))


async def expire(connection: AsyncConnection, now: int) -> None:
    """Drop links and sessions whose time is over."""
    await connection.execute(login_links.delete().where(login_links.c.expires_at <= now))
    await connection.execute(web_sessions.delete().where(web_sessions.c.expires_at <= now))


def form_key(session: str, key: str = "") -> str:
    """What a form of this session carries, so that no other site can send it (CSRF)."""
    return hmac.new(f"{key}.{session}".encode(), b"form", hashlib.sha256).hexdigest()


def _hash(secret: str, key: str = "") -> str:
    """SHA-256: the secrets are random and long, there is nothing to guess. With a key, HMAC."""
    if key:
        return hmac.new(key.encode(), secret.encode(), hashlib.sha256).hexdigest()
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: sa.RowMapping) -> Token:
    return Token(
        id=row["id"],
        name=row["name"],
        grants=frozenset(row["grants"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
    )
