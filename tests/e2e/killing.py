"""kill -9 at random points of a running conversation, and what is to be seen afterwards; on any network."""

import asyncio
import random
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
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


class Conversation(ABC):
    """One person who talks to one Merk, and goes on whatever happens to it."""

    merk: Merk
    early = 0.0
    """How many of the starts are cut off before they have come to their end, as a share."""

    @abstractmethod
    async def say(self, text: str) -> None:
        """Returns when the network has it."""

    @abstractmethod
    async def shown(self) -> list[str]:
        """What of Merk's the person can see now, a text a message."""

    @abstractmethod
    async def take_offers(self) -> int:
        """Tap what `OFFERS` tells of; returns how many there were."""

    @abstractmethod
    async def settle(self, said: int) -> None:
        """Wait until so many messages are done with and everything that is to be shown is shown."""

    @abstractmethod
    def violations(self) -> int:
        """What Merk did that the network does not allow, or that the person's client could not read."""


async def kill_at_random_points(talk: Conversation, kills: int, seed: int) -> Aftermath:
    """Talk, kill, start again, so many times; then let things settle and look."""
    chance = random.Random(seed)
    talk.merk.model.fault("slow_chunks", times=None, seconds=0.02)
    said = 0
    for _ in range(kills):
        is_early = talk.early > 0 and chance.random() < talk.early
        await talk.merk.start(wait=not is_early)
        for _ in range(chance.randint(1, 3)):
            said += 1
            await talk.say(f"m{said}")
            await asyncio.sleep(chance.uniform(0, 0.2))
        await asyncio.sleep(chance.uniform(0, 3 if is_early else 0.8))
        await talk.merk.kill()
    await talk.merk.start()
    return await _look(talk, [f"m{number}" for number in range(1, said + 1)])


async def _look(talk: Conversation, said: list[str]) -> Aftermath:
    await talk.settle(len(said))
    shown = _answers(await talk.shown())
    offered = await talk.take_offers()  # what was in flight at that instant is there, a tap away
    await talk.settle(len(said))
    after = _answers(await talk.shown())
    logged = [row[0] for row in talk.merk.rows("SELECT text FROM messages WHERE role = 'user' ORDER BY id")]
    answers = talk.merk.rows("SELECT count(*) FROM messages WHERE role = 'assistant'")[0][0]
    await talk.say("still there?")
    async with asyncio.timeout(20):
        while "Echo: still there?" not in await talk.shown():  # noqa: ASYNC110 - networks set no event
            await asyncio.sleep(0.1)
    return Aftermath(
        said=len(said),
        answered=sum(1 for text in said if shown[text]),
        offered=offered,
        twice=tuple(text for text, count in shown.items() if count > 1),
        missing=tuple(text for text in said if not after[text]),
        logged_in_order=logged == said,
        answers_logged=answers,
        still_answers=True,
        violations=talk.violations(),
    )


def _answers(shown: Iterable[str]) -> Counter[str]:
    """How often each message's answer can be seen."""
    return Counter(found for text in shown for found in re.findall(r"^Echo: (m\d+)$", text))


class OnTelegram(Conversation):
    def __init__(self, merk: Merk) -> None:
        self.merk = merk
        merk.telegram.private_chat(ADA, "Ada", language="en")

    async def say(self, text: str) -> None:
        self.merk.telegram.say(ADA, text)

    async def shown(self) -> list[str]:
        return [message.text for message in self.merk.telegram.messages(ADA, by_bot=True)]

    async def take_offers(self) -> int:
        offers = [
            (message.id, button)
            for message in self.merk.telegram.messages(ADA, by_bot=True)
            for words, button in OFFERS.items()
            if words in message.text
        ]
        for message_id, button in offers:
            self.merk.telegram.press(ADA, message_id, button)
        return len(offers)

    async def settle(self, said: int) -> None:
        """A private chat takes a message a second, so a long backlog takes its time."""
        await self.merk.settle(timeout=120 + 2 * said)
        await asyncio.sleep(0.2)

    def violations(self) -> int:
        return len(self.merk.telegram.violations)


@asynccontextmanager
async def on_telegram(folder: Path) -> AsyncGenerator[Conversation, None]:
    """A private chat with a Merk that is not started yet."""
    fast = {"MERK_BUDGET__MESSAGES_PER_MINUTE": "1000"}  # many kills are more than a person says in a minute
    async with deployment(folder, more=fast) as merk:
        yield OnTelegram(merk)
