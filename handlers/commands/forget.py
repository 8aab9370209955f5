"""/forget: find what to forget and ask; only a tap erases."""

from handlers.remembering import facts
from handlers.types import Command, Notice, Reply, Request, UserError
from memory.memory import Memory


def command(memory: Memory) -> Command:
    async def handle(request: Request) -> Reply:
        if not request.args:
            raise UserError(request.say("forget-what"))
        found = await memory.facts.search(request.audience, request.args)
        if found.facts:
            yield facts.forget_card(request.say, found)
        else:
            yield Notice(request.say("forget-no-match", query=facts.shorten(request.args)))

    return Command("forget", handle)
