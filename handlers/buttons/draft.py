"""Buttons of a draft: keep it, see what changed, throw it away, ask the model once more."""

from contextlib import aclosing

from handlers.types import Card, Handler, Reply, Request
from handlers.work import draft
from handlers.work.works import Works
from handlers.work.writer import Writer


def keep(works: Works) -> Handler:
    """The version of the pressed card becomes a permanent message."""

    async def handle(request: Request) -> Reply:
        work = await works.load(request)
        kept = await draft.keep(request, work, works.name, request.data["version"])
        if kept is not None:
            yield kept
        for event in work.events():
            yield event

    return handle


def changes(works: Works) -> Handler:
    async def handle(request: Request) -> Reply:
        work = await works.load(request)
        draft.check_open(request, work)
        work.change()
        await draft.show_changes(request, work, request.data["version"])
        for event in work.events():
            yield event

    return handle


def ask_discard(works: Works) -> Handler:
    async def handle(request: Request) -> Reply:
        work = await works.load(request)
        draft.ask_discard(request, work)
        for event in work.events():
            yield event

    return handle


def discard(works: Works) -> Handler:
    """Yes: every version goes; what was kept before stays."""

    async def handle(request: Request) -> Reply:
        work = await works.load(request)
        draft.check_open(request, work)
        work.change()
        work.close("asked")
        for event in work.events():
            yield event

    return handle


def write_again(writer: Writer) -> Handler:
    """The model failed: the same request once more."""

    async def handle(request: Request) -> Reply:
        yield Card(request.say("answering-again"), replaces=request.card)
        async with aclosing(writer.write(request, request.data["what"], request.data["quote"])) as reply:
            async for event in reply:
                yield event

    return handle
