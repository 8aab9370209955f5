"""/stop: end the answer that is being made here. Does not wait in line behind it."""

from handlers.running import Running
from handlers.types import Command, Notice, Reply, Request


def command(running: Running) -> Command:
    async def handle(request: Request) -> Reply:
        if not running.stop(request.incoming.place):
            yield Notice(request.say("stop-nothing"))

    return Command("stop", handle, is_urgent=True)
