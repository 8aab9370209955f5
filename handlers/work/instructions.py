"""Standing instructions as a piece of work: shown, proposed, applied, rolled back; a person's own or the bot's.

Rule: what the model wrote is a draft on a card until the person applies it, and a draft is never put in force but by
its number on that card.
"""

from dataclasses import dataclass
from typing import Literal

from handlers import waiting
from handlers.pages import day
from handlers.remembering.facts import shorten
from handlers.types import Button, Card, Handler, Reply, Request, UserError
from handlers.work.diffs import difference
from handlers.work.works import Work, Works
from memory.instants import to_ms
from memory.storage import instructions
from memory.storage.instructions import Snapshot
from memory.types import Role

PROPOSAL = "proposal"
PER_PAGE = 6


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose instructions: what the model calls it, the work it makes, and the subject in the store."""

    name: Literal["me", "bot"]
    tool: str
    """The name of the work, of the command that takes it up again, and the beginning of its phrases."""
    subject: str


def whose(request: Request, name: object) -> Whose:
    """Raises `UserError` where this person may not, or where others would read along."""
    if name == "bot":
        if request.user.role is not Role.OWNER:
            raise UserError(request.say("persona-owners"))
        return Whose("bot", "persona", instructions.PERSONA)
    if not request.audience.is_private:
        raise UserError(request.say("instructions-private"))
    return Whose("me", "instructions", instructions.subject_of(request.user.id))


async def show(
    works: Works, request: Request, work: Work, of: Whose, *, replaces: str | None = None
) -> Snapshot | None:
    """The preview: what is in force, with what can be done about it."""
    async with works.database.read() as connection:
        snapshot = await instructions.in_force(connection, of.subject)
    say = request.say
    data = {"whose": of.name}
    buttons = [Button(say("instructions-change"), "change_instructions", data, waits=True)]
    if snapshot is not None:
        buttons.append(Button(say("instructions-history"), "instructions_history", data, waits=True))
    if snapshot is not None and snapshot.text:
        buttons.append(Button(say("instructions-clear"), "clear_instructions", data, waits=True))
        when = day(request, snapshot.created_at)
        text = say(f"{of.tool}-shown", number=snapshot.version, when=when, text=snapshot.text)
    else:
        text = say(f"{of.tool}-none")
    work.show_list(of.tool, Card(text, (tuple(buttons),), replaces), text)
    work.touch()
    return snapshot


async def show_history(
    works: Works, request: Request, work: Work, of: Whose, *, before: int | None, replaces: str | None
) -> None:
    """A page of the snapshots; each is a button that opens it."""
    async with works.database.read() as connection:
        found = await instructions.history(connection, of.subject, PER_PAGE + 1, before=before)
    say = request.say
    data = {"whose": of.name}
    listed = found[:PER_PAGE]
    labels = [
        f"{each.version} · {day(request, each.created_at)} · {shorten(each.text) or say('instructions-empty')}"
        for each in listed
    ]
    rows = [
        (Button(label, "open_instructions", {**data, "id": each.id}, waits=True),)
        for label, each in zip(labels, listed, strict=True)
    ]
    turn = [Button(f"‹ {say('back')}", "show_instructions", data, waits=True)]
    if len(found) > PER_PAGE:
        older = {**data, "before": listed[-1].id}
        turn.append(Button(f"{say('more')} ›", "instructions_history", older, waits=True))
    text = say(f"{of.tool}-versions")
    work.show_list(of.tool, Card(text, (*rows, tuple(turn)), replaces), "\n".join([text, *labels]))
    work.touch()


async def open_version(works: Works, request: Request, work: Work, of: Whose, *, id: int, replaces: str | None) -> None:
    """One snapshot whole, with the way back to it."""
    snapshot = await chosen(works, request, of, id)
    say = request.say
    data = {"whose": of.name}
    restore = Button(say("instructions-restore"), "restore_instructions", {**data, "id": id}, waits=True)
    back = Button(f"‹ {say('back')}", "instructions_history", data, waits=True)
    when = day(request, snapshot.created_at)
    text = say(f"{of.tool}-shown", number=snapshot.version, when=when, text=snapshot.text or say("instructions-empty"))
    work.show_list(of.tool, Card(text, ((restore, back),), replaces), text)
    work.touch()


async def chosen(works: Works, request: Request, of: Whose, id: int) -> Snapshot:
    """The snapshot behind a button. Raises `UserError` for one that is gone."""
    async with works.database.read() as connection:
        snapshot = await instructions.by_id(connection, of.subject, id)
    if snapshot is None:
        raise UserError(request.say("instructions-gone"))
    return snapshot


async def propose(
    works: Works, request: Request, work: Work, of: Whose, text: str, *, restored_from: int | None = None
) -> int:
    """Show a draft against what is in force; return its number. Raises `UserError` for one that cannot be applied."""
    say = request.say
    text, had_secret = instructions.tidy(text)
    if len(text) > instructions.MAX_LENGTH:
        raise UserError(say("instructions-long", length=len(text), most=instructions.MAX_LENGTH))
    async with works.database.read() as connection:
        holding = await instructions.in_force(connection, of.subject)
    old = holding.text if holding else ""
    if text == old:
        raise UserError(say("instructions-same"))
    number = _take_up(request, work, of)
    data = {"whose": of.name, "draft": number}
    buttons = (
        Button(say("instructions-apply"), "apply_instructions", data, waits=True),
        Button(say("instructions-discard"), "discard_instructions", {"whose": of.name}, waits=True),
    )
    heading = say(f"{of.tool}-draft" if text else f"{of.tool}-draft-empty", number=number)
    lines = [heading, "", difference(old, text) if old else text]
    if had_secret:
        lines += ["", say("fact-redacted")]
    card = Card("\n".join(lines), (buttons,), formatted=bool(old))
    origin = {} if restored_from is None else {"restored_from": restored_from}
    work.show(card, text, PROPOSAL, draft=number, **origin)
    return number


async def apply(works: Works, request: Request, work: Work, of: Whose, number: int) -> Snapshot:
    """Put a draft in force, and ask whether that is what the person wanted. Doing it again changes nothing.

    Raises `UserError` where the draft is not on a card any more, or belongs to somebody else.
    """
    check_open(request, work, of)  # before any write
    work.change(step=f"draft {number} is in force", goes_on=False)
    drafts = [each for each in await work.shown() if each.kind == PROPOSAL]
    draft = next((each for each in drafts if each.data["draft"] == number), None)
    if draft is None:
        raise UserError(request.say("instructions-gone"))
    now = to_ms(works.clock.now())
    async with works.database.write() as connection:
        snapshot = await instructions.apply(
            connection, of.subject, draft.text, request.user.id, now, draft.data.get("restored_from")
        )
    if works.events is not None:
        said = request.say("event-instructions", number=snapshot.version)
        works.events.note(
            request.audience.owner, f"{of.tool}:{of.subject}:{snapshot.id}", said, user_id=request.user.id
        )
    work.complete(request.say(f"{of.tool}-applied", number=snapshot.version))
    return snapshot


def check_open(request: Request, work: Work, of: Whose) -> None:
    """Raises `UserError` where this work is closed, or somebody else's."""
    if not work.holds(of.tool):
        raise UserError(request.say("press-again-close_work"))
    work.change()


