"""/keep: keep what a message says, whoever's words they are: the one who types it decides."""

from handlers.remembering import remembered
from handlers.remembering.remembered import Remembered
from handlers.types import Command, Reply, Request, UserError
from memory.storage import answers


def command(kept: Remembered) -> Command:
    async def handle(request: Request) -> Reply:
        message_id = await found(kept, request)
        if message_id is None:
            raise UserError(request.say("keep-what"))
        one, is_new = await kept.memory.observations.keep(request.audience, message_id)
        yield await remembered.kept_card(kept, request, one, is_new=is_new)

    return Command("keep", handle)


async def found(kept: Remembered, request: Request) -> int | None:
    """The message that is replied to, else the last answer."""
    ref = request.incoming.reply_to
    async with kept.database.read() as connection:
        if ref:
            return await answers.replied_to(connection, request.audience, ref)
        return await answers.last_answer(connection, request.audience, request.session.id)
