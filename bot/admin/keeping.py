"""What an owner does with people's data: let somebody in, hand over, erase, rebuild."""

import json
import os
import re
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from bot.app import ages, database_path, make_memory, open_database
from bot.config import ConfigError, Settings
from bot.embedders.builtin import UseEmbedder
from bot.errors import CommandError
from bot.lock import LockedError, own
from bot.models.none import NoModel
from bot.providers import Chosen, choose_embedder
from bot.transports.posting import Context, post
from handlers.locales import phrases
from handlers.remembering.facts import receipt_lines
from handlers.types import Notice, Place
from memory.instants import SystemClock, to_ms
from memory.memory import Memory
from memory.ports import Embedder, EmbedderError
from memory.retention import Counts
from memory.storage import people
from memory.storage.database import Database
from memory.storage.migrate import HEAD
from memory.types import Receipt, Role, User

Agree = Callable[[str], bool]
"""Asks the person at the terminal."""
Progress = Callable[[int, int], None]
"""(done, total)"""


async def approve(settings: Settings, code: str) -> User:
    """Let in the stranger who showed this code, and tell them. Works beside a running Merk."""
    async with beside(settings) as database:
        now = to_ms(SystemClock().now())
        async with database.write() as connection:
            pairing = await people.take_pairing(connection, code.strip().upper(), now)
            if pairing is None:
                raise CommandError(f"Nobody holds the code {code}. Codes hold for an hour; ask for a new one.")
            user = await people.admit(connection, pairing.identity, pairing.name, Role.MEMBER, pairing.language, now)
            welcome = Notice(phrases(pairing.language)("welcome", name=pairing.name))
            await post(connection, Context(Place(**pairing.place), user.id, None, None), [welcome], now)
    return user


async def export(settings: Settings, identity: str, target: Path) -> tuple[Path, Path]:
    """Write everything of one person, for machines (JSON) and for people (Markdown). Works beside a running Merk."""
    async with beside(settings) as database, memory_of(settings, database, UseEmbedder()) as memory:
        data = await memory.export(await _user_id(database, identity))
    name = "merk-export-" + re.sub(r"[^A-Za-z0-9.-]+", "-", identity)
    as_json, as_markdown = target / f"{name}.json", target / f"{name}.md"
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(as_json, json.dumps(data, ensure_ascii=False, indent=2) + "\n")
        _write(as_markdown, to_markdown(data))
    except OSError as error:
        raise CommandError(f"{target} cannot be written ({error.strerror}). Name another folder with --to.") from error
    return as_json, as_markdown


async def retain(settings: Settings, *, dry_run: bool) -> Counts:
    """Delete what is too old; or count it, beside a running Merk. Raises `LockedError`."""
    if dry_run:
        async with beside(settings) as database, memory_of(settings, database, UseEmbedder()) as memory:
            return await memory.retention(ages(settings)).count()
    with own(settings.tenant.data_dir, "retention"):
        async with alone(settings) as database:
            embedder = await embedder_or_none(settings)
            async with memory_of(settings, database, embedder) as memory:
                await memory.open()
                counts = await memory.retention(ages(settings)).run(settings.tenant.timezone)
                await memory.finish_forgetting()
    return counts


async def erase(settings: Settings, identity: str | None, agree: Agree) -> tuple[str, bool]:
    """Erase a person, or every chat (None), for good; return the receipt and whether all is done.

    Raises `LockedError`, and `CommandError` where there is no such person or the answer is no.
    """
    with own(settings.tenant.data_dir, "erase"):
        async with alone(settings) as database:
            whose = await _everybody(database) if identity is None else [await _user_id(database, identity)]
            if not agree(f"Erase {'every chat of everybody' if identity is None else f'all of {identity}'} for good?"):
                raise CommandError("Nothing was erased.")
            async with memory_of(settings, database, await embedder_or_none(settings)) as memory:
                await memory.open()
                one = memory.erase_history if identity is None else memory.erase_user
                receipt = sum_up([await one(user_id) for user_id in whose])
    return receipt_lines(phrases(settings.tenant.language), receipt), not receipt.unfinished


