"""Codes that join two identities into one person: asked for in one place, brought from another, each used once."""

import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import link_codes

_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Nothing that can be misread. Eight of them are 2^40 codes, and one holds for an hour: too many to guess."""
_LENGTH = 8
HOLDS_MS = 60 * 60 * 1000
MOST_AN_HOUR = 5
_KEPT_MS = 24 * 60 * 60 * 1000
"""A code that is over is still known for a day: whoever brings it is told why it does not work."""


@dataclass(frozen=True, slots=True)
class LinkCode:
    """`identity` is whose code it is; `place` where they asked for it."""

    code: str
    user_id: int
    identity: str
    place: dict[str, Any]
    expires_at: int
    used_by: str | None


def new_code() -> str:
    """A code that people read and type: of a link, and of a pairing."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))


async def offer(
    connection: AsyncConnection, user_id: int, identity: str, place: dict[str, Any], now: int
) -> str | None:
    """A new code in the place of the former one; None for somebody who asked too often within the hour."""
    mine = link_codes.c.user_id == user_id
    recent = sa.select(sa.func.count()).select_from(link_codes).where(mine, link_codes.c.created_at > now - HOLDS_MS)
    if (await connection.execute(recent)).scalar_one() >= MOST_AN_HOUR:
        return None
    unused = link_codes.update().where(mine, link_codes.c.used_by.is_(None), link_codes.c.expires_at > now)
    await connection.execute(unused.values(expires_at=now))
    code = new_code()
    values = {"code": code, "user_id": user_id, "identity": identity, "place": place}
    await connection.execute(link_codes.insert().values(**values, created_at=now, expires_at=now + HOLDS_MS))
    return code


async def find(connection: AsyncConnection, code: str) -> LinkCode | None:
    """A code as it was offered, whether it still holds or not."""
    row = (await connection.execute(sa.select(link_codes).where(link_codes.c.code == code))).mappings().first()
    if row is None:
        return None
    return LinkCode(row["code"], row["user_id"], row["identity"], row["place"], row["expires_at"], row["used_by"])


async def use(connection: AsyncConnection, code: str, identity: str) -> None:
    """From now on this identity alone can bring it."""
    await connection.execute(link_codes.update().where(link_codes.c.code == code).values(used_by=identity))


async def withdraw(connection: AsyncConnection, code: str, now: int) -> None:
    await connection.execute(link_codes.update().where(link_codes.c.code == code).values(expires_at=now))


async def withdraw_all(connection: AsyncConnection, user_id: int, now: int) -> None:
    """Nobody can bring a code of this person any more."""
    holding = link_codes.c.user_id == user_id, link_codes.c.expires_at > now
    await connection.execute(link_codes.update().where(*holding).values(expires_at=now))


async def expire(connection: AsyncConnection, now: int) -> None:
    await connection.execute(link_codes.delete().where(link_codes.c.expires_at < now - _KEPT_MS))
