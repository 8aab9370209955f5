"""What each refusal of Telegram means for a send, a poll and the operator."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from bot.transports.base import Fault
from bot.transports.telegram.errors import (
    POLL_PAUSES,
    REFUSED_PAUSE,
    as_send_error,
    explain,
    is_blocked_by_webhook,
    is_unchanged,
    pause,
)


def caused(error: TelegramError, cause: Exception) -> TelegramError:
    """As the library raises it: the HTTP client's error underneath."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Can't parse entities: can't find end tag corresponding to start tag \"b\"", Fault.FORMAT),
        ("Entity_bounds_invalid", Fault.FORMAT),
        ("Entities_too_long", Fault.FORMAT),
        ("Message is too long", Fault.FORMAT),
        ("Text is too long", Fault.FORMAT),
        ("Message caption is too long", Fault.FORMAT),
        ("Message thread not found", Fault.NO_THREAD),
        ("Topic_deleted", Fault.NO_THREAD),
        ("TOPIC_CLOSED", Fault.THREAD_CLOSED),
        ("The chat is not a forum", Fault.NO_THREAD),
        ("Message to edit not found", Fault.NO_MESSAGE),
        ("Message can't be edited", Fault.NO_MESSAGE),
        ("There is no text in the message to edit", Fault.NO_MESSAGE),
        ("Message to delete not found", Fault.NO_MESSAGE),
        ("Chat not found", Fault.NO_CHAT),
        ("Button_data_invalid", Fault.REFUSED),
        ("Message can't be deleted for everyone", Fault.REFUSED),
        ("Not enough rights to send text messages to the chat", Fault.REFUSED),
        ("Something that nobody has heard of yet", Fault.REFUSED),
    ],
)
def test_a_bad_request_is_told_by_its_words_whatever_their_case(text: str, fault: Fault) -> None:
    """The library capitalises the first letter and lowers the others."""
    assert [as_send_error(BadRequest(form)).fault for form in (text, text.upper(), text.lower())] == [fault] * 3


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("Forbidden: bot was blocked by the user"),
        Forbidden("Forbidden: user is deactivated"),
        Forbidden("Forbidden: bot is not a member of the supergroup chat"),
    ],
)
def test_nobody_is_there_after_a_403(error: TelegramError) -> None:
    assert as_send_error(error).fault is Fault.NO_CHAT


def test_p33_a_flood_says_how_long_to_wait() -> None:
    found = as_send_error(RetryAfter(17))
    assert (found.fault, found.retry_after) == (Fault.LATER, 17.0)


def test_a_moved_chat_names_its_new_id() -> None:
    found = as_send_error(ChatMigrated(-1001234567890))
    assert (found.fault, found.detail) == (Fault.MOVED, "-1001234567890")


@pytest.mark.parametrize(
    "error",
    [
        caused(NetworkError("httpx.ConnectError: All connection attempts failed"), httpx.ConnectError("")),
        caused(NetworkError("httpx.ProxyError: "), httpx.ProxyError("")),
        caused(TimedOut(), httpx.ConnectTimeout("")),
        caused(TimedOut("Pool timeout"), httpx.PoolTimeout("")),
        InvalidToken("Unauthorized"),
    ],
)
def test_what_was_never_written_is_unsent(error: TelegramError) -> None:
    assert as_send_error(error).fault is Fault.UNSENT


@pytest.mark.parametrize(
    "error",
    [
        caused(TimedOut(), httpx.ReadTimeout("")),
        caused(TimedOut(), httpx.WriteTimeout("")),
        caused(NetworkError("httpx.ReadError: "), httpx.ReadError("")),
        caused(NetworkError("httpx.RemoteProtocolError: Server disconnected"), httpx.RemoteProtocolError("")),
        NetworkError("Internal Server Error"),
        NetworkError("Bad Gateway (502). Parsing the server response b'<html>' failed"),
        TelegramError("Invalid server response"),
    ],
)
def test_what_may_have_arrived_is_unknown(error: TelegramError) -> None:
    """A blind repetition would be a second message."""
    assert as_send_error(error).fault is Fault.UNKNOWN


def test_a_file_too_large_and_a_method_too_new_are_refused() -> None:
    assert as_send_error(NetworkError("Request Entity Too Large")).fault is Fault.REFUSED
    assert as_send_error(InvalidToken("Not Found: method not found")).fault is Fault.REFUSED


def test_the_body_of_an_error_page_is_not_passed_on() -> None:
    assert as_send_error(NetworkError("Bad Gateway (502). Parsing the server response b'x' failed")).detail == (
        "Bad Gateway (502)"
    )


@given(st.text(), st.sampled_from([BadRequest, Forbidden, NetworkError, InvalidToken, Conflict, TimedOut]))
def test_every_error_has_a_fault_and_words(text: str, kind: type[TelegramError]) -> None:
    error = kind(text)
    assert as_send_error(error).fault in Fault
    assert explain(error)
    assert pause(error, 0) > 0


def test_p32_an_edit_that_changes_nothing_is_recognised() -> None:
    words = "Message is not modified: specified new message content and reply markup are exactly the same"
    assert is_unchanged(as_send_error(BadRequest(words)))
    assert not is_unchanged(as_send_error(BadRequest("Message can't be edited")))


def test_the_two_conflicts_are_told_apart() -> None:
    other = Conflict(
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    )
    hook = Conflict(
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it first"
    )
    assert (is_blocked_by_webhook(other), is_blocked_by_webhook(hook)) == (False, True)
    assert "polls for this bot" in explain(other)
    assert "webhook" in explain(hook)


def test_a_refused_token_is_explained_without_showing_it() -> None:
    text = explain(InvalidToken("The token `42:secret` was rejected by the server."))
    assert "telegram.token" in text
    assert "secret" not in text


def test_pauses_grow_to_a_limit_and_obey_the_server() -> None:
    assert [pause(TimedOut(), attempt) for attempt in range(7)] == [*POLL_PAUSES, POLL_PAUSES[-1], POLL_PAUSES[-1]]
    assert pause(RetryAfter(30), 0) == 30.5


def test_a_single_404_is_asked_again_at_once_and_a_refused_token_ever_more_rarely() -> None:
    pauses = [pause(InvalidToken("Not Found"), attempt) for attempt in range(8)]
    assert pauses[0] == POLL_PAUSES[0]
    assert pauses == sorted(pauses)
    assert pauses[-1] == REFUSED_PAUSE
