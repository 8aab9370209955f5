"""/memory: everything kept, page by page, with search, edit and delete."""

from handlers import facts, pages
from handlers.types import Command, Handler, Reply, Request
from memory.memory import Memory


def command(memory: Memory) -> Command:
    async def handle(request: Request) -> Reply:
        yield await pages.memory_page(memory, request, query=request.args, page=0)

    return Command("memory", handle)


def edited(memory: Memory) -> Handler:
    """The new words of a fact, after "Edit"."""

    async def handle(request: Request) -> Reply:
        kept = await memory.facts.edit(request.audience, request.data["id"], request.incoming.text)
        yield facts.kept_card(request.say, kept)

    return handle
