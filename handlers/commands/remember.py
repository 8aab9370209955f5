"""/remember: keep a fact, at once, told from the stored row."""

from handlers.remembering import facts
from handlers.types import Command, Reply, Request, UserError
from memory.memory import Memory


def command(memory: Memory) -> Command:
    async def handle(request: Request) -> Reply:
        incoming = request.incoming
        if not request.args and incoming.quote:
            yield facts.ask_to_keep(request.say, incoming.quote, None)  # somebody's words: a tap decides
            return
        if not request.args:
            raise UserError(request.say("remember-what"))
        if incoming.attachments or incoming.origin != "typed":
            yield facts.ask_to_keep(request.say, request.args, None)
            return
        kept = await memory.facts.remember(request.audience, request.user.name, request.args, ())
        yield facts.kept_card(request.say, kept)

    return Command("remember", handle)
