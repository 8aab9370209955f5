"""The dashboard's pages: who sees what, in whose language, and what a page may never do."""

import re
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from bot.config import Web
from bot.web.pages.render import static
from bot.web.pages.visit import pages
from bot.web.pages.words import Words
from handlers.locales import LANGUAGES, phrases
from memory import telemetry
from memory.instants import to_ms
from memory.scope import VIEW_TELEMETRY, Audience
from memory.storage import members, people
from memory.storage.database import Database
from memory.storage.tables import messages, telemetry_events
from memory.telemetry import EVENTS
from tests.fakes.house import House, house
from tests.fakes.model import call
from tests.fakes.website import Website, website
from tests.unit.bot.web.test_api import fill

OWNER: dict[str, Any] = {"owners": ["fake:42"], "web": Web(enabled=True)}
PAGE = {"Accept": "text/html,application/xhtml+xml"}
SEEING = ["/", "/events", "/status"]
OWN = ["/memory", "/memory/noticed"]
TEMPLATES = Path(__file__).parents[4] / "bot" / "web" / "templates"
EVIL = "<script>alert(1)</script> & \"quoted\" 'too'"


async def look(site: Website, path: str, expected: int = 200, **asked: Any) -> str:
    response = await site.client.get(path, headers=PAGE, params=asked or None)
    assert response.status_code == expected, response.text
    return response.text


def form_key(page: str) -> dict[str, str]:
    found = re.search(r'name="form_key" value="(\w+)"', page)
    assert found
    return {"form_key": found[1]}


async def admit(house: House, number: str, *grants: str) -> dict[str, Any]:
    """Somebody beside the owner."""
    who: dict[str, Any] = {"from": number, "chat": number}
    await house.say("hello", **who)
    async with house.database.write() as connection:
        user = await people.find(connection, f"fake:{number}")
        assert user is not None
        for grant in grants:
            await members.grant(connection, user.id, grant)
    return who


async def turn_of(house: House, user_id: int = 1) -> int:
    """The event of a person's last answered turn."""
    async with house.database.read() as connection:
        query = sa.select(telemetry_events.c.id).where(
            telemetry_events.c.name == telemetry.TurnCompleted.name, telemetry_events.c.user_id == user_id
        )
        return int((await connection.execute(query.order_by(telemetry_events.c.id.desc()))).scalars().first() or 0)


# --- getting in --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*SEEING, *OWN, "/events/1", "/memory/facts/1", "/memory/noticed/1"])
async def test_nobody_sees_a_page_and_is_told_how_to_get_in(database: Database, tmp_path: Path, path: str) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        assert "/dashboard" in await look(site, path, 401)
        program = await site.client.get(path, headers=await site.program())
    assert program.status_code == 403  # a program has the API; a page is somebody's


