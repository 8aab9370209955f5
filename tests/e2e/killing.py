"""kill -9 at random points of a running conversation, and what is to be seen afterwards."""

import asyncio
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.merk_process import Merk, deployment

ADA = 42
OFFERS = {
    "this answer may not have reached you": "Show the answer",
    "I was interrupted several times": "Answer again",  # the program went down with it five times
}


@dataclass(frozen=True)
class Aftermath:
    """What the person finds after the last start; `missing` also after every offer was tapped."""

    said: int
    answered: int
    offered: int
    twice: tuple[str, ...]
    missing: tuple[str, ...]
    logged_in_order: bool
    answers_logged: int
    still_answers: bool
    violations: int

    @property
    def is_clean(self) -> bool:
        """Nothing lost, nothing twice, nothing stuck."""
        return (
            not self.twice
            and not self.missing
            and self.logged_in_order
            and self.answers_logged == self.said
            and self.said - self.answered <= self.offered
            and self.still_answers
            and not self.violations
        )


async def kill_at_random_points(folder: Path, kills: int, seed: int) -> Aftermath:
    """Talk, kill, start again, so many times; then let things settle and look."""
    chance = random.Random(seed)
    async with deployment(folder) as merk:
        merk.telegram.private_chat(ADA, "Ada", language="en")
        merk.model.fault("slow_chunks", times=None, seconds=0.02)
        said = 0
        for _ in range(kills):
            await merk.start()
            for _ in range(chance.randint(1, 3)):
                said += 1
                merk.telegram.say(ADA, f"m{said}")
                await asyncio.sleep(chance.uniform(0, 0.2))
            await asyncio.sleep(chance.uniform(0, 0.8))
            await merk.kill()
        await merk.start()
        return await _look(merk, [f"m{number}" for number in range(1, said + 1)])


async def _look(merk: Merk, said: list[str]) -> Aftermath:
    await _settle(merk, len(said))
    shown = _answers(merk)
    offers = [
        (message.id, button)
        for message in merk.telegram.messages(ADA, by_bot=True)
        for words, button in OFFERS.items()
        if words in message.text
    ]
    for message_id, button in offers:  # what was in flight at that instant is there, a tap away
        merk.telegram.press(ADA, message_id, button)
    await _settle(merk, len(said))
    after = _answers(merk)
    logged = [row[0] for row in merk.rows("SELECT text FROM messages WHERE role = 'user' ORDER BY id")]
    answers = merk.rows("SELECT count(*) FROM messages WHERE role = 'assistant'")[0][0]
    merk.telegram.say(ADA, "still there?")
    await merk.telegram.wait_text(ADA, "Echo: still there", timeout=20)
    return Aftermath(
        said=len(said),
        answered=sum(1 for text in said if shown[text]),
        offered=len(offers),
        twice=tuple(text for text, count in shown.items() if count > 1),
        missing=tuple(text for text in said if not after[text]),
        logged_in_order=logged == said,
        answers_logged=answers,
        still_answers=True,
        violations=len(merk.telegram.violations),
    )


def _answers(merk: Merk) -> Counter[str]:
    """How often each message's answer can be seen."""
    shown = Counter[str]()
    for message in merk.telegram.messages(ADA, by_bot=True):
        shown.update(re.findall(r"^Echo: (m\d+)$", message.text))
    return shown


async def _settle(merk: Merk, said: int) -> None:
    """A private chat takes a message a second, so a long backlog takes its time."""
    await merk.settle(timeout=120 + 2 * said)
    await asyncio.sleep(0.2)
