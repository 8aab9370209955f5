"""/history: this chat as the person saw it, the newest page first."""

from handlers import pages
from handlers.types import Command, Reply, Request
from handlers.work.works import Works


def command(works: Works) -> Command:
    async def handle(request: Request) -> Reply:
        card = await pages.history_page(works, request, page=0)
        work = await works.load(request)
        work.show_list("history", card, "")  # it quotes working output, so it goes with it; no history of histories
        for event in work.events():
            yield event

    return Command("history", handle)
