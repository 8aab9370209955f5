"""Reminders of a real process on Telegram, over kill -9."""

import asyncio
from pathlib import Path

from tests.e2e.merk_process import deployment

ADA = 42


async def test_a_reminder_rings_once_over_kill_9_before_and_after_it(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada")
        await merk.start()
        merk.telegram.say(ADA, "/remind in 3 seconds kettle")
        await merk.telegram.wait_text(ADA, "I will remind you: kettle", timeout=20)
        await merk.kill()
        await asyncio.sleep(3)
        await merk.start()
        rung = await merk.telegram.wait_text(ADA, "^Reminder: kettle", timeout=20)
        await merk.settle()
        await merk.kill()
        await merk.start()
        merk.telegram.say(ADA, "/reminders")
        await merk.telegram.wait_text(ADA, "No reminder is waiting", timeout=20)
        assert [text for text in merk.telegram.answers(ADA) if text.startswith("Reminder:")] == [rung.text]
        merk.telegram.press(ADA, rung.id, "Done")
        await merk.telegram.wait_text(ADA, "Done: kettle", timeout=20)
        assert merk.telegram.violations == []
