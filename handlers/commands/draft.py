"""/draft: write a longer text, revise it as told, or take up the one that is open or was kept last."""

from contextlib import aclosing

from handlers.types import Command, Reply, Request, UserError
from handlers.work import draft
from handlers.work.works import Works
from handlers.work.writer import Writer


def command(works: Works, writer: Writer) -> Command:
    async def handle(request: Request) -> Reply:
        if request.args:
            async with aclosing(writer.write(request, request.args, request.incoming.quote)) as reply:
                async for event in reply:
                    yield event
            return
        work = await works.load(request)
        text = (await draft.versions(work)).get(draft.newest(work)) if work.holds(draft.TOOL) else None
        if text is not None:
            work.change()
            draft.show(request, work, draft.newest(work), text)
        elif kept := await draft.last_kept(works.database, request.session.id):
            draft.put(request, work, kept.text, title=kept.title)
            work.change(saved=True)
        else:
            raise UserError(request.say("draft-how"))
        for event in work.events():
            yield event

    return Command("draft", handle)
