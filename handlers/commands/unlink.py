"""/unlink: under which identities somebody is known here, and a button to take each of the others off."""

from handlers.identities import called, network
from handlers.types import Button, Card, Command, Notice, Reply, Request, UserError
from memory.storage import people
from memory.storage.database import Database


def command(database: Database) -> Command:
    async def handle(request: Request) -> Reply:
        say, here = request.say, request.incoming.sender.identity
        if not request.audience.is_private:
            raise UserError(say("link-private"))
        async with database.read() as connection:
            known_as = await people.identities_of(connection, request.user.id)
        others = [key for key in known_as if key != here]
        if not others:
            yield Notice(say("unlink-none", network=network(here)))
            return
        rows = [(Button(say("unlink", network=network(key)), "ask_unlink", {"identity": key}),) for key in others]
        listed = "\n".join(f"– {called(request.user.name, key)}" for key in known_as)
        yield Card(say("unlink-list", listed=listed), (*rows, (Button(say("cancel"), "leave"),)))

    return Command("unlink", handle)
