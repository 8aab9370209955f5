"""From what came in to what is logged."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from handlers.types import Attachment, Incoming, Place, Sender
from handlers.utterances import edited, write_down
from memory.types import Message, Origin

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
INCOMING = Incoming((1,), Place("fake", "42"), Sender("fake:42", "Ada"), WHEN, ref="m1")


def logged(incoming: Incoming) -> Message:
    written = write_down(incoming)
    return Message(1, 1, "user", "Ada", written.text, written.origin, written.pieces, WHEN)


def test_p44_the_words_replied_to_are_kept_and_are_not_the_persons_own() -> None:
    written = write_down(replace(INCOMING, text="Yes", quote="Shall we?\nToday?", quote_author="Bob"))
    assert written.text == "> Bob: Shall we?\n> Today?\n\nYes"
    assert written.origin is Origin.QUOTED


def test_attachments_are_named() -> None:
    written = write_down(
        replace(INCOMING, text="Look", attachments=(Attachment("photo"), Attachment("document", "a.pdf")))
    )
    assert written.text == "[photo, a.pdf]\nLook"


@given(st.text(), st.text(), st.text(max_size=30))
def test_an_edit_changes_one_message_and_nothing_else(before: str, after: str, quote: str) -> None:
    message = logged(replace(INCOMING, text=before, quote=quote))
    text = edited(message, "m1", after)
    if before == after:
        assert text is None
    else:
        assert text == message.text[: len(message.text) - len(before)] + after


def test_p39_an_edit_of_one_piece_of_a_paste_keeps_the_others() -> None:
    pieces = (("m1", "one " * 5), ("m2", "two"), ("m3", "three"))
    message = logged(replace(INCOMING, text="\n".join(words for _, words in pieces), pieces=pieces))
    assert edited(message, "m2", "2") == "one " * 5 + "\n2\nthree"
    assert edited(message, "m9", "x") is None


def test_where_something_was_forgotten_only_the_new_words_stand() -> None:
    message = logged(replace(INCOMING, text="My dog is called Bruno"))
    assert edited(replace(message, text="[…]"), "m1", "My dog is old") == "My dog is old"
