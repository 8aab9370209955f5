"""What people type: one file a command, listed once."""

from collections.abc import Mapping

from handlers.answering.spending import Spending
from handlers.commands import (
    chats,
    close,
    dashboard,
    digest,
    draft,
    forget,
    help,
    history,
    instructions,
    keep,
    language,
    link,
    memory,
    newchat,
    persona,
    remember,
    remind,
    reminders,
    stop,
    team,
    timezone,
    unlink,
    usage,
    why,
)
from handlers.commands import model as models
from handlers.commands.dashboard import Dashboard
from handlers.locales import phrases
from handlers.remembering.remembered import Remembered
from handlers.reminding.reminders import Reminders
from handlers.running import Running
from handlers.types import Command, Handler, Threads
from handlers.work.instructions import proposed
from handlers.work.works import Works
from handlers.work.writer import Writer
from memory.memory import Memory
from memory.ports import LanguageModel
from memory.storage.database import Database

MENU = (
    "newchat",
    "chats",
    "history",
    "remember",
    "forget",
    "memory",
    "keep",
    "why",
    "digest",
    "team",
    "link",
    "unlink",
    "remind",
    "reminders",
    "instructions",
    "draft",
    "close",
    "model",
    "usage",
    "language",
    "timezone",
    "stop",
    "help",
)
"""The commands that clients show, in this order."""


def menu(language: str) -> list[tuple[str, str]]:
    """Name and description of each command that clients show."""
    say = phrases(language)
    return [(name, say(f"command-{name}")) for name in MENU]


def commands(  # noqa: PLR0913 - what they are made of
    recollect: Memory,
    works: Works,
    kept: Reminders,
    *,
    writer: Writer,
    running: Running,
    threads: Threads,
    model: LanguageModel,
    spending: Spending,
    web: Dashboard,
) -> list[Command]:
    """All of them; `works` has the database and the clock."""
    database, clock = works.database, works.clock
    noticed = Remembered(recollect, database, clock)
    listed = [
        newchat.command(database, clock, threads, works),
        chats.command(database),
        history.command(works),
        remember.command(recollect),
        forget.command(recollect, database),
        memory.command(noticed),
        keep.command(noticed),
        why.command(noticed),
        digest.command(noticed),
        team.command(noticed),
        link.command(recollect.linking),
        unlink.command(database),
        remind.command(kept),
        reminders.command(kept, works),
        draft.command(works, writer),
        instructions.command(works),
        persona.command(works),
        close.command(works),
        models.command(database, model),
        usage.command(spending),
        dashboard.command(database, clock, web),
        language.command(),
        timezone.command(works),
        stop.command(running),
    ]
    return [*help.commands(listed), *listed]


def awaited(database: Database, recollect: Memory, works: Works) -> Mapping[str, Handler]:
    """What a person's next message is for, after "Edit", "Rename" or "Change"."""
    return {
        "edit_fact": memory.edited(recollect),
        "edit_observation": memory.reworded(Remembered(recollect, database, works.clock)),
        "rename_chat": chats.renamed(database),
        "change_instructions": proposed(works),
    }


__all__ = ["awaited", "commands", "menu"]
