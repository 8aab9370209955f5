"""Buttons that turn the pages of a chat's history."""

from handlers import pages
from handlers.types import Handler, Reply, Request
from handlers.work.works import Works


def page(works: Works) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await pages.history_page(works, request, page=request.data["page"], replaces=request.card)

    return handle