@pytest.mark.parametrize("path", [*SEEING, *OWN])
async def test_every_page_opens_and_is_useful_when_there_is_nothing_yet(
    database: Database, tmp_path: Path, path: str
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await site.log_in()
        page = await look(site, path)
    assert page.count("<h1>") == 1
    assert page.count('aria-current="page"') >= 1
    assert 'class="empty"' in page or path == "/status"


@pytest.mark.parametrize("period", ["1h", "24h", "7d", "30d"])
async def test_the_overview_tells_the_same_as_the_api(database: Database, tmp_path: Path, period: str) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await fill(database, opened.clock.now(), 300)
        await site.log_in()
        page = await look(site, "/", period=period)
        told = (await site.client.get("/api/ai/telemetry/overview", params={"period": period})).json()
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page))
    assert figures["Answers"] == f"{told['turns']:,}"
    assert figures["Tokens"] == f"{told['tokens']['total']:,}"
    bars = re.findall(r'data-unit="count">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)[0]
    assert sum(float(value or 0) for value in re.findall(r'data-value="([\d.]*)"', bars)) == told["turns"]


@pytest.mark.parametrize(
    "asked", [{"period": "2h"}, {"page": "0"}, {"person": "x"}, {"chat": str(2**70)}, {"page": "1e3"}]
)
async def test_a_mistake_in_an_address_is_told_in_words(
    database: Database, tmp_path: Path, asked: dict[str, str]
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await site.log_in()
        assert "mistake" in await look(site, "/events", 422, **asked)


async def test_filters_of_the_events_hold_and_go_with_the_pages(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await fill(database, opened.clock.now(), 200)
        await site.log_in()
        page = await look(site, "/events", period="30d", name="chat.tool_used", person="2", chat="")
        assert set(re.findall(r'<th scope="row"><a [^>]+>([^<]+)', page)) == {"Tool used"}
        assert '<option value="chat.tool_used" selected>' in page
        every = await look(site, "/events", period="30d")
        assert 'rel="next" href="/events?period=30d&amp;page=2"' in every
        assert 'rel="prev"' in await look(site, "/events", period="30d", page="2")


# --- whose words -------------------------------------------------------------------------------------


async def test_a_turn_tells_what_was_recalled_which_model_and_why(database: Database, tmp_path: Path) -> None:
    script = (call("search_memory", query="sister"), "She lives in Porto.")
    async with house(database, tmp_path, *script, **OWNER) as opened, website(opened) as site:
        await opened.say("/remember My sister lives in Porto")
        await opened.say("Where does my sister live these days?")
        await site.log_in()
        page = await look(site, f"/events/{await turn_of(opened)}")
        async with database.read() as connection:
            query = sa.select(messages.c.memory_trace).where(messages.c.model.is_not(None))
            trace = (await connection.execute(query)).scalars().one()
    assert trace["facts"] == [1]
    assert 'href="/memory/facts/1">My sister lives in Porto' in page
    for said in ("Where does my sister live", "She lives in Porto.", "scripted", "Recall as a whole", "Whole answer"):
        assert said in page
    assert "Tool used" in page


async def test_the_words_of_somebody_elses_turn_are_not_shown_whatever_the_grants(
    database: Database, tmp_path: Path
) -> None:
    script = ("Hello.", "The safe is behind the picture.")
    async with house(database, tmp_path, *script, **OWNER) as opened, website(opened) as site:
        bob = await admit(opened, "7")
        await opened.say("/remember The code of my door is known to Zoltan", **bob)
        await opened.say("where is the safe of my grandmother?", **bob)
        await site.log_in()
        page = await look(site, f"/events/{await turn_of(opened)}")
    for words in ("safe", "picture", "Zoltan", "grandmother"):
        assert words not in page
    assert "belong to somebody else" in page
    assert "not yours to read" in page
    assert "Whole answer" in page


async def test_without_the_grant_there_is_ones_own_memory_and_nothing_of_others(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        bob = await admit(opened, "7", VIEW_TELEMETRY)
        await opened.say("/remember I like tea", **bob)
        await opened.say("/remember I like coffee")
        await site.log_in(**bob)
        async with database.write() as connection:
            await members.revoke(connection, 1, VIEW_TELEMETRY)
        for path in (*SEEING, "/events/1"):
            assert 'href="/memory"' in await look(site, path, 403)
        page = await look(site, "/memory")
    assert "I like tea" in page
    assert "coffee" not in page
    assert 'href="/events"' not in page


@pytest.mark.parametrize("path", ["/memory/facts/1", "/memory/facts/1/forget", "/memory/noticed/1"])
async def test_somebody_elses_memory_is_not_there(database: Database, tmp_path: Path, path: str) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        bob = await admit(opened, "7")
        await opened.say("/remember I like tea", **bob)
        async with database.read() as connection:
            message_id = (await connection.execute(sa.select(sa.func.min(messages.c.id)))).scalar_one()
            user = await people.find(connection, "fake:7")
        assert user is not None
        await opened.memory.observations.note_event(f"u{user.id}", hook="h", event_id="1", title="Bob sings bass")
        assert message_id
        await site.log_in()
        key = form_key(await look(site, "/memory"))
        await look(site, path, 404)
        written = await site.client.post(path, data={**key, "text": "x", "do": "edit", "key": "k"}, headers=PAGE)
        if path.endswith("forget"):
            assert "nothing" in written.text.lower()
        else:
            assert written.status_code in (404, 422)
        assert [fact.text for fact in await opened.memory.facts.list(private(user.id))] == ["I like tea"]


def private(user_id: int) -> Audience:
    return Audience(user_id, 0, is_private=True)


ODD: dict[str, Any] = {"facts": "x", "sessions": [7, {}], "observations": None, "ms": [], "usage": {}, "routing": []}
TRACE: dict[str, Any] = {
    "facts": [1, 999],
    "sessions": [{"id": 1, "score": 0.81, "cosine": 0.4, "words": 0.5}, {"id": 998, "score": 0.5, "cosine": None}],
    "observations": [{"id": 1, "score": 0.7, "reason": "meaning 0.70"}, {"id": 997, "score": 0.1, "reason": ""}],
    "degraded": ["embedder"],
    "ms": {"all": 12, "words": 3, "of tomorrow": 4},
    "usage": [{"input": 10, "output": 5, "cache_read": 1234, "cache_write": 0}],
    "nano_usd": 12_300_000,
    "routing": {"tier": "smart", "kind": "complex", "confidence": 0.8, "reason": "code"},
}


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (TRACE, ("Likes tea", "meaning 0.70", "embedder", "smart", "it has program code", "$0.0123", "1,234")),
        (ODD, ()),
        (None, ("Nothing from earlier was needed",)),
    ],
    ids=["full", "odd", "none"],
)
async def test_a_trace_of_any_age_is_told(
    database: Database, tmp_path: Path, trace: dict[str, Any] | None, said: tuple[str, ...]
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("/remember I like tea")
        await opened.memory.observations.note_event("u1", hook="h", event_id="1", title="Likes tea", user_id=1)
        await opened.say("what do I like to drink?")
        async with database.write() as connection:
            await connection.execute(sa.update(messages).values(memory_trace=trace))
        await site.log_in()
        page = await look(site, f"/events/{await turn_of(opened)}")
    for words in said:
        assert words in page
    if trace is TRACE:
        assert "No. 999" in page
        assert "No. 998" in page
        assert "No. 997" in page


async def test_a_group_is_read_by_those_who_are_in_it(database: Database, tmp_path: Path) -> None:
    group: dict[str, Any] = {"group": True, "chat": "-5"}
    async with house(database, tmp_path, "Blue.", "Blue.", **OWNER) as opened, website(opened) as site:
        bob = await admit(opened, "7")
        await opened.say("Which colour for the hall?", **{**group, "from": "7"})
        async with database.read() as connection:
            user = await people.find(connection, "fake:7")
        assert user is not None
        await site.log_in()
        path = f"/events/{await turn_of(opened, user.id)}"
        assert "Which colour" not in await look(site, path)
        await opened.say("Me too", **group)
        assert "Which colour" in await look(site, path)
    assert bob


# --- what a page may never do ------------------------------------------------------------------------


async def test_whatever_people_write_stays_text(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, EVIL, **OWNER) as opened, website(opened) as site:
        await opened.say(f"/remember {EVIL}", name=EVIL)
        await opened.say(f"what is {EVIL}?", name=EVIL)
        await opened.memory.observations.note_event("u1", hook="h", event_id="1", title=EVIL, user_id=1)
        await site.log_in(name=EVIL)
        paths = [*SEEING, *OWN, f"/memory?q={EVIL}", "/memory/facts/1", "/memory/facts/1/forget", "/memory/noticed/1"]
        for path in (*paths, f"/events/{await turn_of(opened)}", f"/memory/noticed?q={EVIL}"):
            page = await look(site, path)
            assert "<script>alert" not in page, path
            assert "&lt;script&gt;" in page or path in SEEING


@pytest.mark.parametrize("path", [*SEEING, *OWN, "/login", "/nothing"])
async def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(
    database: Database, tmp_path: Path, path: str
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await site.log_in()
        page = (await site.client.get(path, headers=PAGE)).text
    assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", page)
    links = re.findall(r'(?:src|href|action)="([^"]+)"', page)
    assert links
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links)


@pytest.mark.parametrize("name", ["merk.css", "merk.js", "uPlot.iife.min.js", "icon.svg", "uPlot.LICENSE.txt"])
async def test_files_are_kept_by_browsers_under_the_mark_of_their_content(
    database: Database, tmp_path: Path, name: str
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        response = await site.client.get(static(name))
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
        assert "immutable" not in (await site.client.get(f"/static/{name}")).headers.get("cache-control", "")


async def test_a_session_that_ended_is_told_so_and_leaves_by_its_button(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await site.log_in()
        key = form_key(await look(site, "/"))
        opened.clock.advance(days=8)
        assert "session has ended" in await look(site, "/", 401)
        await site.log_in()
        key = form_key(await look(site, "/"))
        assert (await site.client.post("/logout", data=key)).headers["location"] == "/login"
        await look(site, "/", 401)


# --- languages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "said"), [("de", "Übersicht"), ("ru", "Обзор"), ("en", "Overview")])
async def test_pages_speak_the_language_that_the_bot_speaks(
    database: Database, tmp_path: Path, language: str, said: str
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("/language")
        await opened.press(phrases(language)("language-name"))
        await site.log_in()
        page = await look(site, "/")
        assert f'<html lang="{language}">' in page
        assert f"<h1>{said}</h1>" in page
        strange = await site.client.get("/login", headers={"Accept-Language": f"{language};q=0.9"})
    assert f'lang="{language}"' in strange.text


def test_every_text_of_the_templates_is_there() -> None:
    for path in TEMPLATES.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        for key in re.findall(r"say\('([a-z_0-9-]+)'[,)]", text):
            assert key in phrases("en"), f"{path.name}: {key}"


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_every_event_has_a_name_that_people_understand(name: str) -> None:
    for language in LANGUAGES:
        assert f"web-event-{name.replace('.', '-')}" in phrases(language)


def test_figures_are_written_as_the_reader_does() -> None:
    english, german = (Words(phrases(each), ZoneInfo("UTC")) for each in ("en", "de"))
    assert (english.money(0.0123), english.money(1.239), german.money(1.5)) == ("$0.0123", "$1.24", "1,50\xa0$")
    assert (english.duration(340), english.duration(1234), english.duration(90_000)) == ("340 ms", "1.2 sec", "1.5 min")
    assert (english.share(0.1234), english.count(None), german.count(1234.5)) == ("12.3%", "–", "1.234,5")
    assert german.share(0.787) == "78,7\xa0%"
    assert (english.brief(9_999_999), english.brief(12_340_000)) == ("9,999,999", "12.3M")
    assert english.ago(0.2) == "just now"
    assert [pages(total) for total in (0, 1, 20, 21)] == [1, 1, 1, 2]


async def test_the_status_page_names_what_went_wrong(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        async with database.write() as connection:
            failed = telemetry.JobFailed(job="retention", error="OSError")
            await telemetry.record(connection, failed, to_ms(opened.clock.now()))
        await site.log_in()
        page = await look(site, "/status")
    assert "<code>retention</code>" in page
    assert "Background work failed" in page


async def test_the_status_page_tells_details_in_the_readers_language(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("/language")
        await opened.press("Deutsch")
        await site.log_in()
        page = await look(site, "/status")
    assert "antwortet" in page
    assert re.search(r"\d+(,\d)? GB frei", page)
    assert 'lang="en">words:64' in page  # what has no words of its own is as the program says it
