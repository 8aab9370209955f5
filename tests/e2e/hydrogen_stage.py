"""A room in Hydrogen, a client that is not ours, in a real browser: what somebody sees of Merk, and taps on.

`scripts/setup e2e` installs it into .venv-browser; the page in tests/e2e/hydrogen is bundled anew for each test.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.e2e.dashboard_stage import browser
from tests.e2e.matrix_stage import MatrixMerk, enter, matrix_deployment
from tests.e2e.synapse import Synapse
from tests.e2e.synapse_participant import Participant

PAGE = Path(__file__).parent / "hydrogen"
MODULES = Path(__file__).parents[2] / ".venv-browser" / "hydrogen" / "node_modules"
_PATIENCE = 30_000  # ms
_REACTION = ".Timeline_messageReactions button"
_NODE_ONLY = ("crypto", "fs", "path")  # in branches that no browser takes


class Hydrogen:
    """One person's window on one room."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def say(self, text: str) -> None:
        """As a person does it: type and send."""
        box = self.page.locator(".MessageComposer textarea")
        await box.fill(text)
        await box.press("Enter")
        await self.sees(text)

    async def sees(self, text: str) -> Locator:
        """The newest message with these words."""
        message = self._messages(text).last
        await expect(message).to_be_visible(timeout=_PATIENCE)
        return message

    async def misses(self, *texts: str) -> None:
        """None of these words is to be seen any more."""
        for text in texts:
            await expect(self._messages(text)).to_have_count(0, timeout=_PATIENCE)

    async def offers(self, text: str, *marks: str) -> None:
        """A message has these reactions under it, in this order."""
        message = await self.sees(text)
        await expect(message.locator(_REACTION)).to_contain_text(marks, timeout=_PATIENCE)

    async def tap(self, text: str, mark: str) -> None:
        """Tap on a reaction that stands under a message."""
        message = await self.sees(text)
        await message.locator(_REACTION, has_text=mark).click(timeout=_PATIENCE)

    async def picture(self, target: Path) -> None:
        """As it looks at the newest message."""
        await self.page.mouse.move(0, 0)
        for _ in range(5):  # what comes into sight is drawn, and takes room, only then
            await self.page.evaluate(
                "() => { const all = document.querySelector('.Timeline_scroller'); all.scrollTop = all.scrollHeight; }"
            )
            await asyncio.sleep(0.1)
        await self.page.screenshot(path=target)

    def _messages(self, text: str) -> Locator:
        return self.page.locator(".Timeline_message", has_text=text)


@asynccontextmanager
async def window_on_merk(
    synapse: Synapse, folder: Path
) -> AsyncGenerator[tuple[MatrixMerk, Participant, Hydrogen], None]:
    """A person's private encrypted room with Merk, in their browser; beside it their plain device, without any keys."""
    account = await synapse.register("ada")
    async with (
        synapse.login(account) as ada,
        matrix_deployment(folder, synapse, account.user_id, encryption="required") as merk,
        browser() as opened,
    ):
        await merk.start()
        room = await enter(merk, ada, encrypted=True)
        page = await opened.new_page(locale="en", viewport={"width": 420, "height": 780}, device_scale_factor=2)
        await _build(folder / "page")
        with _served(folder / "page") as address:
            await page.goto(f"{address}/page.html")
            who = {"homeserver": synapse.url, "user": account.name, "password": account.password, "room": room}
            await page.evaluate("who => window.enter(who)", who)
            yield merk, ada, Hydrogen(page)
            await page.close()


async def _build(folder: Path) -> None:
    """Bundle the page into a folder, beside what it fetches."""
    client = MODULES / "hydrogen-view-sdk"
    shutil.copytree(client / "asset-build" / "assets", folder / "assets")
    shutil.copytree(MODULES / "@matrix-org" / "olm", folder / "olm")
    shutil.copy(client / "lib-build" / "sw.js", folder)
    shutil.copy(PAGE / "page.html", folder)
    process = await asyncio.create_subprocess_exec(
        str(MODULES / ".bin" / "esbuild"),
        str(PAGE / "page.mjs"),
        "--bundle",
        "--format=esm",
        "--log-level=error",
        *(f"--external:{name}" for name in _NODE_ONLY),
        f"--outfile={folder / 'page.js'}",
        env={**os.environ, "NODE_PATH": str(MODULES)},
    )
    assert await process.wait() == 0


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


@contextmanager
def _served(folder: Path) -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
