"""/memory: everything kept and noticed, page by page, with search, edit and delete."""

from handlers.remembering import facts, remembered
from handlers.remembering.remembered import Remembered
from handlers.types import Command, Handler, Reply, Request
from memory.memory import Memory


def command(kept: Remembered) -> Command:
    async def handle(request: Request) -> Reply:
        yield await remembered.memory_card(kept, request, query=request.args, page=0)

    return Command("memory", handle)


def edited(memory: Memory) -> Handler:
    """The new words of a fact, after "Edit"."""

    async def handle(request: Request) -> Reply:
        kept = await memory.facts.edit(request.audience, request.data["id"], request.incoming.text)
        yield facts.kept_card(request.say, kept)

    return handle


def reworded(kept: Remembered) -> Handler:
    """The new words of an observation, after "Edit"."""

    async def handle(request: Request) -> Reply:
        one = await kept.memory.observations.edit(request.audience, request.data["id"], request.incoming.text)
        yield await remembered.kept_card(kept, request, one, is_new=one.id != request.data["id"])

    return handle
