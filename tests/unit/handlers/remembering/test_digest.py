"""The weekly digest: only for who wants it, once a week over restarts, in their private place, with a way back."""

from pathlib import Path
from typing import Any

import pytest

from memory.storage.database import Database
from tests.fakes.house import House, house

BOB: dict[str, Any] = {"from": "7", "chat": "7"}
GROUP: dict[str, Any] = {"chat": "-5", "group": True}


async def keep(opened: House, text: str, **where: Any) -> None:
    await opened.say(text, ref="r1", **where)
    await opened.say("/keep", reply_to="r1", **where)


async def sent(opened: House) -> list[str]:
    """What the clock sends now."""
    before = set(opened.transport.shown)
    await opened.app.digests.send()
    await opened.settle()
    return [shown.text for ref, shown in opened.transport.shown.items() if ref not in before]


async def test_nobody_gets_one_who_did_not_ask(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await keep(opened, "My dog is called Bruno.")
        opened.clock.advance(days=30)
        assert await sent(opened) == []
        assert "off" in (await opened.say("/digest"))[0]


async def test_it_comes_once_a_week_over_restarts_and_says_what_was_learned(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert "once a week" in (await opened.say("/digest on"))[0]
        await keep(opened, "My dog is called Bruno.")
        await keep(opened, "My cat is called Mia.", **BOB)
        opened.clock.advance(days=6)
        assert await sent(opened) == []
        opened.clock.advance(days=1)
        async with house(database, tmp_path, before=opened) as again:
            [digest] = await sent(again)
            assert "Learned (1):\n1. My dog is called Bruno. (Mar 1, 2026)" in digest
            assert "Mia" not in digest
            assert await sent(again) == []
        async with house(database, tmp_path, before=opened) as third:
            assert await sent(third) == []
            third.clock.advance(days=7)
            assert await sent(third) == []  # nothing happened since
            assert "on" in (await third.say("/digest"))[0]


async def test_its_numbers_lead_to_undo(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/digest on")
        await keep(opened, "My dog is called Bruno.")
        opened.clock.advance(days=7)
        await sent(opened)
        await opened.press("1")
        assert await opened.press("Undo") == ["Undone; I do not keep it."]
        assert "nothing about you yet" in (await opened.say("/memory"))[0]


async def test_what_is_over_or_never_needed_is_in_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await keep(opened, "My dog is called Bruno.")
        opened.clock.advance(days=31)
        await opened.say("/digest on")
        await keep(opened, "I am in Rome until Friday.")
        opened.clock.advance(days=7)
        [digest] = await sent(opened)
        assert "Over (1):\n1. I am in Rome until Friday." in digest
        assert "Never needed for a month (1):\n2. My dog is called Bruno." in digest


async def test_the_button_under_it_ends_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/digest on")
        await keep(opened, "My dog is called Bruno.")
        opened.clock.advance(days=7)
        await sent(opened)
        assert await opened.press("No more digests") == ["You get no weekly digest."]
        await keep(opened, "My cat is called Mia.")
        opened.clock.advance(days=8)
        assert await sent(opened) == []


@pytest.mark.parametrize("words", ["/digest on", "/digest off", "/digest"])
async def test_in_a_group_it_is_no_topic(database: Database, tmp_path: Path, words: str) -> None:
    async with house(database, tmp_path) as opened:
        assert "private chat" in (await opened.say(words, **GROUP))[0]
