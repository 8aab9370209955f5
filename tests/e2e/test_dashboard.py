"""The dashboard in a real browser: every page in light, dark and on a phone, with data and without, also by keys."""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from memory.scope import Audience
from memory.storage.database import Database
from tests.e2e.dashboard_stage import CHROMIUM, Stage, browser, stage

AXE = next((Path(__file__).parents[2] / ".venv-browser").glob("axe-*.min.js"), None)
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PAGES = ("/", "/?period=1h", "/?period=30d", "/events", "/memory", "/memory/noticed", "/status")
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1180, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1180, "height": 800}},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}, "has_touch": True},
}
ADA = Audience(1, 0, is_private=True)

pytestmark = [
    pytest.mark.external,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not there: apt-get install chromium"),
    pytest.mark.skipif(AXE is None, reason="axe-core is not there: scripts/setup e2e brings it where npm is there"),
]


class Watcher:
    """Notes what a page must not do."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.faults: list[str] = []
        self._host = urlsplit(address).netloc
        context.on("console", self._said)
        context.on("weberror", lambda error: self.faults.append(f"error: {error.error}"))
        context.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).netloc != self._host:
            self.faults.append(f"elsewhere: {request.url}")


@asynccontextmanager
async def entered(opened: Browser, on: Stage, look: str, locale: str = "en") -> AsyncGenerator[Page, None]:
    """A browser that came in through the link of the chat. What it must not do fails the test."""
    async with await opened.new_context(**LOOKS[look], locale=locale) as context:
        watcher = Watcher(context, on.address)
        page = await context.new_page()
        await page.goto(await on.link())
        await check(page)
        await page.get_by_role("button").click()
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        yield page
        assert watcher.faults == []


async def check(page: Page) -> None:
    """Nothing is wider than the screen, and axe finds nothing serious."""
    wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{page.url} is {wide} pixels too wide"
    assert AXE is not None
    # in a world of its own: the policy of the page forbids what is not its own
    session: Any = await page.context.new_cdp_session(page)
    tree = await session.send("Page.getFrameTree")
    world = await session.send(
        "Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "axe"}
    )
    run = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"
    script = f"{AXE.read_text(encoding='utf-8')};\n{run}"
    answer = await session.send(
        "Runtime.evaluate",
        {
            "expression": script,
            "contextId": world["executionContextId"],
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    await session.detach()
    assert "exceptionDetails" not in answer, answer
    serious = [
        f"{each['id']}: {[node['target'] for node in each['nodes']]}"
        for each in answer["result"]["value"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == [], f"{page.url}: {serious}"


async def drawn(page: Page) -> list[int]:
    """How many points of each chart's canvas have a colour of a series."""
    return await page.evaluate(
        """() => [...document.querySelectorAll('.plot canvas')].map((canvas) => {
            const probe = document.createElement('canvas').getContext('2d');
            const style = getComputedStyle(document.documentElement);
            probe.fillStyle = style.getPropertyValue('--accent').trim();
            probe.fillRect(0, 0, 1, 1);
            const wanted = probe.getImageData(0, 0, 1, 1).data;
            const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
            const seeing = copy.getContext('2d', {willReadFrequently: true});
            seeing.drawImage(canvas, 0, 0);
            const seen = seeing.getImageData(0, 0, copy.width, copy.height).data;
            let count = 0;
            for (let at = 0; at < seen.length; at += 4)
                count += [0, 1, 2].every((of) => Math.abs(seen[at + of] - wanted[of]) < 3) && seen[at + 3] > 200;
            return count;
        })"""
    )


async def until_drawn(page: Page) -> None:
    """Wait for the frame in which every chart shows its series; the time limit of the test ends it."""
    while not all(count > 30 for count in await drawn(page)):
        await page.evaluate("() => new Promise(requestAnimationFrame)")


@pytest.mark.parametrize("look", LOOKS)
async def test_every_page_is_fit_to_be_seen(database: Database, tmp_path: Path, look: str) -> None:
    async with stage(database, tmp_path) as on, browser() as opened, entered(opened, on, look) as page:
        for path in PAGES:
            await page.goto(on.address + path)
            await check(page)
        await page.goto(f"{on.address}/events?name=chat.turn_completed")
        await page.locator("tbody th a").first.click()
        await expect(page.get_by_text("How do I get to my sister")).to_be_visible()
        await check(page)
        await page.goto(f"{on.address}/memory/noticed")
        await page.get_by_role("link", name="Prefers night trains").click()
        await expect(page.get_by_text("What held before and after")).to_be_visible()
        await check(page)


@pytest.mark.parametrize("look", ["dark", "phone"])
async def test_every_page_is_fit_to_be_seen_when_it_is_empty(database: Database, tmp_path: Path, look: str) -> None:
    async with (
        stage(database, tmp_path, is_full=False) as on,
        browser() as opened,
        entered(opened, on, look) as page,
    ):
        for path in PAGES:
            await page.goto(on.address + path)
            await check(page)
        await page.goto(on.address)
        assert await page.locator(".plot canvas").count() == 6
        assert await drawn(page) == [0] * 6


