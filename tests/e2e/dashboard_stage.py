"""A dashboard with a month behind it, served on loopback, and a browser that looks at it."""

import random
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, async_playwright

from bot.config import Web
from bot.web.inside import Inside
from bot.web.server import WebServer
from handlers.locales import phrases
from memory import telemetry
from memory.instants import to_ms
from memory.kinds.observations.observation import Type
from memory.scope import Audience
from memory.storage import people, sessions
from memory.storage.database import Database
from memory.types import Role
from tests.fakes.house import House, house
from tests.fakes.model import call
from tests.fakes.website import Website, website

CHROMIUM = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
_QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
OWNER = "Ada"
_FRIENDS = ("Bo", "Chioma")
_TOLD = (
    "My sister Lena lives in Porto.",
    "I am allergic to hazelnuts.",
    "Our landlord is Mr Okafor; he prefers letters.",
    "The bicycle is at the repair shop in Hafenstraße.",
)


@dataclass(slots=True)
class Stage:
    house: House
    site: Website
    address: str

    async def speak(self, language: str) -> None:
        await self.house.say("/language", name=OWNER)
        await self.house.press(phrases(language)("language-name"), name=OWNER)

    async def link(self) -> str:
        """What /dashboard sends, for the address under which the stage is served."""
        return f"{self.address}/login?key={(await self.site.link(name=OWNER)).partition('key=')[2]}"


@asynccontextmanager
async def stage(database: Database, folder: Path, *, is_full: bool = True) -> AsyncGenerator[Stage, None]:
    web = Web(enabled=True, listen="127.0.0.1:0")
    script = (
        "Noted, I will think of it.",
        call("search_memory", query="sister Porto"),
        "Lena lives in Porto. A night train from Paris and a bus from Irun get you there in a day.",
    )
    async with house(database, folder, *(script if is_full else ()), owners=["fake:42"], web=web) as opened:
        async with database.write() as connection:
            await people.admit(connection, "fake:42", OWNER, Role.OWNER, "en", 0)
        if is_full:
            await live(opened)
        inside = Inside(opened.app.settings, database, opened.clock, opened.memory, opened.app.transports, "scripted")
        server = WebServer(inside)
        await server.start()
        try:
            async with website(opened) as site:
                yield Stage(opened, site, f"http://127.0.0.1:{server.port}")
        finally:
            await server.stop()


async def live(opened: House) -> None:
    """A month: figures of three people, and what the owner told, asked and judged."""
    await _month(opened)
    for told in _TOLD:
        await opened.say(f"/remember {told}", name=OWNER)
    await opened.say("I am thinking about a trip to my sister in May.", name=OWNER)
    opened.clock.advance(minutes=3)
    await opened.say("How do I get to my sister without flying?", name=OWNER)
    await _notice(opened)


async def _notice(opened: House) -> None:
    seen, ada = opened.memory.observations, Audience(1, 1, is_private=True)
    await seen.keep(ada, 1)
    noticed: list[int] = []
    for number, (kind, title, more, value) in enumerate(
        (
            (Type.PREFERENCE, "Prefers trains to planes", "For journeys within Europe.", "car"),
            (Type.PREFERENCE, "Prefers night trains to planes", "For journeys within Europe.", "night train"),
            (Type.DECISION, "The kitchen is painted in May", "Sage green, before Lena's visit.", ""),
        )
    ):
        slot: dict[str, Any] = {"subject": "person:1", "attribute": "travel", "value": value} if value else {}
        found = await seen.note_event(
            ada.owner, hook="stage", event_id=str(number), title=title, narrative=more, type=kind, user_id=1, **slot
        )
        noticed.append(found or 0)
    last = noticed[-1]
    await seen.used(ada, noticed, "retrieved")
    await seen.used(ada, [last], "cited")
    await seen.confirm(ada, last)


async def _month(opened: House) -> None:
    chance = random.Random(5)
    now = opened.clock.now()
    async with opened.database.write() as connection:
        ids = [1]
        for number, name in enumerate(_FRIENDS, 2):
            user = await people.admit(connection, f"fake:{number}", name, Role.MEMBER, "en", 0)
            ids.append(user.id)
        for user_id in ids:
            chat = await sessions.ensure_chat(connection, "fake", str(user_id), kind="ai", title="", now=0)
            await sessions.start(connection, Audience(user_id, chat, is_private=True), "", now=0)
        for at in _times(now, chance):
            who = chance.choices(ids, (5, 2, 1))[0]
            await telemetry.record_all(connection, _happened(chance, who), to_ms(at))


def _times(now: datetime, chance: random.Random) -> list[datetime]:
    """More by day than by night, and some of it today."""
    days = [now - timedelta(days=chance.random() * 30) for _ in range(420)]
    days += [now - timedelta(hours=chance.random() * 24) for _ in range(70)]
    days += [now - timedelta(minutes=chance.random() * 60) for _ in range(9)]
    return sorted(at for at in days if at.hour >= 6 or chance.random() < 0.2)


def _happened(chance: random.Random, who: int) -> list[telemetry.Event]:
    of = {"user_id": who, "session_id": who}
    found: list[telemetry.Event] = [
        telemetry.TurnCompleted(
            **of,
            model="claude-sonnet",
            outcome="answered",
            tokens_in=chance.randint(200, 900),
            tokens_out=chance.randint(80, 700),
            tokens_cache_read=chance.randint(1500, 6000),
            tokens_cache_write=chance.randint(0, 800),
            cost_nano_usd=chance.randint(2, 30) * 10**6,
            duration_ms=chance.randint(1800, 9000),
            first_token_ms=chance.randint(400, 1600),
            recall_hits=chance.randint(0, 3),
            tool_calls=1,
        )
    ]
    if chance.random() < 0.4:
        tool = chance.choice(["draft", "search_memory", "search_memory", "remember_fact", "set_reminder"])
        ran = chance.randint(4, 900)
        found.append(telemetry.ToolUsed(**of, tool_name=tool, duration_ms=ran, success=chance.random() < 0.94))
    if chance.random() < 0.03:
        found.append(telemetry.TurnFailed(**of, failure="rate"))
        found.append(telemetry.TransportFault(transport="fake", fault="unreachable"))
    return found


@asynccontextmanager
async def browser() -> AsyncGenerator[Browser, None]:
    assert CHROMIUM is not None
    async with async_playwright() as driver:
        opened = await driver.chromium.launch(executable_path=CHROMIUM, args=_QUIET)
        try:
            yield opened
        finally:
            await opened.close()
