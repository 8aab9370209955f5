"""From an update of the Bot API to what a person did."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.transports.base import Hold
from bot.transports.telegram.parse import TelegramIncoming, hold, moved, parse, stamp
from handlers.types import Attachment, Place, Press, Sender
from memory.types import Origin

Json = dict[str, Any]

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ADA: Json = {"id": 42, "is_bot": False, "first_name": "Ada", "last_name": "Byron", "language_code": "de"}
BOB: Json = {"id": 43, "is_bot": False, "first_name": "Bob"}
ME: Json = {"id": 4242, "is_bot": True, "first_name": "Merk", "username": "merk_bot"}
PRIVATE: Json = {"id": 42, "type": "private", "first_name": "Ada"}
GROUP: Json = {"id": -1001, "type": "supergroup", "title": "Kitchen"}
FORUM: Json = {**GROUP, "is_forum": True}

FILE: Json = {"file_id": "a", "file_unique_id": "b"}
PHOTO: Json = {"photo": [{**FILE, "width": 1, "height": 1}]}


def message(text: str | None = "hello", *, chat: Json = PRIVATE, sender: Json = ADA, **more: Any) -> Json:
    words = {} if text is None else {"text": text}
    return {"message_id": 7, "date": 1_796_000_000, "chat": chat, "from": sender, **words, **more}


def read(found: Json, *, kind: str = "message") -> TelegramIncoming | None:
    return parse(stamp({"update_id": 1, kind: found}, "merk_bot", NOW), 5, 4242)


def understood(found: Json, *, kind: str = "message") -> TelegramIncoming:
    incoming = read(found, kind=kind)
    assert incoming is not None
    return incoming


def mention(text: str, part: str = "@merk_bot") -> list[Json]:
    return [{"type": "mention", "offset": len(text[: text.index(part)]), "length": len(part)}]


# --- who, where, what ----------------------------------------------------------------------------------


def test_a_private_message_is_understood() -> None:
    assert understood(message("hello")) == TelegramIncoming(
        inbox_ids=(5,),
        place=Place("telegram", "42"),
        sender=Sender("telegram:42", "Ada Byron", "de"),
        sent_at=datetime.fromtimestamp(1_796_000_000, UTC),
        text="hello",
        ref="7",
        units=5,
    )


def test_a_client_without_a_language_leaves_the_choice_to_the_tenant() -> None:
    assert understood(message(chat=GROUP, sender=BOB)).sender.language == ""


def test_a_group_message_says_who_reads_along() -> None:
    found = understood(message(chat=GROUP))
    assert (found.chat_kind, found.chat_title, found.is_addressed) == ("user", "Kitchen", False)


def test_p38_a_topic_of_a_private_chat_is_a_thread() -> None:
    """Such a chat has no `is_forum`."""
    assert understood(message(message_thread_id=900, is_topic_message=True)).place == Place("telegram", "42", "900")


def test_p38_the_thread_of_replies_in_an_ordinary_group_is_none() -> None:
    assert understood(message(chat=GROUP, message_thread_id=900)).place.thread == ""


@pytest.mark.parametrize("where", [{}, {"message_thread_id": 1}, {"message_thread_id": 1, "is_topic_message": True}])
def test_p36_the_general_topic_is_the_place_without_a_thread(where: Json) -> None:
    assert understood(message(chat=FORUM, **where)).place == Place("telegram", "-1001", "")


def test_captions_are_text() -> None:
    found = understood(message(None, caption="look", **PHOTO))
    assert (found.text, found.attachments, found.is_trusted) == ("look", (Attachment("photo"),), False)


@pytest.mark.parametrize(
    ("content", "kind", "name"),
    [
        ({"voice": {**FILE, "duration": 1}}, "voice", ""),
        ({"audio": {**FILE, "duration": 1, "title": "Song"}}, "audio", "Song"),
        ({"video": {**FILE, "duration": 1, "width": 1, "height": 1, "file_name": "a.mp4"}}, "video", "a.mp4"),
        ({"video_note": {**FILE, "duration": 1, "length": 1}}, "video", ""),
        ({"document": {**FILE, "file_name": "plan.pdf"}}, "document", "plan.pdf"),
        (
            {"animation": {**FILE, "duration": 1, "width": 1, "height": 1}, "document": {**FILE, "file_name": "x.gif"}},
            "video",
            "",
        ),
        (
            {
                "sticker": {
                    **FILE,
                    "type": "regular",
                    "width": 1,
                    "height": 1,
                    "is_animated": False,
                    "is_video": False,
                    "emoji": "🎉",
                }
            },
            "sticker",
            "🎉",
        ),
        ({"location": {"latitude": 50.94, "longitude": 6.96}}, "location", "50.94000, 6.96000"),
        (
            {
                "venue": {"location": {"latitude": 1.0, "longitude": 2.0}, "title": "Dom", "address": "Köln"},
                "location": {"latitude": 1.0, "longitude": 2.0},
            },
            "location",
            "Dom, Köln",
        ),
        ({"contact": {"first_name": "Eva", "phone_number": "+49 1"}}, "contact", "Eva, +49 1"),
        ({"dice": {"emoji": "🎲", "value": 3}}, "other", "🎲"),
    ],
)
def test_attachments_have_a_kind_and_a_name(content: Json, kind: str, name: str) -> None:
    found = understood(message(None, **content))
    assert (found.text, found.attachments) == ("", (Attachment(kind, name),))


# --- whose words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "author"),
    [
        ({"type": "user", "date": 1, "sender_user": BOB}, "Bob"),
        ({"type": "hidden_user", "date": 1, "sender_user_name": "Somebody"}, "Somebody"),
        ({"type": "chat", "date": 1, "sender_chat": GROUP}, "Kitchen"),
        (
            {"type": "channel", "date": 1, "chat": {"id": -5, "type": "channel", "title": "News"}, "message_id": 1},
            "News",
        ),
    ],
)
def test_a_forward_is_somebody_elses_words(origin: Json, author: str) -> None:
    found = understood(message(forward_origin=origin))
    assert (found.origin, found.quote_author, found.is_trusted) == (Origin.FORWARDED, author, False)


def test_what_another_bot_wrote_for_the_person_is_not_typed() -> None:
    helper = {"id": 9, "is_bot": True, "first_name": "Gif Bot", "username": "gif_bot"}
    found = understood(message(via_bot=helper))
    assert (found.origin, found.quote_author) == (Origin.FORWARDED, "Gif Bot")


def test_p44_a_reply_keeps_the_words_replied_to() -> None:
    found = understood(message(reply_to_message=message("the plan", sender=BOB)))
    assert (found.quote, found.quote_author, found.is_trusted) == ("the plan", "Bob", False)


def test_p44_a_quoted_part_stands_for_the_whole() -> None:
    replied = message("the plan of today", sender=BOB)
    found = understood(message(reply_to_message=replied, quote={"text": "plan", "position": 4}))
    assert found.quote == "plan"


def test_a_reply_across_chats_keeps_its_quote() -> None:
    external = {"origin": {"type": "user", "date": 1, "sender_user": BOB}, "chat": GROUP, "message_id": 3}
    found = understood(message(external_reply=external, quote={"text": "plan", "position": 0}))
    assert (found.quote, found.quote_author) == ("plan", "Bob")


def test_the_opening_of_a_topic_is_not_quoted() -> None:
    """Every message of a topic that replies to nothing replies to it."""
    opening = message(None, sender=BOB, forum_topic_created={"name": "Shopping", "icon_color": 7322096})
    where: Json = {"message_thread_id": 7, "is_topic_message": True}
    found = understood(message(chat=FORUM, reply_to_message=opening, **where))
    assert (found.quote, found.quote_author, found.is_trusted) == ("", "", True)


# --- whom it is for ------------------------------------------------------------------------------------


def test_a_mention_addresses_the_bot_and_is_taken_out() -> None:
    text = "@merk_bot what is new?"
    found = understood(message(text, chat=GROUP, entities=mention(text)))
    assert (found.text, found.is_addressed, found.units) == ("what is new?", True, len(text))


def test_a_mention_in_a_caption_counts() -> None:
    text = "@merk_bot who is this?"
    assert understood(message(None, chat=GROUP, caption=text, caption_entities=mention(text), **PHOTO)).is_addressed


def test_a_reply_to_the_bot_addresses_it() -> None:
    found = understood(message("and then?", chat=GROUP, reply_to_message=message("First.", chat=GROUP, sender=ME)))
    assert (found.is_addressed, found.quote, found.quote_author) == (True, "First.", "Merk")


def test_a_reply_to_somebody_else_does_not() -> None:
    assert not understood(message(chat=GROUP, reply_to_message=message(chat=GROUP, sender=BOB))).is_addressed


def test_everything_in_a_topic_that_the_bot_opened_is_not_addressed_to_it() -> None:
    opening = message(None, sender=ME, forum_topic_created={"name": "Notes", "icon_color": 7322096})
    assert not understood(message(chat=FORUM, reply_to_message=opening)).is_addressed


def test_a_command_addresses_the_bot_it_names() -> None:
    assert understood(message("/memory", chat=GROUP)).is_addressed
    assert understood(message("/memory@merk_bot all", chat=GROUP)).text == "/memory all"
    assert read(message("/memory@other_bot", chat=GROUP)) is None
    assert read(message("/memory@other_bot")) is None


@pytest.mark.parametrize(
    "found",
    [
        message(sender=ME),
        message(sender={"id": 9, "is_bot": True, "first_name": "Other"}),
        message(chat=GROUP, sender_chat=GROUP, sender={"id": 1087968824, "is_bot": True, "first_name": "Group"}),
        message(chat=GROUP, sender_chat={"id": -5, "type": "channel", "title": "N"}, is_automatic_forward=True),
        message(None, chat=FORUM, forum_topic_created={"name": "A", "icon_color": 7322096}),
        message(None, chat=FORUM, forum_topic_closed={}),
        message(None, chat=GROUP, new_chat_members=[BOB]),
        message(None, chat=GROUP, pinned_message=message(chat=GROUP)),
        message(None, chat={"id": -5, "type": "group", "title": "K"}, migrate_to_chat_id=-1005),
    ],
)
def test_what_no_person_says_asks_for_nothing(found: Json) -> None:
    """Bots, anonymous administrators, channels behind a group, service messages."""
    assert read(found) is None


def test_channel_posts_and_unknown_kinds_ask_for_nothing() -> None:
    channel = {"id": -5, "type": "channel", "title": "News"}
    post = {"message_id": 1, "date": 1, "chat": channel, "sender_chat": channel, "text": "x"}
    assert read(post, kind="channel_post") is None
    assert read({"anything": 1}, kind="something_of_next_year") is None
    reaction: Json = {"chat": GROUP, "message_id": 1, "user": ADA, "date": 1, "old_reaction": [], "new_reaction": []}
    assert read(reaction, kind="message_reaction") is None


# --- edits ---------------------------------------------------------------------------------------------


def test_p43_an_edit_is_told_as_one() -> None:
    found = understood(message("/stop", edit_date=1_796_000_060), kind="edited_message")
    assert found.is_edit
    assert found.ref == "7"
    assert found.sent_at == datetime.fromtimestamp(1_796_000_060, UTC)


@pytest.mark.parametrize(
    "found",
    [
        message("/stop"),
        message(None, edit_date=1_796_000_060, location={"latitude": 1.0, "longitude": 2.0}),
    ],
)
def test_p43_an_edit_without_a_date_or_without_words_is_none(found: Json) -> None:
    """A first reaction or a moving live location reaches bots as an edit."""
    assert read(found, kind="edited_message") is None


# --- presses -------------------------------------------------------------------------------------------


def press(shown: Json, *, by: Json = BOB, **more: Any) -> Json:
    return {"id": "77", "from": by, "chat_instance": "x", "message": shown, "data": "token", **more}


def test_p41_a_press_is_by_who_pressed() -> None:
    """Never by the bot, which wrote the message, and never by whom it answers."""
    shown = message("Sure?", chat=GROUP, sender=ME, reply_to_message=message(chat=GROUP, sender=ADA))
    found = understood(press(shown), kind="callback_query")
    assert found.sender == Sender("telegram:43", "Bob", "")
    assert found.press == Press("token", "7")
    assert (found.query, found.sent_at, found.chat_kind) == ("77", NOW, "user")


def test_a_press_in_a_topic_is_answered_there() -> None:
    shown = message("Sure?", sender=ME, message_thread_id=900, is_topic_message=True)
    assert understood(press(shown, by=ADA), kind="callback_query").place == Place("telegram", "42", "900")


def test_p42_a_press_on_a_message_that_is_gone_is_still_one() -> None:
    gone = {"chat": PRIVATE, "message_id": 7, "date": 0}
    found = understood(press(gone, by=ADA), kind="callback_query")
    assert (found.press, found.place, found.sender.identity) == (
        Press("token", "7"),
        Place("telegram", "42"),
        "telegram:42",
    )


def test_a_press_without_data_or_message_is_none() -> None:
    assert read({"id": "1", "from": ADA, "chat_instance": "x", "data": "t"}, kind="callback_query") is None
    game = {"id": "1", "from": ADA, "chat_instance": "x", "message": message(sender=ME), "game_short_name": "g"}
    assert read(game, kind="callback_query") is None


# --- pieces of something larger ------------------------------------------------------------------------


def test_p39_a_nearly_full_message_waits_for_the_rest() -> None:
    first, rest = understood(message("x" * 4096)), understood(message("the end"))
    opened, joined = hold(first), hold(rest)
    assert opened is not None
    assert opened.seconds == 1.2
    assert joined == Hold(opened.key, 0.0)


def test_p39_length_is_counted_as_clients_cut() -> None:
    """2,000 emoji are 4,000 UTF-16 units."""
    found = hold(understood(message("🎉" * 2000)))
    assert found is not None
    assert found.seconds > 0


def test_p39_pieces_join_only_the_same_person_in_the_same_place() -> None:
    kinds: tuple[Json, ...] = (
        {},
        {"chat": GROUP},
        {"chat": GROUP, "sender": BOB},
        {"message_thread_id": 9, "is_topic_message": True},
        {"forward_origin": {"type": "user", "date": 1, "sender_user": BOB}},
    )
    keys = [hold(understood(message("x" * 4096, **kind))) for kind in kinds]
    assert len({key.key for key in keys if key}) == len(keys)


@pytest.mark.parametrize(
    "found",
    [
        message("/stop"),
        message("see this", reply_to_message=message("the plan", sender=BOB)),
        message(None, voice={**FILE, "duration": 1}),
    ],
)
def test_p39_commands_replies_and_files_do_not_join_a_paste(found: Json) -> None:
    assert hold(understood(found)) is None


def test_p22_forwarded_words_never_join_typed_ones() -> None:
    """They would be taken for the person's own."""
    typed = hold(understood(message("x" * 4096)))
    forwarded = hold(understood(message("y", forward_origin={"type": "user", "date": 1, "sender_user": BOB})))
    assert typed is not None
    assert forwarded is not None
    assert typed.key != forwarded.key


