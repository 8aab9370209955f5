"""/why: what an answer was made with; the one that is replied to, else the last."""

from handlers.commands.keep import found
from handlers.remembering.remembered import Remembered
from handlers.remembering.why import why_card
from handlers.types import Command, Reply, Request, UserError


def command(kept: Remembered) -> Command:
    async def handle(request: Request) -> Reply:
        message_id = await found(kept, request)
        if message_id is None:
            raise UserError(request.say("why-none"))
        yield await why_card(kept, request, message_id)

    return Command("why", handle)
