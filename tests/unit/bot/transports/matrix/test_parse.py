"""Stored events of Matrix, understood: who, where, what, and whether it was meant for Merk."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.transports.matrix.parse import moved, parse
from handlers.types import Attachment, Incoming

ME = "@merk:example.org"
COMMANDS = ("help", "newchat", "forget")


def stored(content: dict[str, Any], *, kind: str = "m.room.message", people: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "event": {
            "type": kind,
            "sender": "@ada:example.org",
            "event_id": "$1",
            "origin_server_ts": 1_700_000_000_000,
            "room_id": "!r",
            "content": content,
        },
        "room": {"room_id": "!r", "name": "Kitchen", "people": people, "sender_name": "Ada"},
        "me": ME,
        "my_name": "Merk",
        **more,
    }


def text(body: str, **content: Any) -> dict[str, Any]:
    return {"msgtype": "m.text", "body": body, **content}


def understood(payload: dict[str, Any]) -> Incoming:
    found = parse(payload, 7, COMMANDS)
    assert found is not None
    return found


def test_a_message_says_who_where_and_what() -> None:
    found = understood(stored(text("Grüße")))
    assert (found.text, found.place.lane, found.sender.identity) == ("Grüße", "matrix:!r:", "matrix:@ada:example.org")
    assert (found.sender.name, found.chat_kind, found.chat_title, found.ref) == ("Ada", "ai", "Kitchen", "$1")
    assert (found.sender.language, found.inbox_ids, found.is_addressed) == ("", (7,), True)


def test_a_thread_is_a_place_of_its_own() -> None:
    assert understood(stored(text("hi"), thread="$root")).place.lane == "matrix:!r:$root"


@pytest.mark.parametrize("people", [1, 3, 40])
def test_a_room_is_private_only_with_exactly_one_person_in_it(people: int) -> None:
    assert understood(stored(text("hi"), people=people)).chat_kind == "user"


@pytest.mark.parametrize(
    ("body", "content", "said", "is_addressed"),
    [
        ("just talk", {}, "just talk", False),
        ("Merk: what now?", {}, "what now?", True),
        ("@merk, what now?", {}, "what now?", True),
        ("@merk:example.org what now?", {}, "what now?", True),
        ("Merk what now?", {"m.mentions": {"user_ids": [ME]}}, "what now?", True),
        ("what does Merk say?", {"m.mentions": {"user_ids": [ME]}}, "what does Merk say?", True),
        ("Merk dir das nicht", {}, "Merk dir das nicht", False),
        ("merkwürdig", {}, "merkwürdig", False),
        ("hi", {"m.mentions": {"user_ids": ["@bob:example.org"]}}, "hi", False),
        ("!forget all", {}, "/forget all", True),
        ("/forget all", {}, "/forget all", True),
        ("!unheard of", {}, "!unheard of", False),
        ("Merk", {}, "Merk", True),
    ],
)
def test_among_others_merk_answers_when_it_is_meant(
    body: str, content: dict[str, Any], said: str, is_addressed: bool
) -> None:
    found = understood(stored(text(body, **content), people=3))
    assert (found.text, found.is_addressed) == (said, is_addressed)


def test_p50_replies_to_merk_and_its_own_threads_are_meant_for_it() -> None:
    quote = {"text": "I said", "author": "Merk", "ref": "$0", "is_mine": True}
    assert understood(stored(text("why?"), people=3, quote=quote)).is_addressed
    assert understood(stored(text("why?"), people=3, thread="$root", is_own_thread=True)).is_addressed
    assert not understood(stored(text("why?"), people=3, thread="$root", is_own_thread=False)).is_addressed


def test_p44_a_quote_is_kept_with_its_author_and_makes_the_turn_untrusted() -> None:
    quote = {"text": "the rent is 800", "author": "Bob", "ref": "$0", "is_mine": False}
    body = "> <@bob:example.org> the rent is 800\n> a lot\n\nis that true?"
    found = understood(stored(text(body, **{"m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}}), quote=quote))
    assert (found.text, found.quote, found.quote_author, found.reply_to) == (
        "is that true?",
        "the rent is 800",
        "Bob",
        "$0",
    )
    assert not found.is_trusted


def test_what_begins_as_a_quote_but_is_no_reply_stays() -> None:
    assert understood(stored(text("> said the cat"))).text == "> said the cat"


def test_p43_an_edit_names_the_message_it_changes() -> None:
    found = understood(stored({"m.new_content": text("better")}, edits="$0"))
    assert (found.text, found.ref, found.is_edit) == ("better", "$0", True)


def test_a_press_is_of_who_pressed() -> None:
    payload = stored({}, kind="m.reaction", press={"token": "t", "card": "$card"}, thread="$root")
    found = understood(payload)
    assert found.press is not None
    assert (found.press.token, found.press.card, found.text, found.place.thread) == ("t", "$card", "", "$root")


@pytest.mark.parametrize(
    ("kind", "content", "attachment", "words"),
    [
        ("m.room.message", {"msgtype": "m.image", "body": "cat.jpg"}, Attachment("photo"), ""),
        (
            "m.room.message",
            {"msgtype": "m.image", "body": "Look!", "filename": "c.jpg"},
            Attachment("photo", "c.jpg"),
            "Look!",
        ),
        ("m.room.message", {"msgtype": "m.file", "body": "a.pdf"}, Attachment("document", "a.pdf"), ""),
        (
            "m.room.message",
            {"msgtype": "m.audio", "body": "x", "org.matrix.msc3245.voice": {}},
            Attachment("voice"),
            "",
        ),
        ("m.sticker", {"body": "😀"}, Attachment("sticker", "😀"), ""),
        ("m.poll.start", {}, Attachment("other"), ""),
        ("m.room.encrypted", {}, Attachment("encrypted"), ""),
    ],
)
def test_what_is_no_text_is_named(kind: str, content: dict[str, Any], attachment: Attachment, words: str) -> None:
    found = understood(stored(content, kind=kind))
    assert (found.attachments, found.text) == ((attachment,), words)


@pytest.mark.parametrize("content", [text(" "), {"msgtype": "m.notice", "body": "I am a bot"}, {"msgtype": "m.text"}])
def test_what_says_nothing_to_merk_asks_for_nothing(content: dict[str, Any]) -> None:
    assert parse(stored(content), 1, COMMANDS) is None


def test_an_upgraded_room_has_moved() -> None:
    assert moved({"moved": ["!old", "!new"], "room": {"room_id": "!old"}}) == ("!old", "!new")
    assert moved(stored(text("hi"))) is None


@given(st.text(), st.integers(min_value=0, max_value=5))
def test_any_text_is_understood(body: str, people: int) -> None:
    found = parse(stored(text(body), people=people), 1, COMMANDS)
    assert found is None or found.text
