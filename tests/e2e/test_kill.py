"""kill -9 in the middle of a conversation: nothing lost, nothing answered twice, nothing stuck."""

import asyncio
import os
import random
import re
from collections import Counter
from pathlib import Path

from tests.e2e.merk_process import Merk, deployment

ADA = 42
OFFERS = {
    "this answer may not have reached you": "Show the answer",
    "I was interrupted several times": "Answer again",  # the program went down with it five times
}
KILLS = int(os.environ.get("MERK_KILLS", "8"))
SEED = int(os.environ.get("MERK_KILL_SEED", "20261130"))


def answered(merk: Merk) -> Counter[str]:
    """How often each message's answer can be seen."""
    shown = Counter[str]()
    for message in merk.telegram.messages(ADA, by_bot=True):
        shown.update(re.findall(r"^Echo: (m\d+)$", message.text))
    return shown


async def settled(merk: Merk) -> None:
    def nothing_open() -> bool:
        inbox = merk.rows("SELECT 1 FROM inbox WHERE status <> 'done'")
        outbox = merk.rows("SELECT 1 FROM outbox WHERE status NOT IN ('sent', 'unknown', 'failed')")
        return not inbox and not outbox and not merk.telegram.pending()

    await merk.telegram.wait_for(nothing_open, timeout=60)
    await asyncio.sleep(0.2)


async def test_p57_kill_9_at_random_points_loses_nothing_and_answers_nothing_twice(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada", language="en")
        merk.model.fault("slow_chunks", times=None, seconds=0.02)
        said = 0
        for _ in range(KILLS):
            await merk.start()
            for _ in range(chance.randint(1, 3)):
                said += 1
                merk.telegram.say(ADA, f"m{said}")
                await asyncio.sleep(chance.uniform(0, 0.2))
            await asyncio.sleep(chance.uniform(0, 0.6))
            await merk.kill()
        await merk.start()
        await settled(merk)

        shown = answered(merk)
        offers = [
            (message.id, button)
            for message in merk.telegram.messages(ADA, by_bot=True)
            for said_so, button in OFFERS.items()
            if said_so in message.text
        ]
        lost = [f"m{number}" for number in range(1, said + 1) if not shown[f"m{number}"]]
        twice = [text for text, count in shown.items() if count > 1]
        assert twice == []
        assert len(lost) <= len(offers)

        for message_id, button in offers:  # what was in flight at that instant is there, a tap away
            merk.telegram.press(ADA, message_id, button)
        await settled(merk)
        shown = answered(merk)
        assert [f"m{number}" for number in range(1, said + 1) if not shown[f"m{number}"]] == []
        order = [row[0] for row in merk.rows("SELECT text FROM messages WHERE role = 'user' ORDER BY id")]
        assert order == [f"m{number}" for number in range(1, said + 1)]
        assert merk.rows("SELECT count(*) FROM messages WHERE role = 'assistant'") == [(said,)]
        merk.telegram.say(ADA, "m999")
        await merk.telegram.wait_text(ADA, "Echo: m999", timeout=20)
        assert merk.telegram.violations == []
