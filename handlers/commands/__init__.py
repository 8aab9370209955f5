"""What people type: one file a command, listed once."""

from collections.abc import Mapping

from handlers.commands import chats, forget, help, language, memory, newchat, remember, stop
from handlers.locales import phrases
from handlers.running import Running
from handlers.types import Command, Handler, Threads
from memory.memory import Memory
from memory.ports import Clock
from memory.storage.database import Database

MENU = ("newchat", "chats", "remember", "forget", "memory", "language", "stop", "help")
"""The commands that clients show, in this order."""


def menu(language: str) -> list[tuple[str, str]]:
    """Name and description of each command that clients show."""
    say = phrases(language)
    return [(name, say(f"command-{name}")) for name in MENU]


def commands(database: Database, clock: Clock, recollect: Memory, running: Running, threads: Threads) -> list[Command]:
    listed = [
        newchat.command(database, clock, threads),
        chats.command(database),
        remember.command(recollect),
        forget.command(recollect),
        memory.command(recollect),
        language.command(),
        stop.command(running),
    ]
    return [*help.commands(listed), *listed]


def awaited(database: Database, recollect: Memory) -> Mapping[str, Handler]:
    """What a person's next message is for, after "Edit" or "Rename"."""
    return {"edit_fact": memory.edited(recollect), "rename_chat": chats.renamed(database)}


__all__ = ["awaited", "commands", "menu"]