def test_p39_an_album_waits_for_its_items() -> None:
    item: Json = {**PHOTO, "media_group_id": "99"}
    captions: tuple[Json, ...] = ({}, {"caption": "look"})
    found = {hold(understood(message(None, **item, **caption))) for caption in captions}
    assert len(found) == 1
    assert [item.seconds for item in found if item] == [1.0]


def test_edits_and_presses_never_wait() -> None:
    assert hold(understood(message("x" * 4096, edit_date=1), kind="edited_message")) is None
    assert hold(understood(press(message(sender=ME)), kind="callback_query")) is None


# --- moved chats ---------------------------------------------------------------------------------------


def test_a_group_that_became_a_supergroup_is_told_from_either_side() -> None:
    old, new = {"id": -5, "type": "group", "title": "K"}, {"id": -1005, "type": "supergroup", "title": "K"}
    assert moved({"update_id": 1, "message": message(None, chat=old, migrate_to_chat_id=-1005)}) == ("-5", "-1005")
    assert moved({"update_id": 1, "message": message(None, chat=new, migrate_from_chat_id=-5)}) == ("-5", "-1005")
    assert moved({"update_id": 1, "message": message()}) is None
    assert moved({"update_id": 1}) is None


# --- anything ------------------------------------------------------------------------------------------


