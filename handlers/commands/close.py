"""/close: end the open piece of work of this chat."""

from handlers.types import Command, Reply, Request, UserError
from handlers.work.works import Works


def command(works: Works) -> Command:
    async def handle(request: Request) -> Reply:
        work = await works.load(request)
        if work.state is None:
            raise UserError(request.say("work-none"))
        work.check_theirs()
        work.close("asked")
        for event in work.events():
            yield event

    return Command("close", handle)
