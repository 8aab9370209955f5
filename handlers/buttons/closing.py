"""Yes and No under a finished piece of work."""

from handlers.types import Card, Handler, Reply, Request, UserError
from handlers.work.works import Works


def close(works: Works) -> Handler:
    """Yes: what was shown goes, from the chat and from the database; one line stays."""

    async def handle(request: Request) -> Reply:
        work = await works.load(request)
        if work.state is None:
            raise UserError(request.say("press-again-close_work"))
        work.finish(request.say("work-achieved", title=work.state.title))
        for event in work.events():
            yield event

    return handle


def go_on(works: Works) -> Handler:
    """No: everything stays, and the model is told that the person wants to go on."""

    async def handle(request: Request) -> Reply:
        work = await works.load(request)
        if work.state is None:
            raise UserError(request.say("press-again-close_work"))
        work.change(goes_on=True)
        for event in work.events():
            yield event
        yield Card(request.say("work-goes-on"), replaces=request.card)

    return handle