def shown_or_proposed(works: Works, name: Literal["me", "bot"]) -> Handler:
    """What the commands do: show what is in force, or propose the words after the command."""

    async def handle(request: Request) -> Reply:
        of = whose(request, name)
        work = await works.load(request)
        if request.args:
            await propose(works, request, work, of, request.args)
        else:
            await show(works, request, work, of)
        for event in work.events():
            yield event

    return handle


def proposed(works: Works) -> Handler:
    """What the next message does after "Change"."""

    async def handle(request: Request) -> Reply:
        of = whose(request, request.data["whose"])
        work = await works.load(request)
        if len(request.incoming.text) > instructions.MAX_LENGTH:  # it is refused, and the shorter one comes next
            await waiting.ask(works.database, works.clock, request, "change_instructions", request.data)
        await propose(works, request, work, of, request.incoming.text)
        for event in work.events():
            yield event

    return handle


def _take_up(request: Request, work: Work, of: Whose) -> int:
    """Open the work, or go on with it; return the number of the next draft."""
    state = work.state
    title = request.say(f"{of.tool}-title")
    if state is None or state.tool != of.tool or state.user_id != request.user.id:
        work.open(of.tool, title)
        number = 1
    else:
        number = state.data.get("drafts", 0) + 1
    # a preview that stood alone becomes a part of the work
    work.change(title=title, step=f"draft {number}", drafts=number, light=False, goes_on=False)
    return number
