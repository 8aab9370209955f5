"""/forget: find what to forget and ask; only a tap erases."""

from handlers.remembering import forgetting
from handlers.types import Command, Reply, Request, UserError
from memory.memory import Memory
from memory.storage.database import Database


def command(memory: Memory, database: Database) -> Command:
    async def handle(request: Request) -> Reply:
        if not request.args:
            raise UserError(request.say("forget-what"))
        # who names words to be forgotten asks for them explicitly
        found = await memory.forgettable.find(request.audience, request.args, sensitive=True)
        if found.things:
            yield forgetting.card(request, found, sensitive=True)
            return
        async for event in forgetting.nothing(memory, database, request, found):
            yield event

    return Command("forget", handle)
