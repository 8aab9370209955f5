"""/reminders: those that wait, each with what can be done about it. A list is working output."""

from handlers.reminding import reminders
from handlers.reminding.reminders import Reminders
from handlers.types import Command, Reply, Request
from handlers.work.works import Works


def command(kept: Reminders, works: Works) -> Command:
    async def handle(request: Request) -> Reply:
        where = kept.zone(request.user)
        listed, total = await kept.page(request, 0)
        card = reminders.page_card(request.say, listed, total, 0, where)
        if not listed:
            yield card
            return
        work = await works.load(request)
        work.show_list("reminders", card, card.text)
        for event in work.events():
            yield event

    return Command("reminders", handle)
