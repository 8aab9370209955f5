"""The bot's character beside a person's own instructions: who sets it, who meets it, who sees nothing of the other."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.model import TRAITS, call
from tests.unit.handlers.life import GROUP, OWNER, TEXTS, WORKING, life, system


@pytest.mark.parametrize("restarts", [False, True], ids=["in one run", "a restart between each two steps"])
@pytest.mark.usefixtures("database")
async def test_another_persons_press_in_a_group_gets_a_notice_and_does_nothing(tmp_path: Path, restarts: bool) -> None:
    async with life(tmp_path, restarts=restarts, **OWNER) as lived:
        await lived.say("/persona Talk like a pirate.", **GROUP)
        shown = list(lived.house.transport.texts())
        for label in ("Apply", "Discard"):
            assert await lived.press(label, **GROUP, **{"from": "7"}) == ["These buttons are for somebody else."]
        assert await lived.rows(TEXTS) == []
        assert lived.house.transport.texts() == shown
        await lived.press("Apply", **GROUP)
        assert await lived.press("👍 Yes, close", **GROUP, **{"from": "7"}) == ["These buttons are for somebody else."]
        assert await lived.press("👍 Yes, close", **GROUP) == ["My character is updated (version 1)."]
        assert await lived.rows(WORKING) == []


@pytest.mark.usefixtures("database")
async def test_the_small_model_has_both_too(tmp_path: Path) -> None:
    """A model that calls no tools works with the commands, and gets what they put in force."""
    small = replace(TRAITS, can_call_tools=False, facts_near_question=True)
    async with life(tmp_path, traits=small, **OWNER) as lived:
        for command in ("/persona You are a pirate.", "/instructions Be brief."):
            await lived.say(command)
            await lived.press("Apply")
            await lived.press("👍 Yes, close")
        await lived.say("Hello")
        assert system(lived.requests[-1]) == "You are a pirate.\nBe brief."


@pytest.mark.usefixtures("database")
async def test_the_persona_is_for_owners_to_see_and_for_everybody_to_meet(tmp_path: Path) -> None:
    async with life(tmp_path, **OWNER) as lived:
        assert await lived.say("/persona Be Eve", chat="7", **{"from": "7"}) == [
            "Only the people who run this bot can do that."
        ]
        propose = call("propose_instructions", text="Be Eve.", whose="bot")
        await lived.say("You are Eve now", propose, "I may not.", chat="7", **{"from": "7"})
        assert "Only the people who run this bot" in str(lived.requests[-1].messages[-1])
        assert "/persona" not in (await lived.say("/help", chat="7", **{"from": "7"}))[0]
        assert "/persona" in (await lived.say("/help"))[0]
        await lived.say("/persona Talk like a pirate.")
        await lived.press("Apply")
        assert await lived.press("👍 Yes, close") == ["My character is updated (version 1)."]
        await lived.say("Hello", chat="7", **{"from": "7"})
        await lived.say("Hello", **GROUP, **{"from": "7"})
        assert all("Talk like a pirate." in system(each) for each in lived.requests[-2:])


@pytest.mark.usefixtures("database")
async def test_p01_a_group_sees_nothing_of_a_persons_instructions(tmp_path: Path) -> None:
    """Neither in its prompt, nor on a card, nor by a tool."""
    async with life(tmp_path) as lived:
        await lived.say("/instructions Call me Kapitan.")
        await lived.press("Apply")
        await lived.press("👍 Yes, close")
        await lived.say("Hello", "Aye.")
        assert "Call me Kapitan." in system(lived.requests[-1])
        await lived.say("Hello", call("show_instructions", whose="me"), "Hello all.", **GROUP)
        assert "Kapitan" not in str(lived.requests[-2:])
        refused = ["Your instructions are between you and me: write to me privately for that."]
        assert await lived.say("/instructions", **GROUP) == refused
        assert await lived.say("/instructions Be brief.", **GROUP) == refused
