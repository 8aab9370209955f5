"""/remind: set a reminder, without a model; a time in English, German or Russian, then what it is about."""

from handlers.remembering.facts import shorten
from handlers.reminding import reminders
from handlers.reminding.reminders import Reminders
from handlers.reminding.when import understand
from handlers.types import Command, Reply, Request, UserError


def command(kept: Reminders) -> Command:
    async def handle(request: Request) -> Reply:
        say, incoming = request.say, request.incoming
        where, said_at = kept.zone(request.user), kept.said_at(request)
        found = understand(request.args, said_at, where)
        text = (found[1] if found else "") or shorten(incoming.quote, reminders.LONGEST)
        if found is None or not text:
            raise UserError(say("remind-how"))
        if len(text) > reminders.LONGEST:
            raise UserError(say("reminder-long", length=len(text), longest=reminders.LONGEST))
        when = found[0]
        if when.due <= said_at:
            raise UserError(say("remind-past", now=reminders.moment(say, said_at, where)))
        if incoming.attachments or not found[1]:  # somebody's words: a tap decides
            yield reminders.ask_to_keep(say, when, text, where)
            return
        yield reminders.kept_card(say, await kept.keep(request, when, text), where)

    return Command("remind", handle)
