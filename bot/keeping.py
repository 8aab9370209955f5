"""What an owner does with people's data: let somebody in, hand over, erase, rebuild."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.app import make_memory, open_database
from bot.config import Settings
from bot.errors import CommandError
from bot.lock import own
from bot.models.none import NoModel
from bot.providers import Chosen, choose_embedder
from bot.transports.posting import Context, post
from handlers.facts import receipt_lines
from handlers.locales import phrases
from handlers.types import Notice, Place
from memory.instants import SystemClock, to_ms
from memory.memory import Memory
from memory.storage import people
from memory.storage.database import Database
from memory.types import Role, User


async def approve(settings: Settings, code: str) -> User:
    """Let in the stranger who showed this code, and tell them. Works beside a running Merk."""
    clock = SystemClock()
    database = await open_database(settings, clock)
    now = to_ms(clock.now())
    try:
        async with database.write() as connection:
            pairing = await people.take_pairing(connection, code.strip().upper(), now)
            if pairing is None:
                raise CommandError(f"Nobody holds the code {code}. Codes hold for an hour; ask for a new one.")
            user = await people.admit(connection, pairing.identity, pairing.name, Role.MEMBER, pairing.language, now)
            welcome = Notice(phrases(pairing.language)("welcome", name=pairing.name))
            await post(connection, Context(Place(**pairing.place), user.id, None, None), [welcome], now)
    finally:
        await database.close()
    return user


async def export(settings: Settings, identity: str, target: Path) -> tuple[Path, Path]:
    """Write everything of one person, for machines (JSON) and for people (Markdown). Works beside a running Merk."""
    async with _memory(settings) as (database, memory):
        data = await memory.export(await _user_id(database, identity))
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    as_json, as_markdown = target / "merk-export.json", target / "merk-export.md"
    as_json.write_text(json.dumps(data, ensure_ascii=False, indent=2), encoding="utf-8")
    as_markdown.write_text(to_markdown(data), encoding="utf-8")
    return as_json, as_markdown


async def erase(settings: Settings, identity: str | None) -> str:
    """Erase a person, or every chat (None), for good; return the receipt. Raises `LockedError`."""
    with own(settings.tenant.data_dir, "erase"):
        async with _memory(settings) as (database, memory):
            await memory.open()
            if identity is None:
                receipts = [await memory.erase_history(user_id) for user_id in await _everybody(database)]
            else:
                receipts = [await memory.erase_user(await _user_id(database, identity))]
    say = phrases(settings.tenant.language)
    return "\n".join(receipt_lines(say, receipt) for receipt in receipts) or say("receipt-nothing")


async def reindex(settings: Settings) -> int:
    """Make every index anew from SQL; return how many summaries are in it. Raises `LockedError`."""
    with own(settings.tenant.data_dir, "reindex"):
        async with _memory(settings) as (_database, memory):
            await memory.open()
            return await memory.reindex()


@asynccontextmanager
async def _memory(settings: Settings) -> AsyncGenerator[tuple[Database, Memory], None]:
    clock = SystemClock()
    database = await open_database(settings, clock)
    nobody = Chosen(NoModel("not needed here"), "", "none")
    memory = make_memory(settings, clock, database, nobody, await choose_embedder(settings))
    try:
        yield database, memory
    finally:
        await memory.close()
        await database.close()


async def _everybody(database: Database) -> list[int]:
    async with database.read() as connection:
        return await people.ids(connection)


async def _user_id(database: Database, identity: str) -> int:
    async with database.read() as connection:
        user = await people.find(connection, identity)
    if user is None:
        raise CommandError(f"Nobody is known as {identity}. It must look like telegram:42.")
    return user.id


def to_markdown(data: dict[str, Any]) -> str:
    lines = [f"# {data['user']['name']}", "", "## Facts", ""]
    lines += [f"- {fact['text']}" for fact in data["facts"]] or ["(none)"]
    for session in data["sessions"]:
        lines += ["", f"## {session['title'] or 'Chat'} ({session['created_at']})", ""]
        if session.get("summary"):
            lines += [f"> {session['summary']['text']}", ""]
        for message in session["messages"]:
            lines += [f"**{message['speaker']}** · {message['created_at']}", "", message["text"], ""]
    return "\n".join(lines) + "\n"
