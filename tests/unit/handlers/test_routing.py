"""Which handler an incoming thing goes to."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.routing import Route, route
from handlers.types import Incoming, Place, Press, Sender
from memory.types import Origin

COMMANDS = {"help", "forget"}


def incoming(
    text: str, *, origin: Origin = Origin.TYPED, press: Press | None = None, is_edit: bool = False
) -> Incoming:
    return Incoming(
        inbox_ids=(1,),
        place=Place("telegram", "42"),
        sender=Sender("telegram:42", "Ada"),
        sent_at=datetime(2026, 1, 1, tzinfo=UTC),
        text=text,
        origin=origin,
        press=press,
        is_edit=is_edit,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/help", Route("command", "help")),
        ("/FORGET the  dog ", Route("command", "forget", "the  dog")),
        ("/forget\nthe dog", Route("command", "forget", "the dog")),
        ("/nonsense x", Route("unknown_command", "nonsense", "x")),
        ("/usr/bin/env", Route("message")),
        ("what does /help do?", Route("message")),
        ("/", Route("message")),
        ("", Route("message")),
    ],
)
def test_commands_are_told_from_messages(text: str, expected: Route) -> None:
    assert route(incoming(text), COMMANDS) == expected


def test_p22_a_forwarded_command_is_somebodys_words() -> None:
    assert route(incoming("/forget all", origin=Origin.FORWARDED), COMMANDS) == Route("message")


def test_p43_an_edited_command_is_an_edit() -> None:
    assert route(incoming("/forget all", is_edit=True), COMMANDS) == Route("edit")


def test_a_press_is_a_press() -> None:
    assert route(incoming("/help", press=Press("t", "1")), COMMANDS) == Route("press")


@given(st.text())
def test_every_text_has_a_route(text: str) -> None:
    assert route(incoming(text), COMMANDS).kind in {"message", "command", "unknown_command"}
