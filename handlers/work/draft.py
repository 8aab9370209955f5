"""A longer text in the making: its versions as cards, what changed between two, what becomes of the one that is kept.

Rule: versions are working output and a draft is never sent anywhere; only what the person keeps stays.
"""

import re
from dataclasses import dataclass

from handlers.remembering.facts import shorten
from handlers.types import Button, Card, Request, UserError
from handlers.work.diffs import difference
from handlers.work.markdown import literal
from handlers.work.works import Work
from memory.storage import log
from memory.storage.database import Database
from memory.types import Utterance

TOOL = "draft"
VERSION = "version"
LONGEST = 7000
"""Characters of a version: so much the model reads again in one call of read_work."""
TITLE_LENGTH = 80
MESSAGE_LENGTH = 3500
"""Characters of a kept text beyond which it is handed over as a file."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a person kept."""

    title: str
    text: str


def put(request: Request, work: Work, text: str, *, title: str = "", new: bool = False) -> int:
    """Show a whole text as the next version; return its number. `new` begins another piece of work.

    An empty title leaves the open one. Raises `UserError` for a text that is empty or too long.
    """
    text, title = text.strip(), shorten(title, TITLE_LENGTH)
    if not text:
        raise UserError(request.say("draft-empty"))
    _check_length(request, text)
    if new or not work.holds(TOOL):
        work.open(TOOL, title or shorten(text, TITLE_LENGTH), version=0, saved=False)
    number = newest(work) + 1
    work.change(title=title or None, step=f"draft {number}", version=number, goes_on=False)
    show(request, work, number, text)
    return number


def show(request: Request, work: Work, number: int, text: str) -> None:
    """The card of a version, with fresh buttons."""
    assert work.state is not None
    heading = request.say("draft-heading", number=number, title=work.state.title)
    buttons = [_keep_button(request, number)]
    if number > 1:
        buttons.append(Button(request.say("draft-changes"), "show_draft_changes", {"version": number}, waits=True))
    rows = (tuple(buttons), (_discard_button(request),))
    work.show(Card(f"{literal(heading)}\n\n{text}", rows, formatted=True), text, VERSION, version=number)


async def show_changes(request: Request, work: Work, number: int) -> None:
    """A card of what a version changed, with the buttons that the version's own card has spent."""
    texts = await versions(work)
    old, new = texts.get(number - 1), texts.get(number)
    if old is None or new is None:
        raise UserError(request.say("draft-version-gone", number=number))
    changed = difference(old, new) or literal(request.say("draft-same"))
    heading = literal(request.say("draft-changes-heading", old=number - 1, new=number))
    rows = ((_keep_button(request, number), _discard_button(request)),)
    work.show(Card(f"{heading}\n\n{changed}", rows, formatted=True), changed, "diff", version=number)


async def keep(request: Request, work: Work, name: str, number: int | None = None) -> Card | None:
    """Ask whether the work is done, and return the permanent message of a version, by default the newest.

    None where that version is kept already. `name` is the assistant's.
    """
    check_open(request, work)
    assert work.state is not None
    number = newest(work) if number is None else number
    text = (await versions(work)).get(number)
    if text is None:
        raise UserError(request.say("draft-version-gone", number=number))
    was_kept = work.state.data.get("kept") == number
    title = work.state.title
    work.change(kept=number, saved=True)
    work.complete(request.say("draft-achieved", title=title))
    return None if was_kept else _kept_card(request, name, Kept(title, text))


def ask_discard(request: Request, work: Work) -> None:
    """Drafts cannot be brought back: ask first."""
    check_open(request, work)
    work.change()
    assert work.state is not None
    yes = Button(request.say("draft-discard-yes"), "discard_draft", waits=True)
    no = Button(request.say("no"), "continue_work", waits=True)
    asked = request.say("draft-discard-ask", title=work.state.title)
    work.show(Card(asked, ((yes, no),)), asked, "question")


def check_open(request: Request, work: Work) -> None:
    """Raises `UserError` unless a draft is open."""
    if not work.holds(TOOL):
        raise UserError(request.say("press-again-close_work"))


def newest(work: Work) -> int:
    """The number of the newest version of the open draft; 0 before the first."""
    return int(work.state.data.get("version", 0)) if work.state is not None else 0


async def versions(work: Work) -> dict[int, str]:
    """The texts of the open draft by their number."""
    shown = await work.shown()
    return {each.data["version"]: each.text for each in reversed(shown) if each.kind == VERSION}


async def last_kept(database: Database, session_id: int) -> Kept | None:
    """What was kept last in a session."""
    async with database.read() as connection:
        message = await log.last_made(connection, session_id, TOOL)
    return Kept(message.blocks[0]["title"], message.text) if message is not None and message.blocks else None


def _kept_card(request: Request, name: str, kept: Kept) -> Card:
    """Its record is told apart from the answer of the same turn by having no inbox row."""
    record = Utterance(
        session_id=request.session.id,
        role="assistant",
        speaker=name,
        text=kept.text,
        blocks=[{"tool": "keep_draft", "outcome": "done", "title": kept.title}],
        tool=TOOL,
    )
    if len(kept.text) <= MESSAGE_LENGTH:
        return Card(kept.text, formatted=True, record=record)
    return Card(request.say("draft-as-file", title=kept.title), file=(file_name(kept.title), kept.text), record=record)


def file_name(title: str) -> str:
    """A name for a file, from the words of a title."""
    stem = re.sub(r"[^\w]+", "-", title.lower()).strip("-_")[:60].rstrip("-")
    return f"{stem or 'draft'}.md"


def _check_length(request: Request, text: str) -> None:
    if len(text) > LONGEST:
        raise UserError(request.say("draft-too-long", length=len(text), longest=LONGEST))


def _keep_button(request: Request, number: int) -> Button:
    return Button(request.say("draft-keep"), "keep_draft", {"version": number}, waits=True)


def _discard_button(request: Request) -> Button:
    return Button(request.say("draft-discard"), "ask_discard_draft", waits=True)
