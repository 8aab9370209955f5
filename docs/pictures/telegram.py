"""A conversation on Telegram, from the emulator's state: told in one chat, known in the next, forgotten in it."""

from pathlib import Path

from docs.pictures.phone import ADA, check_servers, press, say, screen, side_by_side
from docs.pictures.script import rehearse
from tests.e2e.merk_process import Merk, deployment

CHATS = 2  # that are summarised before something is forgotten, so that the receipt is always the same


async def draw_telegram(folder: Path) -> str:
    """Return an SVG of three moments, side by side."""
    async with deployment(folder) as merk:
        rehearse(merk.model)
        merk.telegram.private_chat(ADA, "Ada")
        await merk.start()
        screens = [await _tell_and_use(merk), await _ask_to_forget(merk), await _confirm(merk)]
        await merk.stop()
        check_servers(merk)
    return side_by_side(screens)


async def _tell_and_use(merk: Merk) -> str:
    await say(merk, "Remember that my dog is called Bruno.", "Saved")
    await say(merk, "/newchat", "new chat begins")
    await say(merk, "We go camping on Saturday. What shall I pack for the dog?", "For you")
    return screen(merk)


async def _ask_to_forget(merk: Merk) -> str:
    await merk.telegram.wait_for(
        lambda: len(merk.rows("SELECT 1 FROM summaries WHERE indexed_as IS NOT NULL")) == CHATS, timeout=60
    )
    await say(merk, "Forget that my dog is called Bruno.", "for good")
    return screen(merk, since="We go camping")


async def _confirm(merk: Merk) -> str:
    await press(merk, "Yes, forget", "Forgotten")
    await say(merk, "What is my dog called?", "I do not know")
    await say(merk, "/memory", "I keep nothing")
    if found := merk.rows("SELECT text FROM messages WHERE text LIKE ?", "%Bruno%"):
        raise RuntimeError(f"the picture would lie, the log still says {found}")
    return screen(merk, since="Forget that")
