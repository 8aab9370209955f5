"""/help and /start: what Merk can do, from the list of commands itself."""

from collections.abc import Sequence

from handlers.types import Command, Notice, Reply, Request
from memory.types import Role


def commands(listed: Sequence[Command]) -> list[Command]:
    async def help(request: Request) -> Reply:
        say = request.say
        offered = [each for each in listed if not each.for_owners or request.user.role is Role.OWNER]
        lines = [f"/{command.name} – {say(f'command-{command.name}')}" for command in offered]
        yield Notice("\n".join([say("help"), "", *lines]))

    async def start(request: Request) -> Reply:
        yield Notice(request.say("welcome", name=request.user.name))

    return [Command("start", start), Command("help", help)]