@given(
    text=st.text(max_size=80),
    entities=st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["mention", "bot_command", "code", "pre", "bold", "unheard_of"]),
                "offset": st.integers(0, 90),
                "length": st.integers(0, 90),
            }
        ),
        max_size=4,
    ),
    chat=st.sampled_from([PRIVATE, GROUP, FORUM]),
    thread=st.integers(0, 3),
    is_topic=st.booleans(),
)
def test_any_message_is_understood_or_none(
    text: str, entities: list[Json], chat: Json, thread: int, *, is_topic: bool
) -> None:
    where: Json = {"message_thread_id": thread, "is_topic_message": is_topic} if thread else {}
    found = read(message(text, chat=chat, entities=entities, **where))
    if found is not None:
        assert found.place.chat == str(chat["id"])
        assert found.sender.identity == "telegram:42"
        hold(found)


def test_the_stored_update_is_not_changed_by_being_understood() -> None:
    update = {"update_id": 1, "message": message("hi", reply_to_message=message("x"))}
    stored = stamp(update, "merk_bot", NOW)
    before = repr(stored)
    parse(stored, 1, 4242)
    assert repr(stored) == before


def test_p26_of_the_message_under_a_pressed_button_no_words_are_stored() -> None:
    """What a card quotes must not come back into the store with the press that forgets it."""
    message = {"message_id": 5, "date": 1, "chat": {"id": 42, "type": "private"}, "text": "Forget Bruno?"}
    press = {"update_id": 1, "callback_query": {"id": "1", "from": {}, "data": "token", "message": message}}
    stored = stamp(press, "merk_bot", datetime(2026, 1, 1, tzinfo=UTC))
    assert "Bruno" not in str(stored)
    assert stored["callback_query"]["message"]["message_id"] == 5
