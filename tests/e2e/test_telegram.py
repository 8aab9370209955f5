"""Merk on Telegram as people meet it: groups, topics, strangers, buttons, faults."""

import asyncio
import re
from pathlib import Path

from tests.e2e.merk_process import deployment
from tests.fakes.messages_api import texts

ADA, BOB, GROUP = 42, 77, -100500

LONG = "\n\n".join(
    [
        "# A long answer 🎉",
        *(
            f"## Part {number}\n\nSome **bold** and *soft* words 👩‍👩‍👧‍👦 with a "
            f"[link](https://example.org/{number}).\n\n"
            f"```python\ndef part_{number}():\n    return {{'n': {number}, 'text': '<b>&amp;'}}\n```\n\n"
            "| name | value |\n|---|---|\n| a | 1 |\n| b | 2 |\n\n" + "word " * 70
            for number in range(1, 24)
        ),
        "The very end.",
    ]
)


async def test_p34_a_12000_character_answer_arrives_whole_and_formatted(tmp_path: Path) -> None:
    assert len(LONG) > 12_000
    async with deployment(tmp_path) as merk:
        merk.model.on(user="long").reply(LONG)
        merk.telegram.private_chat(ADA, "Ada")
        await merk.start()
        merk.telegram.say(ADA, "a long one please")
        await merk.telegram.wait_text(ADA, "The very end", timeout=40)
        parts = merk.telegram.messages(ADA, by_bot=True)
        whole = "".join(part.text for part in parts)
        assert len(parts) >= 3
        for number in range(1, 24):
            assert f"Part {number}" in whole
            assert f"def part_{number}():" in whole
        assert "'<b>&amp;'" in whole
        assert whole.count("👩‍👩‍👧‍👦") == 23
        kinds = {entity["type"] for part in parts for entity in part.entities}
        assert {"bold", "italic", "pre", "text_link"} <= kinds
        assert merk.telegram.violations == []


