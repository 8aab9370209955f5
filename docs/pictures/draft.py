"""A mail written together on Telegram: its drafts and what changed, the question at the end, and what stays."""

from pathlib import Path

from docs.pictures.phone import ADA, check_servers, press, say, screen, side_by_side
from docs.pictures.script import rehearse_mail
from tests.e2e.merk_process import deployment


async def draw_draft(folder: Path) -> str:
    """Return an SVG of three moments, side by side."""
    async with deployment(folder) as merk:
        rehearse_mail(merk.model)
        merk.telegram.private_chat(ADA, "Ada")
        await merk.start()
        await say(merk, "Write a mail to my landlord: the heating is cold.", "Draft 1")
        await say(merk, "Say since when, it was Monday, and ask for a date.", "Draft 2")
        screens = [screen(merk)]
        await press(merk, "Show changes", "What changed")
        await press(merk, "Keep", "what you wanted")
        screens.append(screen(merk, since="What changed"))
        await press(merk, "👍 Yes, close", "Kept:")
        screens.append(screen(merk))
        if found := merk.rows("SELECT text FROM messages WHERE is_ephemeral"):
            raise RuntimeError(f"the picture would lie, the drafts are still there: {found}")
        await merk.stop()
        check_servers(merk)
    return side_by_side(screens)
