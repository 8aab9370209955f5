"""`merk recall`: what memory would find for a question, and why. For the person who runs Merk."""

from datetime import UTC
from typing import Any

import sqlalchemy as sa

from bot.admin.keeping import beside
from bot.app import make_memory
from bot.config import Settings
from bot.errors import CommandError
from bot.models.none import NoModel
from bot.providers import Chosen, choose_embedder
from memory.instants import SystemClock
from memory.scope import Audience
from memory.storage.tables import identities
from memory.types import Recall


async def recall(settings: Settings, identity: str, question: str, *, explain: bool) -> str:
    """The recall of this person in a private chat, as lines. Works beside a running Merk, whose vectors of summaries
    and observations it then does without. Raises CommandError for somebody unknown.
    """
    async with beside(settings) as database:
        async with database.read() as connection:
            query = sa.select(identities.c.user_id).where(identities.c.key == identity)
            user_id = (await connection.execute(query)).scalar_one_or_none()
        if user_id is None:
            raise CommandError(f"There is nobody {identity} here. Name somebody as transport:id, like telegram:42.")
        nobody = Chosen(NoModel("not needed here"), "", "none")
        memory = make_memory(settings, SystemClock(), database, nobody, await choose_embedder(settings))
        try:
            await memory.look()
            found = await memory.recall(Audience(user_id, 0, is_private=True), 0, question)
        finally:
            await memory.close()
    return "\n".join([*_found(found), *(_why(found) if explain else [])])


def _found(found: Recall) -> list[str]:
    lines = [f"{len(found.facts)} facts, {len(found.recollections)} earlier chats"]
    for each in found.recollections:
        lines.append(f"\n{each.at.astimezone(UTC):%Y-%m-%d}  {each.title or 'untitled'}  ({each.reason})")
        lines += [f"  {each.text}"] if each.text else []
        lines += [f"  [m{line.message_id}] {line.speaker}: {line.text}" for line in each.lines]
    lines += [f"\n[o{each.id}] {each.text}  ({each.reason})" for each in found.observations]
    return lines


def _why(found: Recall) -> list[str]:
    trace: dict[str, Any] = found.trace
    lines = [
        "",
        f"floor {trace.get('floor')}, milliseconds {trace.get('ms')}",
        f"not available: {', '.join(found.degraded) or 'nothing'}",
        "message  chat  score  views",
    ]
    for each in trace.get("candidates", ()):
        views = "  ".join(f"{name} {value:.2f}" for name, value in each["views"].items() if value)
        lines.append(f"m{each['message']:<7} {each['session']:<5} {each['score']:<6.2f} {views}")
    return lines
