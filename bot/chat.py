"""`merk chat`: the terminal as a transport, in this process, with everything behind it."""

import asyncio
import os
import signal
import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from bot import logs
from bot.app import App, make_memory, open_database
from bot.config import Settings
from bot.lock import own
from bot.providers import choose_embedder, choose_model, with_fallbacks
from bot.transports.terminal import TerminalTransport
from handlers.access import LOCAL
from memory.instants import SystemClock
from memory.storage import log, people
from memory.storage.database import Database

HISTORY = 200


async def chat(settings: Settings, *, as_json: bool) -> None:
    """Talk until the person leaves. Raises `ConfigError` and `LockedError`."""
    console = Console(stderr=True, highlight=False)
    clock = SystemClock()
    with own(settings.tenant.data_dir, "chat"):
        logs.configure(level=os.environ.get("MERK_LOG", "WARNING"), file=settings.tenant.data_dir / "logs" / "chat.log")
        database = await open_database(settings, clock)
        with _Download(console) as download:
            chosen = await choose_model(settings, download)
            chosen = await with_fallbacks(settings, chosen, download)
        memory = make_memory(settings, clock, database, chosen, await choose_embedder(settings))
        console.print(chosen.said, style="dim", soft_wrap=True)
        transport = TerminalTransport(
            json=as_json,
            is_tty=sys.stdin.isatty() and not as_json,
            language=_language(settings.tenant.language),
            history=await _history(database),
        )
        app = App(settings, database, memory, chosen, [transport], clock)
        await app.start()
        try:
            loop = asyncio.get_running_loop()
            for name in (signal.SIGTERM, signal.SIGHUP):  # or the terminal stays raw
                loop.add_signal_handler(name, lambda: asyncio.ensure_future(transport.stop_receiving()))
            names = [command.name for command in app.commands]
            await transport.run(settled=app.settled, delivered=app.delivered, command_names=names)
        finally:
            await app.stop()
            await memory.close()
            await chosen.model.close()
            await database.close()


def _language(default: str) -> str:
    """As the shell says: LC_ALL, LC_MESSAGES, LANG."""
    named = next((value for key in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(key))), "")
    short = named.split(".")[0].split("_")[0]
    return default if short in ("", "C", "POSIX") else short


async def _history(database: Database) -> list[str]:
    """What this person wrote before, for the arrow keys: from the log, so that what is forgotten is gone here too."""
    async with database.read() as connection:
        user = await people.find(connection, LOCAL)
        return await log.said_by(connection, user.id, HISTORY) if user else []


class _Download:
    """A progress bar that appears with the first byte."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=console)
        self._task = None

    def __call__(self, done: int, total: int) -> None:
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task("Taking the built-in model (once)", total=total or None)
        self._progress.update(self._task, completed=done, total=total or None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._progress.stop()
