"""The model sets a reminder at a time that it worked out, and lists those that wait."""

from datetime import datetime, time

from handlers.answering.calls import Call, Outcome, Tool
from handlers.reminding import reminders, when
from handlers.reminding.reminders import Reminders
from handlers.reminding.when import DEFAULT_HOUR, When
from handlers.types import Request
from memory.instants import from_ms
from memory.ports import Json, ToolSpec

_DATE_ONLY = len("2026-12-01")

SET = ToolSpec(
    name="set_reminder",
    description=(
        "Remind the person of something at a time, once or again and again. Call it only when they ask to be "
        "reminded. Work out the time from the line Now, in the person's own time zone. The result says what is stored."
    ),
    schema={
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "description": "What to remind of, in the person's language and in their own words, without the time.",
            },
            "at": {
                "type": "string",
                "description": (
                    "Local date and time of the first ring, without a zone: 2026-12-01T09:00. "
                    "A day without an hour means 09:00."
                ),
            },
            "repeat": {
                "type": "string",
                "description": (
                    "Leave it out for once. daily, weekly, monthly, yearly, weekdays, or days of the week as a list: "
                    "mon,thu."
                ),
            },
        },
        "required": ["text", "at"],
        "additionalProperties": False,
    },
)

LIST = ToolSpec(
    name="list_reminders",
    description=(
        "Show the person the reminders that wait in this chat's scope, on a card with buttons to put one off, skip "
        "or delete it. Nothing is changed by this call."
    ),
    schema={"type": "object", "properties": {}, "additionalProperties": False},
)


def tools(kept: Reminders) -> tuple[Tool, ...]:
    return (
        Tool(SET, _setting(kept), confirm="untrusted", describe=_describing(kept), allow="reminder-yes"),
        Tool(LIST, _listing(kept)),
    )


def _setting(kept: Reminders):
    async def run(call: Call) -> Outcome:
        request = call.request
        asked = _understand(kept, request, call.input)
        if isinstance(asked, str):
            return Outcome(asked, is_error=True)
        text, wanted = asked
        stored = await kept.keep(request, wanted, text)
        card = reminders.kept_card(request.say, stored, kept.zone(request.user))
        return Outcome(_told(kept, request, stored), (card,))

    return run


def _describing(kept: Reminders):
    def describe(request: Request, input: Json) -> str | None:
        asked = _understand(kept, request, input)
        if isinstance(asked, str):
            return None
        text, wanted = asked
        return reminders.untrusted(request.say, wanted, text, kept.zone(request.user))

    return describe


def _listing(kept: Reminders):
    async def run(call: Call) -> Outcome:
        request = call.request
        where = kept.zone(request.user)
        listed, total = await kept.page(request, 0)
        if not listed:
            return Outcome("No reminder is waiting.")
        lines = "\n".join(reminders.listing(request.say, reminder, where) for reminder in listed)
        card = reminders.page_card(request.say, listed, total, 0, where)
        call.work.show_list(LIST.name, card, lines)
        return Outcome(f"{total} waiting; the person sees them on a card with buttons. The next ones:\n{lines}")

    return run


def _understand(kept: Reminders, request: Request, input: Json) -> tuple[str, When] | str:
    """The text and the time, or what is wrong with them, for the model."""
    text, at, repeat = (input.get(name) or "" for name in ("text", "at", "repeat"))
    if not (isinstance(text, str) and text.strip()):
        return "text must say what to remind of."
    if len(text) > reminders.LONGEST:
        return f"text has {len(text)} characters, at most {reminders.LONGEST} fit. Nothing was set."
    where, now = kept.zone(request.user), kept.now()
    try:
        starts = datetime.fromisoformat(str(at).strip())
        if starts.tzinfo is not None:
            starts = starts.astimezone(where).replace(tzinfo=None)
            at = starts.isoformat()
    except (ValueError, OverflowError):
        return "at must be a local date and time such as 2026-12-01T09:00."
    if len(str(at).strip()) == _DATE_ONLY:
        starts = datetime.combine(starts.date(), time(DEFAULT_HOUR))
    rule = when.repeat_rule(str(repeat), starts)
    if repeat and rule is None:
        return "repeat must be daily, weekly, monthly, yearly, weekdays, or a list of weekdays such as mon,thu."
    wanted = when.plan(starts, rule, now, where)
    if wanted is None or wanted.due <= now:
        return f"at is not to come: it is {now.astimezone(where):%Y-%m-%dT%H:%M} now. Nothing was set."
    return text.strip(), wanted


def _told(kept: Reminders, request: Request, stored: reminders.Kept) -> str:
    """From the stored row."""
    reminder = stored.reminder
    local = from_ms(reminder.due_at).astimezone(kept.zone(request.user))
    again = f", then {reminder.rule}" if reminder.rule else ""
    known = "Already set, nothing changed" if stored.was_known else "Set"
    return f"{known}: {reminder.text}, on {local:%A %Y-%m-%d %H:%M}{again}. The person sees a card that says so."
