"""Memory in the browser is changed by the rules of the chat: asked first, erased everywhere, told what went."""

import re
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from memory import telemetry
from memory.instants import to_ms
from memory.storage.database import Database
from memory.storage.tables import messages
from tests.fakes.house import house
from tests.fakes.website import website
from tests.unit.bot.web.test_pages import OWNER, PAGE, form_key, look, private


async def test_a_fact_is_reworded_and_the_old_wording_is_history(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("/remember The bicycle is red")
        await site.log_in()
        key = form_key(await look(site, "/memory/facts/1"))
        done = await site.client.post("/memory/facts/1", data={**key, "text": "The bicycle is green"})
        assert (done.status_code, done.headers["location"]) == (303, "/memory?said=edited")
        page = await look(site, done.headers["location"])
        assert "The bicycle is green" in page
        assert "The bicycle is red" not in page
        again = await site.client.post("/memory/facts/2", data={**key, "text": "  "}, headers=PAGE)
    assert again.status_code == 422
    assert 'role="alert"' in again.text


async def test_a_contradiction_is_asked_about_as_in_the_chat(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("/remember My dog is called Ito")
        await opened.say("/remember Something else")
        await site.log_in()
        key = form_key(await look(site, "/memory"))
        asked = await site.client.post("/memory/facts/2", data={**key, "text": "My dog is called Weber"})
        assert asked.status_code == 200
        assert "Ito" in asked.text
        settled = await site.client.post("/memory/facts/3/settle", data={**key, "choice": "new"})
        assert settled.status_code == 303
        page = await look(site, "/memory")
        wrong = await site.client.post("/memory/facts/3/settle", data={**key, "choice": "all"})
    assert "Weber" in page
    assert "Ito" not in page
    assert wrong.status_code == 422


async def test_forgetting_asks_first_erases_everywhere_and_is_done_once(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("my cat is called Minka")
        await opened.say("/remember My cat is called Minka")
        await site.log_in()
        page = await look(site, "/memory/facts/1/forget")
        assert "Minka" in page
        assert len(await opened.memory.facts.list(private(1))) == 1  # asking changes nothing
        given = {**form_key(page), "key": re.findall(r'name="key" value="([^"]+)"', page)[0]}
        receipt = await site.client.post("/memory/facts/1/forget", data=given)
        assert "1 fact" in receipt.text
        assert (await site.client.post("/memory/facts/1/forget", data=given)).text == receipt.text
        assert (await site.client.post("/memory/facts/1/forget", data={**given, "key": ""})).status_code == 422
        await look(site, "/memory/facts/1", 404)
        async with database.read() as connection:
            said = (await connection.execute(sa.select(messages.c.text))).scalars().all()
    assert not any("Minka" in text for text in said)


async def test_what_was_noticed_is_judged_moved_reworded_and_forgotten(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("hello")
        seen = opened.memory.observations
        for number, title in enumerate(("Likes sailing", "Plays the oboe")):
            await seen.note_event("u1", hook="h", event_id=str(number), title=title, user_id=1)
        await site.log_in()
        listed = await look(site, "/memory/noticed")
        assert "Likes sailing" in listed
        assert "2 observations" in listed
        assert "Plays the oboe" not in await look(site, "/memory/noticed", q="sailing")
        key = form_key(listed)

        async def do(observation_id: int, **given: str) -> httpx.Response:
            return await site.client.post(f"/memory/noticed/{observation_id}", data={**key, **given}, headers=PAGE)

        assert (await do(1, do="confirm")).headers["location"] == "/memory/noticed/1?said=confirmed"
        assert "said=rejected" in (await do(2, do="reject")).headers["location"]
        assert "said=hidden" in (await do(2, do="reject")).headers["location"]
        assert "Plays the oboe" not in await look(site, "/memory/noticed")
        assert "Plays the oboe" in await look(site, "/memory/noticed", state="hidden")
        assert "said=restored" in (await do(2, do="restore")).headers["location"]
        asked = await do(1, do="move", to="p")
        assert asked.status_code == 200
        assert "more people" in asked.text
        assert (await seen.by_id(private(1), 1)).owner == "u1"  # type: ignore[union-attr]
        assert "said=moved" in (await do(1, do="move", to="p", sure="yes")).headers["location"]
        assert (await do(1, do="move", to="t99")).status_code == 403
        assert (await do(2, do="nothing")).status_code == 422
        edited = await do(2, do="edit", text="Plays the oboe in an orchestra")
        assert "said=edited" in edited.headers["location"]
        new = edited.headers["location"].partition("?")[0]
        page = await look(site, f"{new}/forget")
        given = {**form_key(page), "key": re.findall(r'name="key" value="([^"]+)"', page)[0]}
        assert (await site.client.post(f"{new}/forget", data=given)).status_code == 200
        await look(site, new, 404)
        assert "1" in re.findall(r"Called right</dt><dd>(\d)", await look(site, "/memory/noticed"))


async def test_what_is_sensitive_is_shown_only_when_asked_for(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("hello")
        await opened.memory.observations.note_event("s1", hook="h", event_id="1", title="Sees a doctor", user_id=1)
        await site.log_in()
        assert "Sees a doctor" not in await look(site, "/memory/noticed")
        await look(site, "/memory/noticed/1", 404)
        assert "Sees a doctor" in await look(site, "/memory/noticed", scope="sensitive")
        assert "Sees a doctor" in await look(site, "/memory/noticed/1", sensitive="1")


@pytest.mark.parametrize(
    "path",
    ["/memory/facts/1", "/memory/facts/1/forget", "/memory/facts/1/settle", "/memory/noticed/1"],
)
async def test_a_change_without_the_forms_key_is_refused(database: Database, tmp_path: Path, path: str) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("/remember I like tea")
        await opened.memory.observations.note_event("u1", hook="h", event_id="1", title="Likes tea", user_id=1)
        await site.log_in()
        for more in ({}, {"form_key": "0" * 64}):
            given = {"text": "x", "choice": "new", "do": "reject", "key": "k", **more}
            assert (await site.client.post(path, data=given)).status_code == 403
        page = await look(site, "/memory")
    assert "I like tea" in page


async def test_how_well_recall_did_is_shown_night_by_night_and_only_ones_own(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await opened.say("hello")
        await site.log_in()
        assert "Found among the first ten" not in await look(site, "/memory/noticed")
        async with database.write() as connection:
            await telemetry.record(connection, measured(2, 0.25), to_ms(opened.clock.now()))
        assert "Found among the first ten" not in await look(site, "/memory/noticed")
        async with database.write() as connection:
            await telemetry.record(connection, measured(1, 0.75), to_ms(opened.clock.now()))
        page = await look(site, "/memory/noticed")
    assert "Found among the first ten" in page
    assert 'data-value="0.75"' in page
    assert "0.25" not in page


def measured(user_id: int, recall: float) -> telemetry.RecallQuality:
    return telemetry.RecallQuality(
        user_id=user_id,
        questions=4,
        recall_at_1=recall,
        recall_at_3=recall,
        recall_at_10=recall,
        updates=0,
        update_precedence=None,
        judged=0,
        rejected_share=None,
    )
