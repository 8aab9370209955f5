"""Lists on a phone: a page of memory, a page of chats, each with buttons to go on."""

from datetime import datetime
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_datetime

from handlers.identities import network
from handlers.remembering.facts import shorten
from handlers.types import Button, Card, Request
from handlers.work.works import Works
from memory.memory import Memory
from memory.storage import log, sessions
from memory.storage.database import Database
from memory.types import Message, Session

PER_PAGE = 6
SAID_PER_PAGE = 10
SAID_LENGTH = 240


async def memory_page(memory: Memory, request: Request, *, query: str, page: int, replaces: str | None = None) -> Card:
    """What is kept here, newest last; each fact is a button that opens it."""
    say = request.say
    found = await memory.facts.find(request.audience, query) if query else await memory.facts.list(request.audience)
    if not found:
        return Card(say("memory-none", query=query) if query else say("memory-empty"), replaces=replaces)
    pages = (len(found) + PER_PAGE - 1) // PER_PAGE
    page = min(page, pages - 1)
    shown = found[page * PER_PAGE : (page + 1) * PER_PAGE]
    heading = say("memory-found", n=len(found), query=query) if query else say("memory-kept", n=len(found))
    lines = [heading, "", *(f"{page * PER_PAGE + place}. {fact.text}" for place, fact in enumerate(shown, 1))]
    rows = [
        (Button(f"{page * PER_PAGE + place}. {shorten(fact.text)}", "open_fact", {"id": fact.id}),)
        for place, fact in enumerate(shown, 1)
    ]
    rows += _turn_pages(request, "memory_page", page, pages, {"query": query})
    return Card("\n".join(lines), tuple(rows), replaces)


async def chats_page(database: Database, request: Request, *, page: int, replaces: str | None = None) -> Card:
    """One's sessions, the last used first; each is a button that opens it."""
    say = request.say
    async with database.read() as connection:
        listed = await sessions.page(connection, request.audience, offset=page * PER_PAGE, limit=PER_PAGE + 1)
        networks = await sessions.networks(connection, {each.chat_id for each in listed})
    has_more = len(listed) > PER_PAGE
    rows = [
        (Button(session_label(request, session, networks[session.chat_id]), "open_chat", {"id": session.id}),)
        for session in listed[:PER_PAGE]
    ]
    rows += _turn_pages(request, "chats_page", page, page + 2 if has_more else page + 1, {})
    return Card(say("chats"), tuple(rows), replaces)


async def history_page(works: Works, request: Request, *, page: int, replaces: str | None = None) -> Card:
    """What was said in this session, working output marked as such. Page 0 is the newest; each reads downwards."""
    say, session = request.say, request.session
    async with works.database.read() as connection:
        found = await log.page(connection, session.id, offset=page * SAID_PER_PAGE, limit=SAID_PER_PAGE + 1)
    if not found:
        return Card(say("history-empty"), replaces=replaces)
    zone = ZoneInfo(request.user.timezone or works.timezone)
    shown = [_said(request, message, zone) for message in reversed(found[:SAID_PER_PAGE])]
    pages = page + 2 if len(found) > SAID_PER_PAGE else page + 1
    rows = _turn_pages(request, "history_page", page, pages, {})
    rows.append((Button(say("export"), "export_chat", {"id": session.id}),))
    return Card(
        "\n\n".join([say("history", title=session.title or say("chat-untitled")), *shown]), tuple(rows), replaces
    )


def _said(request: Request, message: Message, zone: ZoneInfo) -> str:
    at = format_datetime(message.created_at, "short", tzinfo=zone, locale=request.say.language)
    note = f" · {request.say('working-output')}" if message.is_working else ""
    return f"{message.speaker}, {at}{note}\n{shorten(message.text, SAID_LENGTH)}"


def session_label(request: Request, session: Session, transport: str = "") -> str:
    """Title and day; where `transport` is given and is another network than this, also that."""
    here = "• " if session.id == request.session.id else ""
    title = shorten(session.title or request.say("chat-untitled"))
    there = "" if transport in ("", request.incoming.place.transport) else f" · {network(transport)}"
    return f"{here}{title} · {day(request, session.last_used_at)}{there}"


def day(request: Request, instant: datetime) -> str:
    return format_date(instant, format="medium", locale=request.say.language)


def _turn_pages(
    request: Request, action: str, page: int, pages: int, data: dict[str, object]
) -> list[tuple[Button, ...]]:
    row: list[Button] = []
    if page > 0:
        row.append(Button(f"‹ {request.say('back')}", action, {**data, "page": page - 1}))
    if page < pages - 1:
        row.append(Button(f"{request.say('more')} ›", action, {**data, "page": page + 1}))
    return [tuple(row)] if row else []
