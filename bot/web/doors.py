"""Who may come in: a program with its token, or a person whose browser holds a session.

Rule: whoever is nobody gets 401, whoever is somebody without the grant 403; a person's writes carry their form key.
"""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request, status

from bot.web.inside import Inside, inside
from memory.instants import to_ms
from memory.scope import GRANTS
from memory.storage import members, people, tokens
from memory.types import User

COOKIE = "merk_session"
FORM_KEY = "form_key"
"""The field of a form, or X-CSRF-Token in the head of a script's request."""
FORM_BYTES = 64 * 1024
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks, and what they may."""

    grants: frozenset[str]
    user: User | None = None
    """The person; None for a program with a token."""
    form_key: str = ""
    """What every form of this person carries."""

    def may(self, grant: str) -> bool:
        return grant in self.grants


async def visitor(request: Request, site: Annotated[Inside, Depends(inside)]) -> Visitor:
    """A dependency: who asks. 401 for nobody, 403 for a write that another site may have sent."""
    if header := request.headers.get("authorization"):
        found = await _program(site, header)
    else:
        found = await _person(site, request.cookies.get(COOKIE, ""))
    if found is None:
        raise HTTPException(
            status.HTTP_401_UNAUTHORIZED,
            "A token (Authorization: Bearer ...) or a browser's session is needed. `merk token create` makes the one, "
            "/dashboard in the chat with the bot opens the other.",
            {"WWW-Authenticate": "Bearer"},
        )
    if found.user is not None and request.method not in _SAFE:
        await _check_form(request, found)
    return found


def need(grant: str) -> Callable[[Visitor], Awaitable[Visitor]]:
    """A dependency that lets in who has a grant."""

    async def check(found: Annotated[Visitor, Depends(visitor)]) -> Visitor:
        if not found.may(grant):
            raise HTTPException(status.HTTP_403_FORBIDDEN, f"This needs the grant {grant}.")
        return found

    return check


async def need_person(found: Annotated[Visitor, Depends(visitor)]) -> Visitor:
    """A dependency for what is somebody's own: a program has no memory of its own."""
    if found.user is None:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "This is for people: open it with /dashboard.")
    return found


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form (application/x-www-form-urlencoded). 413 for one that is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES:
            raise HTTPException(status.HTTP_413_CONTENT_TOO_LARGE, "The form is too large.")
    request.state.fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    return request.state.fields


async def form(request: Request) -> dict[str, str]:
    """A dependency: the fields, read once."""
    return request.state.fields if hasattr(request.state, "fields") else await fields(request)


async def _program(site: Inside, header: str) -> Visitor | None:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return None
    now = to_ms(site.clock.now())
    async with site.database.read() as connection:
        found = await tokens.find(connection, token.strip(), now)
    if found is None:
        return None
    if tokens.wants_note(found, now):
        async with site.database.write() as connection:
            await tokens.note_use(connection, found.id, now)
    return Visitor(found.grants)


async def _person(site: Inside, session: str) -> Visitor | None:
    if not session:
        return None
    async with site.database.read() as connection:
        user_id = await tokens.who(connection, session, to_ms(site.clock.now()), key=site.session_key)
        user = await people.by_id(connection, user_id) if user_id is not None else None
        if user is None:
            return None
        held = frozenset([each for each in GRANTS if await members.has(connection, user, each)])
    return Visitor(held, user, tokens.form_key(session, site.session_key))


async def _check_form(request: Request, found: Visitor) -> None:
    given = request.headers.get("x-csrf-token") or (await form(request)).get(FORM_KEY, "")
    if not hmac.compare_digest(given.encode(), found.form_key.encode()):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "The form is not from this session. Open the page again.")
