"""/digest: whether a weekly digest of what was noticed is wanted. It is off until somebody turns it on."""

from handlers.remembering.remembered import Remembered
from handlers.types import Command, Notice, Reply, Request, UserError
from memory.instants import to_ms
from memory.storage import digests


def command(kept: Remembered) -> Command:
    async def handle(request: Request) -> Reply:
        if not request.audience.is_private:
            raise UserError(request.say("digest-private"))
        match request.args.strip().lower():
            case "on":
                async with kept.database.write() as connection:
                    await digests.want(connection, request.user.id, to_ms(kept.clock.now()))
                yield Notice(request.say("digest-on"))
            case "off":
                async with kept.database.write() as connection:
                    await digests.drop(connection, request.user.id)
                yield Notice(request.say("digest-off"))
            case _:
                async with kept.database.read() as connection:
                    is_on = await digests.sent_at(connection, request.user.id) is not None
                yield Notice(request.say("digest-is-on" if is_on else "digest-is-off"))

    return Command("digest", handle)
