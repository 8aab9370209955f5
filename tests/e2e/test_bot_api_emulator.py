"""The Bot API emulator's methods, held to the facts about the real server by the real client library.

One rule: each limit and each trap that Merk must survive is shown here to exist.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telegram import Bot, MessageEntity, ReplyParameters, Update
from telegram.error import BadRequest, ChatMigrated, Forbidden

from tests.e2e.bot_api_stage import (
    ADA,
    BASIC,
    BOB,
    FORUM,
    GROUP,
    impatient_bot,
    keyboard,
    peopled_api,
    raw_call,
    refused,
)
from tests.fakes.bot_api import BotApi, BotApiError
from tests.fakes.bot_api.entities import format_text, utf16_length, utf16_slice

TWO_DAYS = 48 * 3600

REFUSALS: list[tuple[str, Callable[[Bot], Awaitable[object]]]] = [
    ("message text is empty", lambda bot: bot.send_message(ADA, "")),
    ("text must be non-empty", lambda bot: bot.send_message(ADA, " \n ")),
    ("text must be non-empty", lambda bot: bot.send_message(ADA, "<b></b>", "HTML")),
    ("message is too long", lambda bot: bot.send_message(ADA, "x" * 4097)),
    ("text is too long", lambda bot: bot.send_message(ADA, "<b></b>" * 4682, "HTML")),
    ("unsupported parse_mode", lambda bot: bot.send_message(ADA, "x", "BBCode")),
    ("message caption is too long", lambda bot: bot.send_document(ADA, b"x", "y" * 1025)),
    ("chat not found", lambda bot: bot.send_message(77, "x")),
    ("chat_id is empty", lambda bot: bot.send_message("", "x")),
    ("message to be replied not found", lambda bot: bot.send_message(ADA, "x", reply_parameters=ReplyParameters(9))),
    ("message thread not found", lambda bot: bot.send_message(FORUM, "x", message_thread_id=1)),
    ("message thread not found", lambda bot: bot.send_message(ADA, "x", message_thread_id=5)),
    ("button_data_invalid", lambda bot: bot.send_message(ADA, "x", reply_markup=keyboard("é" * 33))),
    ("reply markup is too long", lambda bot: bot.send_message(ADA, "x", reply_markup=keyboard(*map(str, range(101))))),
    ("message to edit not found", lambda bot: bot.edit_message_text("x", ADA, 9)),
    ("message to delete not found", lambda bot: bot.delete_message(ADA, 9)),
    ("message identifiers are not specified", lambda bot: bot.delete_messages(ADA, [])),
    ("too many message identifiers specified", lambda bot: bot.delete_messages(ADA, list(range(1, 102)))),
    ("wrong parameter action in request", lambda bot: bot.send_chat_action(ADA, "dancing")),
    ("query is too old", lambda bot: bot.answer_callback_query("1")),
    ("message_too_long", lambda bot: bot.answer_callback_query("1", "x" * 201)),
    ("invalid file_id", lambda bot: bot.get_file("1")),
    ("image_process_failed", lambda bot: bot.send_photo(ADA, b"text")),
    ("the chat is not a forum", lambda bot: bot.create_forum_topic(GROUP, "x")),
    ("the chat is not a forum", lambda bot: bot.create_forum_topic(ADA, "x")),
    ("1-128", lambda bot: bot.create_forum_topic(FORUM, "x" * 129)),
    ("invalid icon color", lambda bot: bot.create_forum_topic(FORUM, "x", 1)),
    ("bot_command_invalid", lambda bot: bot.set_my_commands([("Start", "x")])),
    ("bot_command_invalid", lambda bot: bot.set_my_commands([("x" * 33, "x")])),
    ("bot_command_description_invalid", lambda bot: bot.set_my_commands([("x", "y" * 257)])),
    ("bot_commands_too_much", lambda bot: bot.set_my_commands([(f"c{n}", "x") for n in range(101)])),
    ("must be non-zero", lambda bot: bot.send_message_draft(ADA, 0, "x")),
    ("text must be non-empty", lambda bot: bot.send_message_draft(ADA, 1, " \t")),
    ("private", lambda bot: bot.send_message_draft(GROUP, 1, "x")),
    ("there are no administrators", lambda bot: bot.get_chat_administrators(ADA)),
    ("not enough rights", lambda bot: bot.pin_chat_message(GROUP, 1)),
    ("HTTPS URL must be provided", lambda bot: bot.set_webhook("http://example.org/")),
    ("unallowed characters", lambda bot: bot.set_webhook("https://x.org/", secret_token="a b")),
]


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with peopled_api() as emulator:
        yield emulator


@pytest.fixture
async def bot(api: BotApi) -> AsyncIterator[Bot]:
    async with impatient_bot(api) as client:
        yield client


async def test_it_refuses_in_the_words_of_the_real_server(bot: Bot) -> None:
    for words, call in REFUSALS:
        await refused(BadRequest, words, call(bot))


@pytest.mark.parametrize(
    ("mode", "source", "words"),
    [
        ("HTML", "<b>x", 'can\'t find end tag corresponding to start tag "b"'),
        ("HTML", "<br>x", 'unsupported start tag "br" at byte offset 0'),
        ("HTML", "a < b", 'unsupported start tag "" at byte offset 2'),
        ("HTML", "<b>x</i>", 'unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("MarkdownV2", "1.5", "character '.' is reserved and must be escaped"),
        ("MarkdownV2", "*x", "can't find end of bold entity at byte offset 0"),
        ("Markdown", "_x", "can't find end of the entity starting at byte offset 0"),
    ],
)
async def test_it_parses_with_telegrams_own_parser(bot: Bot, mode: str, source: str, words: str) -> None:
    await refused(BadRequest, f"can't parse entities: {words}", bot.send_message(ADA, source, mode))


async def test_it_counts_characters_after_parsing_and_offsets_in_utf16(api: BotApi, bot: Bot) -> None:
    await bot.send_message(ADA, f"<b>{'😀' * 4096}</b>", "HTML")  # 4096 code points are 8192 UTF-16 units
    sent = await bot.send_message(ADA, "😀 bold", entities=[MessageEntity("bold", 3, 4)])
    assert api.last(ADA).marked("bold") == ["bold"] == list(sent.parse_entities().values())
    for offset, length, words in (
        (1, 4, "begins in a middle of a UTF-16 symbol"),
        (0, 1, "ends in a middle of a UTF-16 symbol"),
        (3, 9, "ends after the end of the text"),
        (9, 1, "begins after the end of the text"),
    ):
        wrong = [MessageEntity("bold", offset, length)]
        await refused(BadRequest, words, bot.send_message(ADA, "😀 bold", entities=wrong))
    trimmed = await bot.send_message(ADA, " \n a\tb see <code>https://x.org</code> /start ", "HTML")
    assert trimmed.text == "a b see https://x.org /start"
    assert [entity.type for entity in trimmed.entities] == ["code", "bot_command"]
    assert api.violations == []


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet="ab 😀\n\r\té<", max_size=12),
    st.lists(st.tuples(st.sampled_from(["bold", "italic", "code"]), st.integers(0, 9), st.integers(0, 9)), max_size=4),
)
def test_entities_that_are_accepted_lie_within_the_text(text: str, spans: list[tuple[str, int, int]]) -> None:
    given_entities = [{"type": kind, "offset": start, "length": size} for kind, start, size in spans]
    try:
        done = format_text(text, None, given_entities)
    except BotApiError:
        return
    for entity in done.entities:
        assert 0 <= entity["offset"] < entity["offset"] + entity["length"] <= utf16_length(done.text)
        assert utf16_slice(done.text, entity["offset"], entity["length"])
    assert format_text(done.text, None, done.entities) == done


async def test_an_edit_keeps_the_history_and_must_change_something(api: BotApi, bot: Bot) -> None:
    sent = await bot.send_message(ADA, "one", reply_markup=keyboard("y", "n"))
    await bot.edit_message_text("two", ADA, sent.message_id)
    same = bot.edit_message_text("two", ADA, sent.message_id)
    await refused(BadRequest, "message is not modified: specified new message content and reply markup are", same)
    await bot.edit_message_reply_markup(ADA, sent.message_id, reply_markup=keyboard("z"))
    versions = api.last(ADA).versions
    assert [version.text for version in versions] == ["one", "two", "two"]
    assert [len(version.buttons) for version in versions] == [1, 0, 1]
    await refused(BadRequest, "message can't be edited", bot.edit_message_text("x", ADA, api.say(ADA, "mine").id))


async def test_one_old_message_fails_a_whole_batch_outside_supergroups(api: BotApi, bot: Bot) -> None:
    for chat in (ADA, BASIC):
        ids = [(await bot.send_message(chat, str(number))).message_id for number in range(3)]
        api.age(chat, ids[1], TWO_DAYS + 1)
        words = "message can't be deleted for everyone"
        await refused(BadRequest, words, bot.delete_messages(chat, [*ids, 9999]))
        await refused(BadRequest, words, bot.delete_message(chat, ids[1]))
        assert api.answers(chat) == ["0", "1", "2"]
        assert await bot.delete_messages(chat, [ids[0], ids[2], 9999])
        assert [message.deleted_by for message in api.deleted(chat)] == ["bot", "bot"]
    foreign = api.say(GROUP, "not yours")
    assert await bot.delete_messages(GROUP, [foreign.id])  # True, and nothing happened
    assert api.message(GROUP, foreign.id) is foreign
    await refused(BadRequest, "message can't be deleted", bot.delete_message(GROUP, foreign.id))
    assert await bot.delete_message(ADA, api.say(ADA, "a person's words").id)


async def test_a_draft_lives_thirty_seconds_or_until_the_message(api: BotApi, bot: Bot) -> None:
    for text in ("", "Good", "Good day"):
        await bot.send_message_draft(ADA, 7, text)
    assert [draft.text for draft in api.drafts(ADA, visible=True)] == ["Good day"]
    api.age_drafts(31)
    assert api.drafts(ADA, visible=True) == []
    await bot.send_message_draft(ADA, 8, "again")
    await bot.send_message(ADA, "final")
    assert [draft.text for draft in api.drafts(ADA)] == ["", "Good", "Good day", "again"]
    assert api.drafts(ADA, visible=True) == []


async def test_forum_messages_reply_to_their_topic_and_general_has_no_id(api: BotApi, bot: Bot) -> None:
    thread, other = api.topic(FORUM, "Trip"), api.topic(FORUM, "Two")
    asked = api.say(FORUM, "when?", thread=thread)
    to_asked = ReplyParameters(asked.id)
    assert asked.raw["reply_to_message"]["forum_topic_created"]["name"] == "Trip"
    answer = await bot.send_message(FORUM, "soon", reply_parameters=to_asked)  # follows without a thread id
    assert (answer.message_thread_id, answer.is_topic_message) == (thread, True)
    assert api.say(FORUM, "in General").thread is None
    assert await bot.send_chat_action(FORUM, "typing", message_thread_id=1)
    await refused(BadRequest, "message thread not found", bot.send_message(FORUM, "x", message_thread_id=asked.id))
    elsewhere = await bot.send_message(FORUM, "x", reply_parameters=to_asked, message_thread_id=other)
    assert elsewhere.external_reply is not None
    assert elsewhere.message_thread_id == other


async def test_topics_close_reopen_and_go_with_all_that_was_said(api: BotApi, bot: Bot) -> None:
    thread = api.topic(FORUM, "Trip")
    api.say(FORUM, "when?", thread=thread)
    await bot.close_forum_topic(FORUM, thread)
    await refused(BadRequest, "topic_closed", bot.send_message(FORUM, "x", message_thread_id=thread))
    await bot.reopen_forum_topic(FORUM, thread)
    await refused(BadRequest, "topic_not_modified", bot.reopen_forum_topic(FORUM, thread))
    api.delete_topic(FORUM, thread)
    assert api.messages(FORUM, thread=thread) == []
    await refused(BadRequest, "message thread not found", bot.send_message(FORUM, "x", message_thread_id=thread))
    api.set_bot_status(FORUM, "member")
    await refused(BadRequest, "not enough rights", bot.create_forum_topic(FORUM, "Three"))


async def test_a_reply_in_a_plain_supergroup_has_a_thread_id_but_is_no_topic_message(api: BotApi, bot: Bot) -> None:
    first = api.say(GROUP, "first")
    second = api.say(GROUP, "second", user=BOB, reply_to=first.id, quote="irs")
    third = await bot.send_message(GROUP, "third", reply_parameters=ReplyParameters(second.id))
    assert second.raw["message_thread_id"] == third.message_thread_id == first.id
    assert second.thread is None
    assert third.is_topic_message is None
    assert second.raw["quote"]["position"] == 1
    wrong = ReplyParameters(first.id, quote="absent")
    await refused(BadRequest, "quote_text_invalid", bot.send_message(GROUP, "x", reply_parameters=wrong))
    gone = ReplyParameters(99, allow_sending_without_reply=True)
    assert (await bot.send_message(GROUP, "x", reply_parameters=gone)).reply_to_message is None


async def test_private_topics_carry_threads_without_is_forum(api: BotApi, bot: Bot) -> None:
    chat = api.private_chat(50, "Cleo", topics=True)
    thread = (await bot.create_forum_topic(chat, "Notes")).message_thread_id
    said = api.say(chat, "hello", thread=thread)
    assert said.thread == thread
    assert "is_forum" not in said.raw["chat"]
    await refused(BadRequest, "not a supergroup forum", bot.close_forum_topic(chat, thread))
    api.switch_topics(chat, on=False)
    await refused(BadRequest, "message thread not found", bot.send_message(chat, "x", message_thread_id=thread))
    api.switch_topics(chat, on=True)
    api.delete_topic(chat, thread, slips=True)
    slipped = await bot.send_message(chat, "lost", message_thread_id=thread)
    assert slipped.message_thread_id is None
    assert [message.text for message in api.messages(chat, thread=None)] == ["lost"]


async def test_a_button_is_answered_once_and_in_time(api: BotApi, bot: Bot) -> None:
    sent = await bot.send_message(FORUM, "Sure?", reply_markup=keyboard("yes", "no"))
    press = api.press(FORUM, sent.message_id, "^button y", user=BOB)
    assert await bot.answer_callback_query(press.id, "Done")
    assert (press.data, press.user_id, press.answers) == ("yes", BOB, [{"text": "Done"}])
    await refused(BadRequest, "query is too old", bot.answer_callback_query(press.id))
    late = api.press(FORUM, sent.message_id, "no")
    api.age_press(late.id, 16)
    await refused(BadRequest, "query is too old", bot.answer_callback_query(late.id))
    await bot.delete_message(FORUM, sent.message_id)
    api.press(FORUM, sent.message_id, "yes", stale=True)
    shown, _, gone = [update.callback_query.message for update in await bot.get_updates() if update.callback_query]
    assert shown is not None
    assert shown.chat.is_forum is None
    assert gone is not None
    assert not gone.is_accessible
    with pytest.raises(ValueError, match="no message"):
        api.press(FORUM, sent.message_id, "yes")


async def test_reactions_come_only_when_asked_for_and_are_set_from_a_fixed_list(api: BotApi, bot: Bot) -> None:
    said = api.say(ADA, "hi")
    api.react(ADA, said.id, "🔥")
    await bot.get_updates(allowed_updates=Update.ALL_TYPES)
    api.react(ADA, said.id, "👍")
    api.react(GROUP, api.say(GROUP, "hi").id, "👍")  # the bot is no administrator there
    reacted = [update.message_reaction for update in await bot.get_updates() if update.message_reaction]
    assert [(change.old_reaction[0].to_dict()["emoji"], change.chat.id) for change in reacted] == [("🔥", ADA)]
    await bot.set_message_reaction(ADA, said.id, "❤")
    assert api.reactions(ADA, said.id) == ["❤"]
    await refused(BadRequest, "reaction_invalid", bot.set_message_reaction(ADA, said.id, "🧿"))
    await refused(BadRequest, "reactions_too_many", bot.set_message_reaction(ADA, said.id, ["👍", "🔥"]))


async def test_blocked_moved_and_left_chats_say_so(api: BotApi, bot: Bot) -> None:
    api.block(ADA)
    await refused(Forbidden, "bot was blocked by the user", bot.send_message(ADA, "x"))
    with pytest.raises(ValueError, match="blocked"):
        api.say(ADA, "hello?")
    api.block(ADA, on=False)
    moved = api.migrate(BASIC)
    with pytest.raises(ChatMigrated) as told:
        await bot.send_message(BASIC, "x")
    assert told.value.new_chat_id == moved
    await bot.send_message(moved, "here")
    await bot.leave_chat(GROUP)
    await refused(Forbidden, "bot is not a member of the supergroup chat", bot.send_message(GROUP, "x"))
    api.say(GROUP, "unheard")
    updates = await bot.get_updates()
    statuses = [update.my_chat_member.new_chat_member.status for update in updates if update.my_chat_member]
    assert statuses == ["kicked", "member"]
    assert "unheard" not in [update.message.text for update in updates if update.message]


async def test_files_travel_both_ways(api: BotApi, bot: Bot) -> None:
    sent = await bot.send_document(ADA, b"abc", "*three*", filename="a.txt", parse_mode="MarkdownV2")
    assert sent.document is not None
    assert bytes(await (await bot.get_file(sent.document.file_id)).download_as_bytearray()) == b"abc"
    attached, parts = {"chat_id": ADA, "document": "attach://part"}, {"part": ("b.txt", b"bcd")}
    again = await raw_call(api, "sendDocument", data=attached, files=parts)
    assert again["result"]["document"]["file_name"] == "b.txt"
    api.send_media(ADA, "voice", forward_from="Hidden")
    album = api.album(ADA, ["photo", "video"], "both #two")
    updates = [update.message for update in await bot.get_updates() if update.message]
    assert [message.caption for message in updates] == [None, "both #two", None]
    assert updates[0].forward_origin is not None
    assert {message.raw["media_group_id"] for message in album} == {updates[1].media_group_id}
    copied = await bot.copy_message(GROUP, ADA, sent.message_id, caption="copied")
    assert api.answers(GROUP) == ["copied"]
    assert (await bot.forward_message(ADA, GROUP, copied.message_id)).forward_origin is not None


async def test_every_other_method_answers_as_the_schema_says(api: BotApi, bot: Bot) -> None:
    sent = await bot.send_message(FORUM, "x")
    photo = await bot.send_photo(ADA, api.send_media(ADA, "photo").raw["photo"][0]["file_id"])
    await bot.edit_message_caption(ADA, photo.message_id, caption="c")
    assert await bot.pin_chat_message(FORUM, sent.message_id)
    assert (await bot.get_chat(FORUM)).pinned_message is not None
    assert await bot.unpin_chat_message(FORUM)
    assert await bot.unpin_all_chat_messages(FORUM)
    assert [member.status for member in await bot.get_chat_administrators(FORUM)] == ["creator", "administrator"]
    assert (await bot.get_chat_member(FORUM, BOB)).status == "member"
    assert await bot.get_chat_member_count(FORUM) == 3
    assert (await bot.get_user_profile_photos(ADA)).total_count == 0
    topic = await bot.create_forum_topic(FORUM, "T", 7322096)
    assert await bot.edit_forum_topic(FORUM, topic.message_thread_id, "U")
    assert await bot.delete_forum_topic(FORUM, topic.message_thread_id)
    await bot.set_my_commands([("start", "go")], language_code="de")
    assert api.commands(language="de") == ["start"]
    assert len(await bot.get_my_commands(language_code="de")) == 1
    assert await bot.delete_my_commands(language_code="de")
    for setter in (bot.set_my_name("Merk 2"), bot.set_my_description("d"), bot.set_my_short_description("s")):
        assert await setter
    names = (await bot.get_my_name()).name, (await bot.get_my_description()).description
    assert (*names, (await bot.get_my_short_description()).short_description) == ("Merk 2", "d", "s")
    assert await bot.set_chat_menu_button(ADA)
    assert (await bot.get_chat_menu_button(ADA)).type == "default"
    assert await bot.close()
    assert api.violations == []