@pytest.mark.parametrize("language", ["de", "ru"])
async def test_longer_words_fit_too(database: Database, tmp_path: Path, language: str) -> None:
    async with stage(database, tmp_path) as on, browser() as opened:
        await on.speak(language)
        async with entered(opened, on, "phone", language) as page:
            for path in (*PAGES, "/memory/facts/1", "/memory/facts/1/forget", "/memory/noticed/3"):
                await page.goto(on.address + path)
                await check(page)
                assert await page.locator("html").get_attribute("lang") == language
                assert (await page.locator(".top nav").bounding_box() or {})["height"] < 60  # one line


async def test_charts_are_drawn_and_tell_their_figures(database: Database, tmp_path: Path) -> None:
    async with stage(database, tmp_path) as on, browser() as opened, entered(opened, on, "light") as page:
        await page.get_by_role("link", name="30 days").click()
        await until_drawn(page)
        chart = page.locator(".chart").first
        whole = await chart.locator(".readout").text_content()
        await chart.locator(".u-over").hover()
        await expect(chart.locator(".readout")).to_contain_text(re.compile(r"20\d\d: \d"))
        await page.get_by_role("heading", level=1).hover()
        await expect(chart.locator(".readout")).to_have_text(whole or "")
        await chart.get_by_text("As a table").click()
        assert await chart.locator("tbody tr").count() in (30, 31)
        await page.emulate_media(color_scheme="dark")  # the picture follows
        await until_drawn(page)


async def test_events_are_filtered(database: Database, tmp_path: Path) -> None:
    async with stage(database, tmp_path) as on, browser() as opened, entered(opened, on, "light") as page:
        await page.get_by_role("link", name="Events").click()
        await page.get_by_label("Period").select_option("30 days")
        await page.get_by_label("Event").select_option("Tool used")
        await page.get_by_label("Person").select_option("Bo")
        await page.get_by_role("button", name="Show").click()
        names = await page.locator("tbody th").all_text_contents()
        assert set(names) == {"Tool used"}
        assert {"Bo"} == set(await page.locator("tbody td:nth-child(3)").all_text_contents())
        count = int(re.sub(r"\D", "", await page.locator(".count").text_content() or ""))
        shown = len(names)
        while await page.get_by_role("link", name="Next").count():
            await page.get_by_role("link", name="Next").click()
            shown += await page.locator("tbody tr").count()
        assert shown == count


async def test_memory_is_changed_and_forgotten_by_keyboard(database: Database, tmp_path: Path) -> None:
    async with stage(database, tmp_path) as on, browser() as opened, entered(opened, on, "phone") as page:
        await page.goto(f"{on.address}/memory")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.get_by_role("link", name=re.compile("Edit.*allergic to hazelnuts")).focus()
        await page.keyboard.press("Enter")
        await page.get_by_label("Wording").fill("I am allergic to hazelnuts and cashews")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Changed.")).to_be_visible()
        await expect(page.get_by_text("hazelnuts and cashews").first).to_be_visible()
        await check(page)
        await page.get_by_label("Search").fill("bicycle")
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name="Forget").click()
        await check(page)
        await page.get_by_role("button", name="Yes, forget").click()
        await expect(page.get_by_role("status")).to_contain_text("1 fact")
        await check(page)
        facts = [fact.text for fact in await on.house.memory.facts.list(ADA)]
    assert "I am allergic to hazelnuts and cashews" in facts
    assert not any("bicycle" in fact for fact in facts)


async def test_a_link_is_good_once_and_logging_out_ends_it(database: Database, tmp_path: Path) -> None:
    async with stage(database, tmp_path, is_full=False) as on, browser() as opened:
        page = await opened.new_page(locale="en")
        link = await on.link()
        await page.goto(link)
        await page.get_by_role("button").click()
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_text("Write /dashboard")).to_be_visible()
        await check(page)
        await page.goto(link)
        await page.get_by_role("button").click()
        await expect(page.get_by_text("was used already")).to_be_visible()
        await check(page)
        await page.goto(on.address)
        await expect(page.get_by_text("Write /dashboard")).to_be_visible()


async def test_the_check_finds_what_is_wrong(database: Database, tmp_path: Path) -> None:
    async with stage(database, tmp_path, is_full=False) as on, browser() as opened:
        page = await opened.new_page(bypass_csp=True)
        await page.goto(f"{on.address}/login")
        await page.evaluate("document.querySelector('main').innerHTML = '<p style=\"color: #ddd\">pale</p><input>'")
        with pytest.raises(AssertionError, match=r"color-contrast[\s\S]*label"):
            await check(page)


async def test_without_scripts_the_tables_are_there(database: Database, tmp_path: Path) -> None:
    async with stage(database, tmp_path) as on, browser() as opened:
        page = await opened.new_page(java_script_enabled=False, locale="en")
        await page.goto(await on.link())
        await page.get_by_role("button").click()
        await page.locator(".chart").first.get_by_text("As a table").click()
        await expect(page.locator(".chart").first.get_by_role("table")).to_be_visible()


def looks_of(path: Path) -> Iterator[str]:
    yield from re.findall(r"pictures/((?:dashboard|matrix)[\w-]*\.png)", path.read_text(encoding="utf-8"))


def test_the_pictures_of_the_guides_are_there_and_small() -> None:
    named = {name for guide in PICTURES.parent.glob("*.md") for name in looks_of(guide)}
    assert named
    assert all((PICTURES / name).stat().st_size < 150_000 for name in named)
