"""Reminders as people meet them: keeping and changing them, and their cards. What a card says comes from the row."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_time, get_day_names

from handlers.locales import Phrases
from handlers.remembering.facts import shorten
from handlers.reminding import recurring
from handlers.reminding.recurring import DAYS, WEEKDAYS, instant_of, next_time, wall_of
from handlers.reminding.when import When
from handlers.types import Button, Card, Request, UserError
from handlers.work.works import Works
from memory.instants import from_ms, to_ms
from memory.secrets import redact_secrets
from memory.storage import reminders
from memory.storage.reminders import Wish
from memory.types import Reminder, User

PER_PAGE = 6
LONGEST = 1000
"""Characters of what to remind of: it rings in one message."""
LISTED_LENGTH = 200
"""Characters of it on the list: a page is one message too, or its buttons could not turn it."""
SNOOZES = {"10m": timedelta(minutes=10), "1h": timedelta(hours=1)}
"""Besides "1d", which keeps the wall clock."""
ANSWERED_AT_ONCE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome of keeping a reminder, told from the stored row."""

    reminder: Reminder
    was_known: bool
    redacted: bool


@dataclass(frozen=True, slots=True)
class Reminders:
    """Keeps, changes and deletes them, and says so to whoever wakes us."""

    works: Works
    changed: Callable[[], Awaitable[None]]
    """After every change: the next one may be due earlier now."""

    def zone(self, user: User) -> ZoneInfo:
        return recurring.zone(user.timezone or self.works.timezone)

    def now(self) -> datetime:
        return self.works.clock.now()

    def said_at(self, request: Request) -> datetime:
        """When it was said, so that a second try after a crash means the same instant; now, where that is long ago."""
        now, sent = self.now(), request.incoming.sent_at
        return sent if timedelta(0) <= now - sent <= ANSWERED_AT_ONCE else now

    async def keep(self, request: Request, when: When, text: str) -> Kept:
        text, redacted = redact_secrets(text)
        wish = Wish(
            user_id=request.user.id,
            session_id=request.session.id,
            owner=request.audience.owner,
            place=asdict(request.incoming.place),
            text=text,
            starts=when.starts.isoformat(timespec="minutes"),
            timezone=self.zone(request.user).key,
            rule=when.rule,
            due_at=to_ms(when.due),
        )
        async with self.works.database.write() as connection:
            reminder, was_known = await reminders.add(connection, wish, to_ms(self.now()))
        await self.changed()
        return Kept(reminder, was_known, redacted)

    async def find(self, request: Request) -> Reminder:
        """The one that a button is about. Raises `UserError` for one that is gone."""
        async with self.works.database.read() as connection:
            found = await reminders.by_id(connection, request.audience, request.data["id"])
        return self._there(request, found)

    async def page(self, request: Request, page: int) -> tuple[list[Reminder], int]:
        """One page of those that wait, and how many wait in all."""
        async with self.works.database.read() as connection:
            total = await reminders.count(connection, request.audience)
            offset = max(0, min(page, (total - 1) // PER_PAGE)) * PER_PAGE
            return await reminders.page(connection, request.audience, offset=offset, limit=PER_PAGE), total

    async def snooze(self, request: Request) -> Reminder:
        """Later: than now for one that rang, than its time for one on the list."""
        reminder, due = await self.find(request), request.data["due"]
        base = self.now() if due is None else max(self.now(), from_ms(due))
        until = self._later(reminder, base, request.data["by"])
        if due is None and reminder.rule is not None:  # it rings again by itself: not after that
            until = min(until, from_ms(reminder.due_at))
        return await self._wait_until(request, until)

    async def finish(self, request: Request) -> Reminder:
        """Done with it; what comes back is done with this once."""
        reminder, due = await self.find(request), request.data["due"]
        if reminder.rule is not None:
            if due is None:
                return reminder
            starts, where = datetime.fromisoformat(reminder.starts), recurring.zone(reminder.timezone)
            following = next_time(starts, reminder.rule, where, max(self.now(), from_ms(due)))
            if following is not None:
                self._note_done(request, reminder)
                return await self._wait_until(request, following[1])
        async with self.works.database.write() as connection:
            found = await reminders.done(connection, request.audience, reminder.id)
        await self.changed()
        done = self._there(request, found)
        self._note_done(request, reminder)
        return done

    def _note_done(self, request: Request, reminder: Reminder) -> None:
        """When it was due, not of what: its words go with the reminder."""
        if self.works.events is not None:
            due = request.data["due"] or reminder.due_at
            when = moment(request.say, from_ms(due), self.zone(request.user))
            said = request.say("event-reminder", when=when)
            self.works.events.note(
                request.audience.owner, f"reminder:{reminder.id}:{due}", said, user_id=request.user.id
            )

    async def delete(self, request: Request) -> bool:
        async with self.works.database.write() as connection:
            return await reminders.delete(connection, request.audience, request.data["id"])

    def _later(self, reminder: Reminder, base: datetime, by: str) -> datetime:
        if by in SNOOZES:
            return base + SNOOZES[by]
        where = recurring.zone(reminder.timezone)
        return instant_of(wall_of(base, where) + timedelta(days=1), where)

    async def _wait_until(self, request: Request, instant: datetime) -> Reminder:
        async with self.works.database.write() as connection:
            found = await reminders.wait_until(connection, request.audience, request.data["id"], to_ms(instant))
        await self.changed()
        return self._there(request, found)

    @staticmethod
    def _there(request: Request, found: Reminder | None) -> Reminder:
        if found is None:
            raise UserError(request.say("reminder-gone"))
        return found


# --- words ----------------------------------------------------------------------------------------


def moment(say: Phrases, instant: datetime, where: ZoneInfo) -> str:
    """An instant as people say it, on the wall clock of a zone."""
    wall = wall_of(instant, where)
    day = format_date(wall, format="full", locale=say.language)
    return say("moment", day=day, time=format_time(wall, format="short", locale=say.language))


def repeats(say: Phrases, rule: str) -> str:
    """How it comes back."""
    parts = recurring.parts(rule)
    every = int(parts.get("INTERVAL", 1))
    match parts["FREQ"]:
        case "DAILY":
            return say("repeat-daily") if every == 1 else say("repeat-days", n=every)
        case "MONTHLY":
            return say("repeat-monthly") if every == 1 else say("repeat-months", n=every)
        case "YEARLY":
            return say("repeat-yearly") if every == 1 else say("repeat-years", n=every)
        case _:
            chosen = tuple(parts["BYDAY"].split(","))
            if chosen == WEEKDAYS and every == 1:
                return say("repeat-weekdays")
            names = get_day_names("wide", "stand-alone", say.language)
            days = ", ".join(names[DAYS.index(day)] for day in chosen)
            return say("repeat-weekly", days=days) if every == 1 else say("repeat-weeks", n=every, days=days)


def timing(say: Phrases, due: datetime, rule: str | None, where: ZoneInfo) -> str:
    """When it rings, and how it comes back."""
    said = moment(say, due, where)
    return f"{said} ({repeats(say, rule)})" if rule else said


def line(say: Phrases, reminder: Reminder, where: ZoneInfo) -> str:
    return f"{timing(say, from_ms(reminder.due_at), reminder.rule, where)}: {reminder.text}"


def listing(say: Phrases, reminder: Reminder, where: ZoneInfo) -> str:
    """The same among others."""
    return line(say, replace(reminder, text=shorten(reminder.text, LISTED_LENGTH)), where)


# --- cards ----------------------------------------------------------------------------------------


def kept_card(say: Phrases, kept: Kept, where: ZoneInfo, *, replaces: str | None = None) -> Card:
    """Told from the stored row, with the way back."""
    reminder = kept.reminder
    when = timing(say, from_ms(reminder.due_at), reminder.rule, where)
    said = say("reminder-known" if kept.was_known else "reminder-set", when=when, text=reminder.text)
    if kept.redacted:
        said += "\n" + say("fact-redacted")
    data = {"id": reminder.id}
    back = (
        Button(say("delete"), "ask_delete_reminder", data)
        if kept.was_known
        else Button(say("undo"), "undo_reminder", data)
    )
    return Card(said, ((back,),), replaces)


def ask_to_keep(say: Phrases, when: When, text: str, where: ZoneInfo) -> Card:
    """For words that are not the person's own."""
    data = {"text": text, "starts": when.starts.isoformat(), "rule": when.rule, "due": to_ms(when.due)}
    yes = Button(say("reminder-yes"), "keep_reminder", data)
    return Card(untrusted(say, when, text, where), ((yes, Button(say("no"), "leave")),))


def untrusted(say: Phrases, when: When, text: str, where: ZoneInfo) -> str:
    return say("reminder-untrusted", when=timing(say, when.due, when.rule, where), text=text)


def page_card(
    say: Phrases, listed: Sequence[Reminder], total: int, page: int, where: ZoneInfo, *, replaces: str | None = None
) -> Card:
    """Those that wait, the next one first; each is a button that opens it."""
    if not listed:
        return Card(say("reminders-none"), replaces=replaces)
    page = min(page, (total - 1) // PER_PAGE)
    first = page * PER_PAGE + 1
    lines = [say("reminders-listed", n=total), ""]
    lines += [f"{number}. {listing(say, reminder, where)}" for number, reminder in enumerate(listed, first)]
    rows = [
        (Button(f"{number}. {shorten(reminder.text)}", "open_reminder", {"id": reminder.id, "page": page}),)
        for number, reminder in enumerate(listed, first)
    ]
    turns = [Button(f"‹ {say('back')}", "reminders_page", {"page": page - 1})] if page > 0 else []
    if first + len(listed) <= total:
        turns.append(Button(f"{say('more')} ›", "reminders_page", {"page": page + 1}))
    return Card("\n".join(lines), (*rows, *((tuple(turns),) if turns else ())), replaces)


def open_card(say: Phrases, reminder: Reminder, where: ZoneInfo, page: int, replaces: str | None) -> Card:
    """One of the list, with all that can be done about it."""
    data = {"id": reminder.id, "due": reminder.due_at}
    later = tuple(Button(say(f"later-{by}"), "snooze_reminder", {**data, "by": by}) for by in (*SNOOZES, "1d"))
    finish = Button(say("reminder-skip" if reminder.rule else "reminder-finish"), "finish_reminder", data)
    delete = Button(say("delete"), "ask_delete_reminder", {"id": reminder.id})
    back = Button(say("back"), "reminders_page", {"page": page})
    return Card(line(say, reminder, where), (later, (finish, delete), (back,)), replaces)


def ask_delete_card(say: Phrases, reminder: Reminder, where: ZoneInfo, replaces: str | None) -> Card:
    yes = Button(say("reminder-delete-yes"), "delete_reminder", {"id": reminder.id})
    asked = say("reminder-delete-ask", reminder=line(say, reminder, where))
    return Card(asked, ((yes, Button(say("no"), "leave")),), replaces)


def ring_card(say: Phrases, reminder: Reminder, missed: Sequence[datetime], name: str | None) -> Card:
    """What rings. `missed` are the instants that went by unheard; `name` is whom it is for, among others."""
    said = say("ring-for", name=name, text=reminder.text) if name else say("ring", text=reminder.text)
    where = recurring.zone(reminder.timezone)
    if len(missed) == 1:
        said += "\n" + say("ring-late", when=moment(say, missed[0], where))
    elif missed:
        said += "\n" + say("ring-late-often", n=len(missed), when=moment(say, missed[-1], where))
    data = {"id": reminder.id, "due": None}
    later = tuple(Button(say(f"snooze-{by}"), "snooze_reminder", {**data, "by": by}) for by in SNOOZES)
    return Card(said, ((*later, Button(say("reminder-finish"), "finish_reminder", data)),))
