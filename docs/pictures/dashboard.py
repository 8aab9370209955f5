"""Draws the dashboard as a browser shows it, over the month that its tests have."""

import shutil
from pathlib import Path
from typing import Any

from memory.storage.database import Database
from memory.storage.migrate import migrate
from tests.e2e.dashboard_stage import Stage, browser, stage
from tests.fakes.clock import FrozenClock

_DESK: dict[str, Any] = {"viewport": {"width": 1000, "height": 700}}
_PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 760}, "color_scheme": "dark"}
_SHOTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dashboard-overview": ("/", _DESK),
    "dashboard-answer": ("/events?name=chat.turn_completed", _DESK),
    "dashboard-memory": ("/memory", _PHONE),
}


async def draw_dashboard(folder: Path, target: Path) -> None:
    """Write dashboard-*.png into a folder."""
    database = Database.at(folder / "merk.db")
    await migrate(database, folder / "merk.db", FrozenClock())
    try:
        async with stage(database, folder) as on:
            await _draw(on, target)
    finally:
        await database.close()
        shutil.rmtree(folder, ignore_errors=True)


async def _draw(on: Stage, target: Path) -> None:
    async with browser() as opened:
        for name, (path, look) in _SHOTS.items():
            page = await opened.new_page(locale="en", **look)
            await page.goto(await on.link())
            await page.get_by_role("button").click()
            await page.goto(on.address + path)
            if path.startswith("/events"):
                await page.locator("tbody th a").first.click()
            await page.screenshot(path=target / f"{name}.png")
            await page.close()
