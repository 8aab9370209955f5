"""Buttons of one's sessions: open, switch, rename, export, delete."""

from handlers import pages, waiting
from handlers.identities import network
from handlers.remembering import facts
from handlers.types import Button, Card, Handler, Reply, Request, UserError
from memory.memory import Memory
from memory.ports import Clock
from memory.storage import log, sessions
from memory.storage.database import Database
from memory.types import Role, Session


def page(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await pages.chats_page(database, request, page=request.data["page"], replaces=request.card)

    return handle


def open(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        session = await _chosen(database, request)
        say = request.say
        data = {"id": session.id}
        rows: list[tuple[Button, ...]] = [
            (Button(say("rename"), "rename_chat", data), Button(say("export"), "export_chat", data)),
            (Button(say("delete"), "ask_delete_chat", data), Button(say("back"), "chats_page", {"page": 0})),
        ]
        here = request.incoming.place.thread
        text = session.title or say("chat-untitled")
        if session.chat_id != request.audience.chat_id:
            text += "\n" + await _on_network(database, request, session)
        elif session.thread != here:
            text += "\n" + say("chat-elsewhere")
        elif not session.is_current:
            rows.insert(0, (Button(say("switch"), "switch_chat", data),))
        yield Card(text, tuple(rows), request.card)

    return handle


def switch(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        session = await _chosen(database, request)
        async with database.write() as connection:
            await sessions.switch(connection, session)
        title = session.title or request.say("chat-untitled")
        yield Card(request.say("switched", title=title), replaces=request.card)

    return handle


def rename(database: Database, clock: Clock) -> Handler:
    """Ask for the new name; the next message is it."""

    async def handle(request: Request) -> Reply:
        session = await _chosen(database, request)
        yield await waiting.ask(database, clock, request, "rename_chat", {"id": session.id})

    return handle


def export(database: Database) -> Handler:
    """The whole chat as a Markdown file."""

    async def handle(request: Request) -> Reply:
        session = await _chosen(database, request)
        async with database.read() as connection:
            messages = await log.everything(connection, session.id)
        title = session.title or request.say("chat-untitled")
        lines = [f"# {title}", ""]
        for message in messages:
            note = f" · {request.say('working-output')}" if message.is_working else ""
            lines += [f"**{message.speaker}** · {message.created_at:%Y-%m-%d %H:%M} UTC{note}", "", message.text, ""]
        yield Card(request.say("exported", title=title), file=(f"chat-{session.id}.md", "\n".join(lines)))

    return handle


def ask_delete(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        session = await _chosen(database, request)
        _check_may_delete(request, session)
        say = request.say
        yes = Button(say("delete-yes"), "delete_chat", {"id": session.id})
        title = session.title or say("chat-untitled")
        yield Card(say("delete-ask", title=title), ((yes, Button(say("no"), "leave")),), request.card)

    return handle


def delete(database: Database, memory: Memory) -> Handler:
    async def handle(request: Request) -> Reply:
        session_id: int = request.data["id"]
        async with database.read() as connection:
            session = await sessions.by_id(connection, session_id)
        if session is not None:  # gone already: a press that a crash cut off has its receipt
            _check_may_delete(request, session)
        receipt = await memory.forget_session(request.audience, session_id, key=request.key)
        yield Card(facts.receipt_lines(request.say, receipt), replaces=request.card)

    return handle


def _check_may_delete(request: Request, session: Session) -> None:
    """A group's chat is not for everyone in it to delete."""
    if session.user_id != request.user.id and request.user.role not in (Role.OWNER, Role.ADMIN):
        raise UserError(request.say("chat-not-yours"))


async def _on_network(database: Database, request: Request, session: Session) -> str:
    """A chat goes on where it was begun: its words are shown there."""
    async with database.read() as connection:
        found = await sessions.networks(connection, (session.chat_id,))
    return request.say("chat-on-network", network=network(found[session.chat_id]))


async def _chosen(database: Database, request: Request) -> Session:
    async with database.read() as connection:
        session = await sessions.by_id(connection, request.data["id"])
    if session is None or session.owner not in request.audience.visible:
        raise UserError(request.say("chat-gone"))
    return session