async def reindex(settings: Settings, progress: Progress | None = None) -> int:
    """Make every index anew from SQL; return how many summaries are in it. Raises `LockedError`."""
    with own(settings.tenant.data_dir, "reindex"):
        async with (
            alone(settings) as database,
            memory_of(settings, database, await choose_embedder(settings)) as memory,
        ):
            await memory.open()
            try:
                return await memory.reindex(progress)
            except (OSError, EmbedderError) as error:
                raise CommandError(f"The index could not be made ({error}). See `merk doctor`, then repeat.") from error


@asynccontextmanager
async def alone(settings: Settings) -> AsyncGenerator[Database, None]:
    """The database, for a command that owns the data directory."""
    _check_there(settings)
    database = await open_database(settings, SystemClock())
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def beside(settings: Settings) -> AsyncGenerator[Database, None]:
    """The database, beside whoever owns it; its schema is changed only where nobody does."""
    path = _check_there(settings)
    if not _is_current(path):
        try:
            with own(settings.tenant.data_dir, "upgrade"):
                await (await open_database(settings, SystemClock())).close()
        except LockedError as error:
            raise CommandError(f"{error} It is another version of Merk than this command: restart it.") from error
    database = Database.at(path)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def memory_of(settings: Settings, database: Database, embedder: Embedder) -> AsyncGenerator[Memory, None]:
    nobody = Chosen(NoModel("not needed here"), "", "none")
    memory = make_memory(settings, SystemClock(), database, nobody, embedder)
    try:
        yield memory
    finally:
        await memory.close()


async def embedder_or_none(settings: Settings) -> Embedder:
    """Name the index that is in use. Where its embedder does not answer, the index goes as a whole, to be made anew."""
    try:
        return await choose_embedder(settings)
    except ConfigError:
        if (index := settings.tenant.data_dir / "chroma").exists():
            shutil.rmtree(index)
        return UseEmbedder()


def _check_there(settings: Settings) -> Path:
    path = database_path(settings)
    if not path.is_file():
        raise CommandError(
            f"There is no database {path} yet; the first `merk chat` or `merk run` makes it. Is tenant.data_dir right?"
        )
    return path


def _is_current(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as opened:
            return opened.execute("SELECT version_num FROM alembic_version").fetchone() == (HEAD,)
    except sqlite3.Error as error:
        raise CommandError(f"{path} cannot be read ({error}). See `merk doctor`.") from error


async def _everybody(database: Database) -> list[int]:
    async with database.read() as connection:
        return await people.ids(connection)


async def _user_id(database: Database, identity: str) -> int:
    async with database.read() as connection:
        user = await people.find(connection, identity)
    if user is None:
        raise CommandError(f"Nobody is known as {identity}. It must look like telegram:42 or terminal:local.")
    return user.id


def sum_up(receipts: Iterable[Receipt]) -> Receipt:
    whole = Receipt()
    for each in receipts:
        whole = Receipt(
            facts=whole.facts + each.facts,
            messages_redacted=whole.messages_redacted + each.messages_redacted,
            summaries=whole.summaries + each.summaries,
            summaries_anew=whole.summaries_anew + each.summaries_anew,
            vectors=whole.vectors + each.vectors,
            pending=whole.pending + each.pending,
            backups=each.backups,
            unfinished=tuple(dict.fromkeys((*whole.unfinished, *each.unfinished))),
        )
    return whole


def _write(path: Path, text: str) -> None:
    """For its owner's eyes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text)


def to_markdown(data: dict[str, Any]) -> str:
    lines = [f"# {data['user']['name']}", "", ", ".join(data["identities"]), "", "## Facts", ""]
    for fact in data["facts"]:
        until = f" (until {fact['valid_to']})" if fact["valid_to"] else ""
        lines.append(f"- {fact['text']}{until}")
    for session in data["sessions"]:
        lines += ["", f"## {session['title'] or 'Chat'} ({session['created_at']})", ""]
        if session["summary"]:
            lines += [f"> {session['summary']['text']}", ""]
        for message in session["messages"]:
            note = " · working output" if message["is_ephemeral"] else ""
            lines += [f"**{message['speaker']}** · {message['created_at']}{note}", "", message["text"], ""]
    return "\n".join(lines).rstrip() + "\n"
