"""What a person experiences, handler by handler, on a whole Merk with fakes at its edges."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from memory.ports import ChatMessage, Failure, StopReason, TextBlock, ToolResult
from memory.storage.database import Database
from memory.storage.tables import facts, messages, sessions
from tests.fakes.house import House, house
from tests.fakes.model import Fails, Says, call


def seen(message: ChatMessage) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock | ToolResult))


async def rows(opened: House, query: sa.Select[Any]) -> list[str]:
    async with opened.database.read() as connection:
        return [str(value) for value in (await connection.execute(query)).scalars()]


async def test_an_answer_is_recorded_with_its_question(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "It is Tuesday.") as opened:
        assert await opened.say("What day is it?") == ["It is Tuesday."]
        assert await rows(opened, sa.select(messages.c.text)) == ["What day is it?", "It is Tuesday."]


async def test_the_next_turn_knows_the_one_before(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "Hello Ada.") as opened:
        await opened.say("I am Ada.")
        await opened.say("Who am I?")
        assert [seen(message) for message in opened.model.requests[1].messages[:2]] == ["I am Ada.", "Hello Ada."]


async def test_commands_and_notices_stay_out_of_the_conversation(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/help")
        await opened.say("/nonsense")
        assert await rows(opened, sa.select(messages.c.text)) == []


async def test_p09_a_fact_is_kept_by_the_tool_and_told_from_the_stored_row(database: Database, tmp_path: Path) -> None:
    script = (call("remember_fact", fact="My dog is called Bruno."), "Noted.")
    async with house(database, tmp_path, *script) as opened:
        assert await opened.say("Remember that my dog is called Bruno") == ["Noted.", "Saved: My dog is called Bruno"]
        assert opened.labels() == ["Undo", "Edit"]
        assert await rows(opened, sa.select(facts.c.text)) == ["My dog is called Bruno"]
        result = opened.model.requests[1].messages[-1].blocks[0]
        assert isinstance(result, ToolResult)
        assert result.text == "Stored: My dog is called Bruno"


async def test_p09_without_the_tool_nothing_is_kept_whatever_the_model_says(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "Saved! I will remember Bruno.") as opened:
        await opened.say("Remember Bruno")
        assert await rows(opened, sa.select(facts.c.text)) == []
        assert len(opened.transport.texts()) == 1


async def test_remember_keeps_at_once_and_undo_takes_it_back(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert await opened.say("/remember I like tea") == ["Saved: I like tea"]
        assert await opened.press("Undo") == ["Undone; I do not keep it."]
        assert await rows(opened, sa.select(facts.c.text)) == []


async def test_edit_takes_the_next_message_as_the_new_words(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea")
        assert await opened.press("Edit") == ["Send me the new wording."]
        assert await opened.say("I like green tea") == ["Saved: I like green tea"]
        in_force = sa.select(facts.c.text).where(facts.c.valid_to.is_(None))
        assert await rows(opened, in_force) == ["I like green tea"]
        assert opened.model.requests == []


async def test_the_same_fact_twice_is_one_row(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea")
        assert await opened.say("/remember i like tea.") == ["I know that already: I like tea"]
        assert len(await rows(opened, sa.select(facts.c.text))) == 1


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("The new one", ["I live in Rome"]),
        ("Both", ["I live in Bonn", "I live in Rome"]),
        ("The old one", ["I live in Bonn"]),
    ],
)
async def test_p14_a_contradiction_is_settled_by_the_person(
    database: Database, tmp_path: Path, choice: str, left: list[str]
) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I live in Bonn")
        (asked,) = await opened.say("/remember I live in Rome")
        assert "But I also know: I live in Bonn" in asked
        await opened.press(choice)
        in_force = sa.select(facts.c.text).where(facts.c.valid_to.is_(None)).order_by(facts.c.id)
        assert await rows(opened, in_force) == left


async def test_p24_a_secret_is_left_out_and_said_so(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        (said,) = await opened.say("/remember my mail password is hunter2hunter2 and I like tea")
        assert "hunter2" not in said
        assert "I left out" in said
        assert "hunter2" not in str(await rows(opened, sa.select(facts.c.text)))


async def test_p22_words_of_others_need_a_tap(database: Database, tmp_path: Path) -> None:
    script = (call("remember_fact", fact="The admin password is tiger."), "I asked.")
    async with house(database, tmp_path, *script) as opened:
        said = await opened.say("Please note this", quote="remember that the admin is called Eve")
        assert said[0] == "I asked."
        assert "not your own words" in said[1]
        assert await rows(opened, sa.select(facts.c.text)) == []
        await opened.press("Keep")
        assert len(await rows(opened, sa.select(facts.c.text))) == 1


async def test_forget_without_a_match_says_so(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert await opened.say("/forget cat") == [
            "Nothing I keep or have noticed matches “cat”, and nobody said it here."
        ]


async def test_forget_with_one_match_erases_only_on_yes(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember My dog is called Bruno")
        await opened.say("/forget dog")
        assert await opened.press("No") == ["Nothing was changed."]
        assert len(await rows(opened, sa.select(facts.c.text))) == 1
        await opened.say("/forget dog")
        (receipt,) = await opened.press("Yes, forget")
        assert "1 fact" in receipt
        assert await rows(opened, sa.select(facts.c.text)) == []


async def test_forget_with_several_matches_lets_choose(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        for fact in ("I like green tea", "I like black tea", "I like coffee"):
            await opened.say(f"/remember {fact}")
        (asked,) = await opened.say("/forget tea")
        assert asked.startswith("2 things match. Which one shall I forget?\n\n1. I like green tea · kept")
        assert opened.labels() == ["1. I like green tea", "2. I like black tea", "All of them", "None"]
        await opened.press("1. I like green tea")
        assert opened.labels(opened.transport.shown[max(opened.transport.shown, key=int)]) == ["Yes, forget", "No"]
        await opened.press("Yes, forget")
        assert await rows(opened, sa.select(facts.c.text).order_by(facts.c.id)) == ["I like black tea", "I like coffee"]


async def test_all_of_them_needs_a_second_yes(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        for fact in ("I like green tea", "I like black tea"):
            await opened.say(f"/remember {fact}")
        await opened.say("/forget tea")
        await opened.press("All of them")
        assert len(await rows(opened, sa.select(facts.c.text))) == 2
        (receipt,) = await opened.press("Yes, forget all 2")
        assert "2 facts" in receipt


async def test_the_model_is_told_to_ask_which(database: Database, tmp_path: Path) -> None:
    script = (call("forget_fact", query="tea"), "Which one?")
    async with house(database, tmp_path, *script) as opened:
        for fact in ("I like green tea", "I like black tea"):
            await opened.say(f"/remember {fact}")
        said = await opened.say("forget my tea")
        assert said[0] == "Which one?"
        assert "ask which one they mean" in seen(opened.model.requests[1].messages[-1])


async def test_memory_pages_search_and_open(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert "nothing about you yet" in (await opened.say("/memory"))[0]
        for number in range(8):
            await opened.say(f"/remember The number of my locker at place {number} is {number}")
        (page,) = await opened.say("/memory")
        assert page.startswith("I keep 8 facts:")
        (page,) = await opened.press("More ›")
        assert "8. " in page
        (found,) = await opened.say("/memory place 3")
        assert found.startswith("1 fact matches")
        (one,) = await opened.press("1. The number of my locker at place 3 is 3")
        assert "Person 42" in one
        await opened.press("Forget")
        (receipt,) = await opened.press("Yes, forget")
        assert "1 fact" in receipt


async def test_p20_a_full_budget_is_seen_and_nothing_is_lost(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, facts_budget=600) as opened:
        (said,) = await opened.say("/remember " + "I like long walks by the sea. " * 17)
        assert "Your facts fill" in said
        assert "Tidy up" in opened.labels()
        (said,) = await opened.say("/remember " + "I like long walks in the hills. " * 10)
        assert "full" in said
        assert len(await rows(opened, sa.select(facts.c.text))) == 1


async def test_newchat_begins_with_nothing_but_the_facts(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea")
        await opened.say("my code word is lighthouse")
        assert "new chat begins here: Trip" in (await opened.say("/newchat Trip"))[0]
        await opened.say("what do you know?")
        request = opened.model.requests[-1]
        shown = str(request)
        assert "I like tea" in shown
        assert "lighthouse" not in shown


async def test_newchat_opens_a_thread_where_there_are_threads(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, threads=True) as opened:
        await opened.say("/newchat Trip")
        (shown,) = opened.transport.shown.values()
        assert shown.place.thread != ""
        assert await rows(opened, sa.select(sessions.c.title).where(sessions.c.thread == shown.place.thread)) == [
            "Trip"
        ]


async def test_chats_switch_rename_export_and_delete(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("the first chat is about gardens")
        await opened.say("/newchat Second")
        await opened.say("the second chat")
        await opened.say("/chats")
        first = opened.labels()[1]
        await opened.press(first)
        await opened.press("Rename")
        assert await opened.say("Garden") == ["It is called “Garden” now."]
        await opened.say("/chats")
        await opened.press(next(label for label in opened.labels() if "Garden" in label))
        assert await opened.press("Switch to it") == ["You are in “Garden” again."]
        await opened.say("more about it")
        assert "gardens" in str(opened.model.requests[-1])
        await opened.say("/chats")
        await opened.press(next(label for label in opened.labels() if "Garden" in label))
        await opened.press("Export")
        file = next(shown.part.file for shown in opened.transport.shown.values() if shown.part.file)
        assert file is not None
        assert "the first chat is about gardens" in file[1]
        await opened.say("/chats")
        await opened.press(next(label for label in opened.labels() if "Garden" in label))
        await opened.press("Delete")
        (receipt,) = await opened.press("Yes, delete")
        assert "messages" in receipt
        assert "gardens" not in str(await rows(opened, sa.select(messages.c.text)))
        await opened.say("still here?")
        assert "second chat" not in str(opened.model.requests[-1])


async def test_language_is_chosen_and_followed(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/language")
        assert await opened.press("Русский") == ["Теперь по-русски."]
        assert "Ваши чаты" in (await opened.say("/chats"))[0]


@pytest.mark.parametrize("failure", [failure for failure in Failure if failure is not Failure.TOO_LONG])
async def test_a_failing_model_costs_one_sentence_and_a_button(
    database: Database, tmp_path: Path, failure: Failure
) -> None:
    async with house(database, tmp_path, Fails(failure), "Here I am.") as opened:
        (said,) = await opened.say("hello")
        assert len(said) < 150
        assert "hello" not in said
        assert "Here I am." in await opened.press("Try again")
        assert await rows(opened, sa.select(messages.c.text)) == ["hello", "Here I am."]


async def test_words_that_came_before_a_break_are_kept_and_marked(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, Fails(Failure.CUT, after="The first half")) as opened:
        said = await opened.say("tell me")
        assert said[0].startswith("The first half")
        assert "broke off" in said[0]
        assert "broke off" in said[1]


async def test_a_refused_turn_does_not_come_back(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, Says("I will not", StopReason.REFUSED)) as opened:
        (said,) = await opened.say("something wicked")
        assert "declined" in said
        await opened.say("something nice")
        assert "wicked" not in str(opened.model.requests[-1].messages)


async def test_a_cut_answer_says_so(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, Says("Once upon a time", StopReason.LENGTH)) as opened:
        (said,) = await opened.say("a story")
        assert said.startswith("Once upon a time")
        assert "ends here" in said


async def test_stop_keeps_what_was_said(database: Database, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with house(database, tmp_path, Says("one two three", gate=gate)) as opened:
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"text": "count"})
        async with asyncio.timeout(5):
            while not opened.model.requests:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await opened.say("/stop")
        (said,) = opened.transport.texts()
        assert said.startswith("one")
        assert "three" not in said
        assert "Stopped" in said
        assert opened.model.abandoned == 1


async def test_stop_right_after_the_question_stops_its_answer(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, Says("one two three", gate=asyncio.Event())) as opened:
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"text": "count"})
        await opened.transport.accept("b", {"text": "/stop"})
        await opened.settle()
        (said,) = opened.transport.texts()
        assert "Stopped" in said


async def test_a_tool_that_does_not_end_is_cut_off_by_rounds(database: Database, tmp_path: Path) -> None:
    script = [call("forget_fact", query="x") for _ in range(6)]
    async with house(database, tmp_path, *script, "Enough.") as opened:
        assert await opened.say("loop") == ["Enough."]
        assert opened.model.requests[-1].must_answer


async def test_p45_nothing_internal_is_shown_when_a_handler_breaks(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        opened.memory.facts.list = None  # pyright: ignore[reportAttributeAccessIssue] - the bug of tomorrow
        (said,) = await opened.say("/memory")
        assert said == "Something went wrong on my side. Nothing of yours was lost; please try again."


async def test_p02_nobody_sees_anothers_facts_or_chats(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember my diary is red", chat="42")
        await opened.say("/remember my cat is grey", chat="77", **{"from": "77"})
        (mine,) = await opened.say("/memory", chat="77", **{"from": "77"})
        assert "cat" in mine
        assert "diary" not in mine
        assert "nobody said it" in (await opened.say("/forget diary", chat="77", **{"from": "77"}))[0]


async def test_p43_an_edited_message_is_offered_to_be_answered_again(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "To what?", "To Riga.") as opened:
        await opened.say("where to", ref="m1")
        assert await opened.say("where to, Riga?", edit=True, ref="m1") == ["You edited your message."]
        assert "To Riga." in await opened.press("Answer again")
        assert (await rows(opened, sa.select(messages.c.text)))[0] == "where to, Riga?"


async def test_p43_an_edit_of_a_reply_changes_only_ones_own_words(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("I agree", ref="m1", quote="We should go")
        assert await opened.say("I agree", ref="m1", edit=True, quote="We should go") == []
        await opened.say("I disagree", ref="m1", edit=True, quote="We should go")
        await opened.press("Answer again")
        assert (await rows(opened, sa.select(messages.c.text)))[0] == "> We should go\n\nI disagree"


async def test_a_wait_is_for_what_is_said_after_the_tap_by_the_same_person(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea", group=True)
        await opened.say("/remember I like rain", group=True, **{"from": "77"})
        await opened.press("Edit", group=True, **{"from": "77"})
        await opened.press("Edit", group=True)
        assert await opened.say("I like green tea", group=True) == ["Saved: I like green tea"]
        assert await opened.say("I like warm rain", group=True, **{"from": "77"}) == ["Saved: I like warm rain"]


async def test_a_wait_holds_after_newchat_and_can_be_cancelled(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea")
        await opened.say("/newchat")
        await opened.press("Edit")
        assert await opened.say("I like green tea") == ["Saved: I like green tea"]
        await opened.press("Edit")
        assert await opened.press("Cancel") == ["Nothing was changed."]
        assert await opened.say("how are you?") == ["Very well."]


async def test_a_prompt_that_is_too_long_is_tried_shorter(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        for number in range(6):
            await opened.say(f"message {number}")
        no_summary = Fails(Failure.OVERLOADED)
        opened.model.script.extend((Fails(Failure.TOO_LONG), no_summary, "It fits now."))
        assert await opened.say("and now?") == ["It fits now."]
        assert "message 0" not in str(opened.model.requests[-1].messages)
        assert "message 5" in str(opened.model.requests[-1].messages)


async def test_a_single_message_that_is_too_long_gets_a_clear_answer(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, *(Fails(Failure.TOO_LONG) for _ in range(3))) as opened:
        (said,) = await opened.say("a very long message")
        assert "more than the model can read at once" in said


async def test_a_group_chat_is_deleted_only_by_who_opened_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("hello all", group=True)
        await opened.say("/chats", group=True, **{"from": "77"})
        await opened.press(opened.labels()[0], group=True, **{"from": "77"})
        assert await opened.press("Delete", group=True, **{"from": "77"}) == [
            "Only who opened this chat, or my owner, can delete it."
        ]


async def test_an_unknown_command_in_a_group_is_for_another_bot(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        assert await opened.say("/weather", group=True) == []


async def test_p15_what_was_superseded_is_never_shown_again(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I live in Bonn")
        await opened.say("/remember I live in Rome")
        await opened.press("The new one")
        await opened.say("where do I live?")
        asked = str(opened.model.requests[-1])
        assert "I live in Rome" in asked
        assert "Bonn" not in asked


async def test_p16_what_was_said_is_kept_before_it_is_answered(database: Database, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with house(database, tmp_path, Says("late answer", gate=gate)) as opened:
        assert opened.transport.accept is not None
        await opened.transport.accept("a", {"text": "keep this in mind"})
        async with asyncio.timeout(5):
            while not opened.model.requests:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        assert await rows(opened, sa.select(messages.c.text)) == ["keep this in mind"]
        gate.set()
        await opened.settle()


async def test_p17_facts_stay_when_the_window_is_cut(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember I like tea")
        for number in range(14):
            await opened.say(f"message {number}")
        request = opened.model.requests[-1]
        shown = "\n".join(seen(message) for message in request.messages)
        assert "message 0" not in shown
        assert "message 13" in shown
        assert "I like tea" in request.system[1].text


async def test_p55_an_idle_bot_costs_nothing(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/help")
        for _ in range(5):
            opened.clock.advance(hours=6)
            await opened.memory.learn()
        assert opened.model.requests == []


async def test_p25_the_receipt_is_counted_from_the_stores(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("/remember My dog is called Bruno")
        await opened.say("Bruno was at the vet")
        await opened.say("/forget dog")
        (receipt,) = await opened.press("Yes, forget")
        assert "1 fact" in receipt
        assert "1 message" in receipt
        assert "Bruno" not in str(await rows(opened, sa.select(messages.c.text)))
