"""/forget: find what to forget and ask; only a tap erases."""

from memory.memory import Memory

from handlers import facts
from handlers.types import Command, Notice, Reply, Request, UserError


def command(memory: Memory) -> Command:
    async def handle(request: Request) -> Reply:
        if not request.args:
            raise UserError(request.say("forget-what"))
        found = await memory.facts.find(request.audience, request.args)
        if found:
            yield facts.forget_card(request.say, found, asked_in=None)
        else:
            yield Notice(request.say("forget-no-match", query=facts.shorten(request.args)))

    return Command("forget", handle)
