"""/timezone: where the person's clock hangs; for reminders, and for what the model takes as now."""

from zoneinfo import ZoneInfo

from handlers.reminding.recurring import find_zone, zone
from handlers.reminding.reminders import moment
from handlers.types import Command, Notice, Reply, Request, UserError
from handlers.work.works import Works
from memory.storage import people


def command(works: Works) -> Command:
    async def handle(request: Request) -> Reply:
        say = request.say
        if not request.args:
            where = zone(request.user.timezone or works.timezone)
            yield Notice(say("timezone-now", zone=where.key, now=_now(request, works, where)))
            return
        name = find_zone(request.args)
        if name is None:
            raise UserError(say("timezone-unknown", zone=request.args))
        async with works.database.write() as connection:
            await people.live_in(connection, request.user.id, name)
        yield Notice(say("timezone-chosen", zone=name, now=_now(request, works, zone(name))))

    return Command("timezone", handle)


def _now(request: Request, works: Works, where: ZoneInfo) -> str:
    return moment(request.say, works.clock.now(), where)
