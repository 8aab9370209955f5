"""A conversation on Telegram, from the emulator's state: told in one chat, known in the next, forgotten in it."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

from docs.pictures.script import rehearse
from tests.e2e.merk_process import Merk, deployment
from tests.fakes.bot_api import Message, render_svg

ADA = 42
CHATS = 2  # that are summarised before something is forgotten, so that the receipt is always the same
WIDTH, GAP = 360, 20
FIRST_TIME = datetime(2026, 1, 10, 9, 41, tzinfo=UTC).timestamp()
"""Clock times are set, so that a picture changes only when the conversation does."""


async def draw_telegram(folder: Path) -> str:
    """Return an SVG of three moments, side by side."""
    async with deployment(folder) as merk:
        rehearse(merk.model)
        merk.telegram.private_chat(ADA, "Ada")
        await merk.start()
        screens = [await _tell_and_use(merk), await _ask_to_forget(merk), await _confirm(merk)]
        await merk.stop()
        problems = [*merk.telegram.violations, *merk.model.violations]
    if problems:
        raise RuntimeError(f"the picture would show something that the servers refuse: {problems}")
    return _side_by_side(screens)


async def _tell_and_use(merk: Merk) -> str:
    await _say(merk, "Remember that my dog is called Bruno.", "Saved")
    await _say(merk, "/newchat", "new chat begins")
    await _say(merk, "We go camping on Saturday. What shall I pack for the dog?", "For you")
    return _screen(merk)


async def _ask_to_forget(merk: Merk) -> str:
    await merk.telegram.wait_for(
        lambda: len(merk.rows("SELECT 1 FROM summaries WHERE indexed_as IS NOT NULL")) == CHATS, timeout=60
    )
    await _say(merk, "Forget that my dog is called Bruno.", "for good")
    return _screen(merk, since="We go camping")


async def _confirm(merk: Merk) -> str:
    telegram = merk.telegram
    telegram.press(ADA, telegram.last(ADA).id, "Yes, forget")
    await telegram.wait_text(ADA, "Forgotten", timeout=20)
    await _say(merk, "What is my dog called?", "I do not know")
    await _say(merk, "/memory", "I keep nothing")
    if found := merk.rows("SELECT text FROM messages WHERE text LIKE ?", "%Bruno%"):
        raise RuntimeError(f"the picture would lie, the log still says {found}")
    return _screen(merk, since="Forget that")


async def _say(merk: Merk, text: str, answer: str) -> None:
    merk.telegram.say(ADA, text)
    await merk.telegram.wait_text(ADA, answer, timeout=30)
    while merk.rows("SELECT 1 FROM outbox WHERE status <> 'sent'"):  # noqa: ASYNC110 - rows set no event
        await asyncio.sleep(0.05)


def _screen(merk: Merk, since: str = "") -> str:
    """The chat as it looks now, scrolled to the first message that says `since`."""
    world = merk.telegram.world
    everything = world.messages
    for count, message in enumerate(everything.values()):
        message.raw["date"] = int(FIRST_TIME) + 60 * (count // 2)
        if "edit_date" in message.raw:
            message.raw["edit_date"] = message.raw["date"]
    world.messages = {key: message for key, message in everything.items() if message.id >= _first(merk, since)}
    try:
        return render_svg(merk.telegram, ADA, "Merk", WIDTH)
    finally:
        world.messages = everything


def _first(merk: Merk, since: str) -> int:
    def says_it(message: Message) -> bool:
        return since in message.text

    return next(message.id for message in merk.telegram.messages(ADA) if says_it(message))


def _side_by_side(screens: list[str]) -> str:
    heights = [int(match[1]) for screen in screens if (match := re.search(r'height="(\d+)"', screen))]
    width, height = len(screens) * (WIDTH + GAP) - GAP, max(heights)
    placed = [
        # ids belong to the whole file: one of each a screen
        re.sub(r'(id="|url\(#)', rf"\g<1>s{number}-", screen).replace("<svg ", f'<svg x="{number * (WIDTH + GAP)}" ', 1)
        for number, screen in enumerate(screens)
    ]
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *placed, "</svg>", ""])
