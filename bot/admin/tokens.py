"""`merk token`: what programs may read, given and taken back beside a running Merk."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.admin.keeping import beside
from bot.config import Settings
from bot.errors import CommandError
from memory.instants import SystemClock, from_ms, to_ms
from memory.scope import GRANTS
from memory.storage import tokens
from memory.storage.tokens import Token


@dataclass(frozen=True, slots=True)
class Made:
    id: int
    token: str
    said: str
    """What it may and for how long, in words."""


async def create(settings: Settings, grants: Sequence[str], name: str, days: int | None) -> Made:
    """Make a token. Raises `CommandError` for a grant that there is none of."""
    if unknown := [each for each in grants if each not in GRANTS]:
        raise CommandError(f"There is no grant {unknown[0]}. There are: {', '.join(GRANTS)}.")
    now = SystemClock().now()
    expires_at = to_ms(now + timedelta(days=days)) if days else None
    async with beside(settings) as database, database.write() as connection:
        token_id, token = await tokens.create(connection, name, grants, expires_at, to_ms(now))
    until = f"until {from_ms(expires_at):%Y-%m-%d %H:%M} UTC" if expires_at else "until it is revoked"
    return Made(token_id, token, f"{', '.join(sorted(set(grants)))}, {until}")


async def listed(settings: Settings) -> list[str]:
    """One line a token."""
    now = to_ms(SystemClock().now())
    async with beside(settings) as database, database.read() as connection:
        found = await tokens.listed(connection)
    return [_line(each, now) for each in found] or ["There are no tokens."]


async def revoke(settings: Settings, token_id: int) -> None:
    """Raises `CommandError` where there is no such token that holds."""
    async with beside(settings) as database, database.write() as connection:
        is_gone = await tokens.revoke(connection, token_id, to_ms(SystemClock().now()))
    if not is_gone:
        raise CommandError(f"There is no token {token_id} that could be revoked. See `merk token list`.")


def _line(token: Token, now: int) -> str:
    if token.revoked_at is not None:
        state = f"revoked {_day(token.revoked_at)}"
    elif not token.holds(now):
        state = f"expired {_day(token.expires_at)}"
    else:
        state = f"until {_day(token.expires_at)}" if token.expires_at else "until revoked"
    used = f"last used {_day(token.last_used_at)}" if token.last_used_at else "never used"
    named = f" ({token.name})" if token.name else ""
    return f"{token.id}{named}: {', '.join(sorted(token.grants))}; made {_day(token.created_at)}, {state}, {used}"


def _day(instant: int | None) -> str:
    return f"{from_ms(instant or 0):%Y-%m-%d}"
