"""Events that other systems send: signed, fresh, once each, and kept as observations of the scope that the owner chose.

Rule: what a body says is untrusted data. It fills the owner's templates, is cleaned and kept without secrets, and is
never an instruction. Nothing of it is read before its signature holds.
"""

import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Never, cast
from zoneinfo import ZoneInfo

import structlog
from fastapi import APIRouter, Depends, Header, HTTPException, Path, Request, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from bot.hook_settings import Hook, MissingPath, Template
from bot.web.guard import Limits
from bot.web.inside import Inside, inside
from memory.kinds.observations.observation import Type
from memory.language.text import normal_form
from memory.scope import PUBLIC, group_key, own_key, sensitive_key, team_key
from memory.storage import members, people, sessions
from memory.types import ObservationRefused

log = structlog.get_logger(__name__)

PATH = "/hooks/"
SIGNATURE = "X-Merk-Signature"
"""t=SECONDS,v1=HEX: HMAC-SHA256 over the seconds since the epoch, a full stop and the body."""
WINDOW_SECONDS = 300
BODY_BYTES = 64 * 1024
LIMITS = Limits(per_second=50.0, burst=2000)

_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class Outcome(BaseModel):
    """noted, or known: the same event came before."""

    outcome: Literal["noted", "known"]


_REFUSALS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The event was known: nothing has changed."},
    400: {"description": "No JSON object, or the template names a path that is not in it."},
    401: {"description": "The signature is wrong, or older than five minutes."},
    404: {"description": "There is no such hook."},
    413: {"description": "More than 64 KiB."},
    429: {"description": "Too many requests; Retry-After says when to send it again."},
    503: {"description": "The team, chat or person of the hook's scope does not exist yet."},
}

router = APIRouter(tags=["hooks"])


@router.post(f"{PATH}{{name}}", status_code=status.HTTP_201_CREATED, response_model=Outcome, responses=_REFUSALS)
async def take(
    name: Annotated[str, Path()],
    request: Request,
    site: Annotated[Inside, Depends(inside)],
    signature: Annotated[str, Header(alias=SIGNATURE)] = "",
) -> JSONResponse:
    """Take an event in: 201 when it was noted, 200 when it was known."""
    hook = site.settings.web.hooks.get(name)
    if hook is None:
        _refuse(status.HTTP_404_NOT_FOUND, "There is no such hook.")
    raw = await _body(request)
    _check(hook, signature, raw, site.clock.now().timestamp())
    event = _Event(hook, _object(raw), ZoneInfo(site.settings.tenant.timezone))
    owner, user_id = await _whose(site, name, hook.scope)
    try:
        noted = await site.memory.observations.note_event(
            owner,
            hook=name,
            event_id=event.id,
            title=event.title,
            narrative=event.narrative,
            type=Type(hook.type),
            subject=event.subject,
            user_id=user_id,
            at=event.at,
        )
    except ObservationRefused:
        _refuse(status.HTTP_400_BAD_REQUEST, "Title and narrative have no words.")
    if noted is not None:
        site.memory.wake()  # its vector is made once things are quiet
    log.info("web.hook", hook=name, known=noted is None)
    if noted is None:
        return JSONResponse(Outcome(outcome="known").model_dump())
    return JSONResponse(Outcome(outcome="noted").model_dump(), status.HTTP_201_CREATED)


class _Event:
    """A body, as the templates of a hook read it. Raises HTTPException (400)."""

    def __init__(self, hook: Hook, body: dict[str, object], zone: ZoneInfo) -> None:
        try:
            # hashed: of bounded length, and nobody knows what else systems put into their ids
            self.id = _digest(Template.of(hook.event_id).render(body))
            self.title = Template.of(hook.title).render(body)
            self.narrative = Template.of(hook.narrative).render(body)
            # without its colon no subject can pose as a person: "person:7" is somebody speaking of themselves
            self.subject = normal_form(Template.of(hook.subject).render(body)).replace(":", " ")
            at = Template.of(hook.at).render(body).strip()
        except MissingPath as missing:
            _refuse(status.HTTP_400_BAD_REQUEST, f"The body has no text, number or truth value at {missing.path}.")
        self.at = _instant(at, zone) if at else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _refuse(code: int, said: str) -> Never:
    raise HTTPException(code, said)


