"""/chats: one's sessions, to switch to, rename, export and delete."""

from handlers import pages
from handlers.types import Command, Handler, Notice, Reply, Request, UserError
from memory.storage import sessions
from memory.storage.database import Database

TITLE_LENGTH = 128


def command(database: Database) -> Command:
    async def handle(request: Request) -> Reply:
        yield await pages.chats_page(database, request, page=0)

    return Command("chats", handle)


def renamed(database: Database) -> Handler:
    """The new name of a chat, after "Rename"."""

    async def handle(request: Request) -> Reply:
        title = " ".join(request.incoming.text.split())[:TITLE_LENGTH]
        if not title:
            raise UserError(request.say("rename-empty"))
        async with database.write() as connection:
            await sessions.rename(connection, request.data["id"], title)
        yield Notice(request.say("renamed", title=title))

    return handle
