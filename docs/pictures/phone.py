"""Talking to a running Merk on the emulated Telegram, and what the phone shows meanwhile, moment beside moment."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.e2e.merk_process import Merk
from tests.fakes.bot_api import render_svg

ADA = 42
WIDTH, GAP = 360, 20
FIRST_TIME = datetime(2026, 1, 10, 9, 41, tzinfo=UTC).timestamp()
"""Clock times are set, so that a picture changes only when the conversation does."""


async def say(merk: Merk, text: str, answer: str) -> None:
    """Write a message and wait until `answer` and everything else of it is there."""
    merk.telegram.say(ADA, text)
    await _settled(merk, answer)


async def press(merk: Merk, label: str, answer: str) -> None:
    """Press the newest button with this label."""
    telegram = merk.telegram
    card = next(each for each in reversed(telegram.messages(ADA, by_bot=True)) if label in each.labels)
    telegram.press(ADA, card.id, label)
    await _settled(merk, answer)


async def _settled(merk: Merk, answer: str) -> None:
    await merk.telegram.wait_text(ADA, answer, timeout=30)
    while merk.rows("SELECT 1 FROM outbox WHERE status <> 'sent'"):  # noqa: ASYNC110 - rows set no event
        await asyncio.sleep(0.05)


def screen(merk: Merk, since: str = "") -> str:
    """The chat as it looks now, scrolled to the first message that says `since`."""
    world = merk.telegram.world
    everything = world.messages
    first = next(message.id for message in merk.telegram.messages(ADA) if since in message.text)
    oldest = min(message.id for message in everything.values())
    world.messages = {
        key: replace(message, raw=_dated(message.raw, int(FIRST_TIME) + 60 * ((message.id - oldest) // 2)))
        for key, message in everything.items()
        if message.id >= first
    }
    try:
        return render_svg(merk.telegram, ADA, "Merk", WIDTH)
    finally:
        world.messages = everything


def _dated(raw: dict[str, Any], at: int) -> dict[str, Any]:
    """A copy: what is older than two days could not be deleted any more."""
    return raw | {name: at for name in ("date", "edit_date") if name in raw}


def check_servers(merk: Merk) -> None:
    """Raise RuntimeError where a picture would show something that the servers refuse."""
    if problems := [*merk.telegram.violations, *merk.model.violations]:
        raise RuntimeError(f"the picture would show something that the servers refuse: {problems}")


def side_by_side(screens: Sequence[str]) -> str:
    """One SVG of several screens."""
    heights = [int(match[1]) for screen in screens if (match := re.search(r'height="(\d+)"', screen))]
    width, height = len(screens) * (WIDTH + GAP) - GAP, max(heights)
    placed = [
        # ids belong to the whole file: one of each a screen
        re.sub(r'(id="|url\(#)', rf"\g<1>s{number}-", screen).replace("<svg ", f'<svg x="{number * (WIDTH + GAP)}" ', 1)
        for number, screen in enumerate(screens)
    ]
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *placed, "</svg>", ""])