async def _body(request: Request) -> bytes:
    """The body, as far as it may go: what says that it is longer is not read at all."""
    told = request.headers.get("content-length", "")
    body = bytearray()
    if not (told.isdecimal() and int(told[:20]) > BODY_BYTES):
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_BYTES:
                    break
            else:
                return bytes(body)
        except ClientDisconnect:
            _refuse(status.HTTP_400_BAD_REQUEST, "The body broke off.")
    _refuse(status.HTTP_413_CONTENT_TOO_LARGE, f"An event has at most {BODY_BYTES} bytes.")


def _check(hook: Hook, signature: str, body: bytes, now: float) -> None:
    given: dict[str, str] = {}
    for part in signature.split(","):
        key, _, value = part.strip().partition("=")
        given[key] = value
    sent_at = given.get("t", "")
    told = hmac.new(hook.secret.get_secret_value().encode(), f"{sent_at}.".encode() + body, hashlib.sha256).hexdigest()
    is_ours = hmac.compare_digest(told.encode(), given.get("v1", "").encode())
    is_fresh = sent_at.isascii() and sent_at.isdecimal() and abs(now - int(sent_at[:20])) <= WINDOW_SECONDS
    if not (is_ours and is_fresh):
        _refuse(
            status.HTTP_401_UNAUTHORIZED,
            f'{SIGNATURE} must be "t=SECONDS,v1=HEX" of the last five minutes: HMAC-SHA256 over SECONDS, "." and body.',
        )


def _object(body: bytes) -> dict[str, object]:
    try:
        found: object = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):  # ValueError: bytes that are no text, too
        found = None
    if not isinstance(found, dict):
        _refuse(status.HTTP_400_BAD_REQUEST, "The body must be a JSON object.")
    return cast("dict[str, object]", found)


def _no_number(name: str) -> Never:
    raise ValueError(name)


def _instant(text: str, zone: ZoneInfo) -> datetime:
    """ISO 8601, by the tenant's clock where it names no zone; or seconds since the epoch."""
    try:
        if text.isascii() and text.replace(".", "", 1).isdecimal():
            found = datetime.fromtimestamp(float(text), UTC)
        else:
            found = datetime.fromisoformat(text)
            found = found if found.tzinfo else found.replace(tzinfo=zone)
        if _EARLIEST <= found < _LATEST:
            return found
    except (ValueError, OverflowError, OSError):
        pass  # said below
    _refuse(status.HTTP_400_BAD_REQUEST, "The time of the event must be ISO 8601, or seconds since 1970.")


async def _whose(site: Inside, name: str, scope: str) -> tuple[str, int | None]:
    """The scope key, and the person where it is somebody's own."""
    kind, _, whose = scope.partition(":")
    if kind == "public":
        return PUBLIC, None
    async with site.database.read() as connection:
        if kind == "team":
            team = await members.team_by_name(connection, whose)
            found = None if team is None else (team_key(team.id), None)
        elif kind == "chat":
            transport, _, external = whose.partition(":")
            chat = await sessions.chat_id(connection, transport, external)
            found = None if chat is None else (group_key(chat), None)
        else:
            user = await people.find(connection, whose)
            make = own_key if kind == "user" else sensitive_key
            found = None if user is None else (make(user.id), user.id)
    if found is None:
        log.warning("web.hook_without_scope", hook=name, scope=scope)
        _refuse(status.HTTP_503_SERVICE_UNAVAILABLE, f"The scope of this hook, {scope}, does not exist yet.")
    return found
