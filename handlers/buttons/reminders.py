"""Buttons of reminders: keep, undo, look closer, put off, done, delete; on the list and under what rings."""

from datetime import datetime

from handlers.reminding import reminders
from handlers.reminding.reminders import Reminders
from handlers.reminding.when import When
from handlers.types import Card, Handler, Reply, Request, UserError
from memory.instants import from_ms


def keep(kept: Reminders) -> Handler:
    """The tap that lets somebody else's words be a reminder."""

    async def handle(request: Request) -> Reply:
        data = request.data
        when = When(datetime.fromisoformat(data["starts"]), data["rule"], from_ms(data["due"]))
        where = kept.zone(request.user)
        if when.due <= kept.now() and when.rule is None:
            raise UserError(request.say("remind-past", now=reminders.moment(request.say, kept.now(), where)))
        stored = await kept.keep(request, when, data["text"])
        yield reminders.kept_card(request.say, stored, where, replaces=request.card)

    return handle


def undo(kept: Reminders) -> Handler:
    async def handle(request: Request) -> Reply:
        gone = await kept.delete(request)
        yield Card(request.say("reminder-undone" if gone else "reminder-gone"), replaces=request.card)

    return handle


def page(kept: Reminders) -> Handler:
    async def handle(request: Request) -> Reply:
        number: int = request.data["page"]
        listed, total = await kept.page(request, number)
        where = kept.zone(request.user)
        yield reminders.page_card(request.say, listed, total, number, where, replaces=request.card)

    return handle


def open(kept: Reminders) -> Handler:
    async def handle(request: Request) -> Reply:
        reminder = await kept.find(request)
        where = kept.zone(request.user)
        yield reminders.open_card(request.say, reminder, where, request.data.get("page", 0), request.card)

    return handle


def snooze(kept: Reminders) -> Handler:
    async def handle(request: Request) -> Reply:
        reminder = await kept.snooze(request)
        when = reminders.moment(request.say, from_ms(reminder.due_at), kept.zone(request.user))
        yield Card(request.say("reminder-snoozed", text=reminder.text, when=when), replaces=request.card)

    return handle


def finish(kept: Reminders) -> Handler:
    async def handle(request: Request) -> Reply:
        say, reminder = request.say, await kept.finish(request)
        if reminder.status == "waiting":
            when = reminders.moment(say, from_ms(reminder.due_at), kept.zone(request.user))
            told = say("reminder-done-next", text=reminder.text, when=when)
        else:
            told = say("reminder-done", text=reminder.text)
        yield Card(told, replaces=request.card)

    return handle


def ask_delete(kept: Reminders) -> Handler:
    async def handle(request: Request) -> Reply:
        reminder = await kept.find(request)
        yield reminders.ask_delete_card(request.say, reminder, kept.zone(request.user), request.card)

    return handle


def delete(kept: Reminders) -> Handler:
    async def handle(request: Request) -> Reply:
        gone = await kept.delete(request)
        yield Card(request.say("reminder-deleted" if gone else "reminder-gone"), replaces=request.card)

    return handle