async def test_p35_broken_markup_arrives_once_as_plain_text(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada")
        merk.telegram.fail("parse", "sendMessage$", times=1)
        await merk.start()
        merk.telegram.say(ADA, "**hello**")
        await merk.telegram.wait_text(ADA, "hello", timeout=20)
        await asyncio.sleep(0.5)
        assert len(merk.telegram.messages(ADA, by_bot=True)) == 1


async def test_p33_a_429_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada")
        merk.telegram.fail("429", "sendMessage$|sendMessageDraft", times=2, retry_after=1)
        await merk.start()
        merk.telegram.say(ADA, "hello")
        await merk.telegram.wait_text(ADA, "Echo: hello", timeout=20)
        assert [m.text for m in merk.telegram.messages(ADA, by_bot=True)] == ["Echo: hello"]
        assert merk.telegram.violations_of("flood") == []


async def test_p32_a_lost_answer_to_a_send_is_offered_and_not_repeated(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada")
        merk.telegram.fail("reset_after", "sendMessage$", times=1)
        await merk.start()
        merk.telegram.say(ADA, "hello")
        await merk.telegram.wait_text(ADA, "may not have reached you", timeout=20)
        assert [m.text for m in merk.telegram.messages(ADA, by_bot=True)].count("Echo: hello") == 1


async def test_p31_what_was_said_while_merk_was_down_is_answered(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada")
        for number in range(5):
            merk.telegram.say(ADA, f"offline {number}")
        await merk.start()
        await merk.telegram.wait_text(ADA, "Echo: offline 4", timeout=30)
        assert merk.telegram.answers(ADA) == [f"Echo: offline {number}" for number in range(5)]


async def test_p38_each_topic_of_a_private_chat_is_a_session(tmp_path: Path) -> None:
    async with deployment(tmp_path, topics=True) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada", topics=True)
        work, home = telegram.topic(ADA, "Work"), telegram.topic(ADA, "Home")
        await merk.start()
        telegram.say(ADA, "the code word is lighthouse", thread=work)
        await telegram.wait_text(ADA, "Echo: the code", thread=work, timeout=20)
        telegram.say(ADA, "what is it?", thread=home)
        await telegram.wait_text(ADA, "Echo: what", thread=home, timeout=20)
        asked = [request for request in merk.model.requests if request.body.get("stream")][-1]
        assert "lighthouse" not in texts(asked)
        telegram.say(ADA, "/newchat Garden", thread=home)
        opened = await telegram.wait_for(
            lambda: next((m for m in telegram.messages(ADA, by_bot=True) if "fresh chat" in m.text), None), timeout=20
        )
        assert opened is not None
        assert opened.thread not in (work, home, None)
        assert telegram.violations == []


async def test_p36_p37_an_answer_to_a_deleted_topic_is_offered_in_the_main_chat(tmp_path: Path) -> None:
    async with deployment(tmp_path, topics=True) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada", topics=True)
        work = telegram.topic(ADA, "Work")
        merk.model.fault("slow_start", times=1, seconds=1.5)
        await merk.start()
        telegram.say(ADA, "secret plans", thread=work)
        await telegram.wait_for(lambda: merk.model.requests, timeout=20)
        telegram.delete_topic(ADA, work)
        await telegram.wait_text(ADA, "This topic is gone", timeout=30)
        assert all("secret plans" not in message.text for message in telegram.messages(ADA, by_bot=True))


async def test_in_a_group_it_answers_when_addressed_and_knows_who_speaks(tmp_path: Path) -> None:
    async with deployment(tmp_path, more={"MERK_ACCESS__ADMIT": "open"}) as merk:
        telegram = merk.telegram
        telegram.add_user(ADA, "Ada")
        telegram.add_user(BOB, "Bob")
        telegram.supergroup(GROUP, "Friends", members={ADA: "member", BOB: "member"})
        await merk.start()
        telegram.say(GROUP, "just talking", user=BOB)
        telegram.say(GROUP, "@merk_test_bot we meet on Monday", user=BOB)
        await telegram.wait_text(GROUP, "we meet on Monday", timeout=20)
        await asyncio.sleep(1)
        (asked,) = [request for request in merk.model.requests if request.body.get("stream")]
        assert "Bob: we meet on Monday" in texts(asked)
        assert "just talking" not in texts(asked)
        assert len(telegram.messages(GROUP, by_bot=True)) == 1


async def test_p01_private_facts_stay_out_of_a_group_and_a_groups_facts_stay_in_it(tmp_path: Path) -> None:
    async with deployment(tmp_path, more={"MERK_ACCESS__ADMIT": "open"}) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada")
        telegram.add_user(BOB, "Bob")
        telegram.supergroup(GROUP, "Friends", members={ADA: "member", BOB: "member"})
        await merk.start()
        telegram.say(ADA, "/remember my diary is under the bed")
        await telegram.wait_text(ADA, "Saved", timeout=20)
        telegram.say(GROUP, "/remember@merk_test_bot we meet at the lake", user=BOB)
        await telegram.wait_text(GROUP, "Saved", timeout=20)
        telegram.say(GROUP, "@merk_test_bot what do you know?", user=ADA)
        await telegram.wait_text(GROUP, "what do you know", timeout=20)
        in_group = texts([request for request in merk.model.requests if request.body.get("stream")][-1])
        assert "diary" not in in_group
        assert "lake" in in_group
        telegram.say(ADA, "and here?")
        await telegram.wait_text(ADA, "and here", timeout=20)
        in_private = texts([request for request in merk.model.requests if request.body.get("stream")][-1])
        assert "diary" in in_private
        assert "lake" not in in_private


async def test_p41_nobody_else_can_press(tmp_path: Path) -> None:
    async with deployment(tmp_path, more={"MERK_ACCESS__ADMIT": "open"}) as merk:
        telegram = merk.telegram
        telegram.add_user(ADA, "Ada")
        telegram.add_user(BOB, "Bob", language="de")
        telegram.supergroup(GROUP, "Friends", members={ADA: "member", BOB: "member"})
        await merk.start()
        telegram.say(GROUP, "/remember@merk_test_bot the key is under the mat", user=ADA)
        card = await telegram.wait_text(GROUP, "Saved", timeout=20)
        telegram.press(GROUP, card.id, "Undo", user=BOB)
        await telegram.wait_for(lambda: telegram.presses(GROUP) and telegram.presses(GROUP)[0].answers, timeout=10)
        assert "jemand anderen" in str(telegram.presses(GROUP)[0].answers)
        assert merk.rows("SELECT count(*) FROM facts") == [(1,)]
        telegram.press(GROUP, card.id, "Undo", user=ADA)
        await telegram.wait_text(GROUP, "Undone", timeout=10)
        assert merk.rows("SELECT count(*) FROM facts") == [(0,)]


async def test_p42_buttons_survive_a_restart_and_a_second_press_says_so(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada")
        await merk.start()
        telegram.say(ADA, "/remember I like tea")
        card = await telegram.wait_text(ADA, "Saved", timeout=20)
        token = card.raw["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
        await merk.kill()
        await merk.start()
        telegram.press(ADA, card.id, "Undo")
        await telegram.wait_text(ADA, "Undone", timeout=10)
        telegram.press(ADA, card.id, token, stale=True)
        await telegram.wait_for(
            lambda: len(telegram.presses(ADA)) == 2 and telegram.presses(ADA)[1].answers, timeout=10
        )
        assert "already" in str(telegram.presses(ADA)[1].answers)


async def test_a_stranger_is_paired_and_costs_no_model_call(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada")
        telegram.private_chat(BOB, "Bob", language="ru")
        await merk.start()
        telegram.say(ADA, "hello")
        await telegram.wait_text(ADA, "Echo: hello", timeout=20)
        calls = len(merk.model.requests)
        telegram.say(BOB, "привет")
        told = await telegram.wait_text(BOB, "Ваш код", timeout=10)
        code = re.search(r"[A-Z2-9]{8}", told.text)
        assert code
        asked = await telegram.wait_text(ADA, code[0], timeout=10)
        assert len([r for r in merk.model.requests[calls:] if r.body.get("stream")]) == 0
        telegram.press(ADA, asked.id, "Let in")
        await telegram.wait_text(BOB, "Привет, Bob", timeout=10)
        telegram.say(BOB, "теперь?")
        await telegram.wait_text(BOB, "Echo: теперь", timeout=10)


async def test_merk_approve_works_beside_a_running_merk(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        telegram = merk.telegram
        telegram.private_chat(BOB, "Bob")
        await merk.start()
        telegram.say(BOB, "hi")
        told = await telegram.wait_text(BOB, "Your code is", timeout=10)
        code = re.search(r"[A-Z2-9]{8}", told.text)
        assert code
        assert await merk.run("approve", code[0]) == (0, "Bob may talk to Merk now.\n")
        await telegram.wait_text(BOB, "Hello Bob", timeout=15)
        status, said = await merk.run("approve", "WRONGONE")
        assert status == 1
        assert "Codes hold for an hour" in said


async def test_p43_an_edit_offers_to_answer_again_and_never_runs_a_command(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada")
        await merk.start()
        said = telegram.say(ADA, "helo")
        await telegram.wait_text(ADA, "Echo: helo", timeout=20)
        telegram.edit(ADA, said.id, "hello")
        card = await telegram.wait_text(ADA, "You edited", timeout=10)
        telegram.press(ADA, card.id, "Answer again")
        await telegram.wait_text(ADA, "Echo: hello", timeout=10)
        telegram.edit(ADA, said.id, "/remember the moon")
        await asyncio.sleep(1)
        assert merk.rows("SELECT count(*) FROM facts") == [(0,)]


async def test_p39_an_album_and_a_voice_message_get_a_clear_sentence_and_are_kept(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada", language="de")
        await merk.start()
        telegram.send_media(ADA, "voice")
        await telegram.wait_text(ADA, "Sprachnachrichten", timeout=20)
        telegram.album(ADA, ["photo", "photo"])
        await telegram.wait_text(ADA, "Bilder", timeout=20)
        await asyncio.sleep(1)
        assert len(telegram.messages(ADA, by_bot=True)) == 2
        kept = [row[0] for row in merk.rows("SELECT text FROM messages WHERE role = 'user'")]
        assert kept[0] == "[voice]"
        assert kept[1].count("photo") == 2


async def test_stop_ends_a_running_answer(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        telegram = merk.telegram
        telegram.private_chat(ADA, "Ada")
        merk.model.fault("slow_chunks", times=1, seconds=0.5)
        merk.model.on(user="count").reply(" ".join(str(number) for number in range(200)))
        await merk.start()
        telegram.say(ADA, "count")
        await telegram.wait_for(lambda: telegram.drafts(ADA), timeout=20)
        telegram.say(ADA, "/stop")
        await telegram.wait_text(ADA, "Stopped", timeout=10)
        assert "199" not in telegram.last(ADA).text


async def test_a_second_instance_is_named_and_refused(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        await merk.start()
        status, said = await merk.run("reindex")
        assert status == 1
        assert "is in use by `merk run` (process" in said
