"""What Telegram's refusals mean: for a send, for a poll, and for the person who runs the bot. Pure.

Rule: nothing that may have been delivered is called unsent. Texts are compared case-folded: the library
capitalises them (`BUTTON_DATA_INVALID` arrives as `Button_data_invalid`).
"""

import os
from datetime import timedelta

import httpx
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from bot.transports.base import Fault, SendError

os.environ.setdefault("PTB_TIMEDELTA", "true")  # or the library warns whenever it makes a RetryAfter

_NOT_WRITTEN = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)

_CLASSES: tuple[tuple[type[TelegramError], Fault], ...] = (
    (RetryAfter, Fault.LATER),
    (ChatMigrated, Fault.MOVED),
    (Forbidden, Fault.NO_CHAT),
    (InvalidToken, Fault.UNSENT),
)

_WORDS: tuple[tuple[str, Fault], ...] = (
    ("thread not found", Fault.NO_THREAD),
    ("topic_deleted", Fault.NO_THREAD),
    ("topic_closed", Fault.THREAD_CLOSED),
    ("topic_id_invalid", Fault.NO_THREAD),
    ("not a forum", Fault.NO_THREAD),
    ("message to edit not found", Fault.NO_MESSAGE),
    ("message can't be edited", Fault.NO_MESSAGE),
    ("no text in the message to edit", Fault.NO_MESSAGE),
    ("message to delete not found", Fault.NO_MESSAGE),
    ("message to react not found", Fault.NO_MESSAGE),
    ("message_id_invalid", Fault.NO_MESSAGE),
    ("chat not found", Fault.NO_CHAT),
    ("user not found", Fault.NO_CHAT),
    ("user is deactivated", Fault.NO_CHAT),
    ("peer_id_invalid", Fault.NO_CHAT),
    ("chat was deactivated", Fault.NO_CHAT),
    ("entit", Fault.FORMAT),  # can't parse entities, ENTITY_BOUNDS_INVALID, ENTITIES_TOO_LONG
    ("message is too long", Fault.FORMAT),
    ("text is too long", Fault.FORMAT),
    ("caption is too long", Fault.FORMAT),
)
"""Parts of a Bad Request's text (facts sheet 4.3); any other is `REFUSED`."""

POLL_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between attempts while Telegram does not answer."""
REFUSED_PAUSE = 60.0
"""The longest time between attempts with a token that was refused: servers have been wrong about that for a while."""


def as_send_error(error: TelegramError) -> SendError:
    """Say what is to be done about a call that failed."""
    detail = str(error.new_chat_id) if isinstance(error, ChatMigrated) else _brief(error)
    return SendError(_fault(error), detail, retry_after=_seconds(error) if isinstance(error, RetryAfter) else 0.0)


def _fault(error: TelegramError) -> Fault:
    text = error.message.casefold()
    if isinstance(error, BadRequest):
        return next((fault for words, fault in _WORDS if words in text), Fault.REFUSED)
    if isinstance(error.__cause__, _NOT_WRITTEN):
        return Fault.UNSENT
    if "request entity too large" in text or "method not found" in text:  # the latter from an older server of one's own
        return Fault.REFUSED
    return next((fault for kind, fault in _CLASSES if isinstance(error, kind)), Fault.UNKNOWN)


def is_unchanged(error: SendError) -> bool:
    """True for an edit that changes nothing, which is a success (pitfall P32)."""
    return "message is not modified" in error.detail.casefold()


def is_nobody(error: SendError) -> bool:
    """True where it is the person who is not there: the account is gone, or never was in the group."""
    text = error.detail.casefold()
    return any(words in text for words in ("user not found", "user is deactivated", "participant_id_invalid"))


def is_blocked_by_webhook(error: Exception) -> bool:
    """True where polling is refused because updates go to a webhook."""
    return isinstance(error, Conflict) and "webhook is active" in error.message.casefold()


def explain(error: Exception) -> str:
    """Say in one sentence why nothing is received, and what to do."""
    if isinstance(error, InvalidToken):
        return "Telegram refuses the token: set telegram.token to the one that @BotFather shows for this bot"
    if isinstance(error, Conflict):
        done = "has set a webhook" if "webhook" in error.message.casefold() else "polls"
        return f"another program {done} for this bot: stop it, or give this one a bot of its own"
    if isinstance(error, RetryAfter):
        return f"Telegram asks to wait for {_seconds(error):.0f} seconds"
    if isinstance(error, BadRequest):
        return f"Telegram refuses the request: {error.message}"
    if isinstance(error, TelegramError):
        return f"Telegram cannot be reached: {_brief(error)}"
    return f"Telegram's answer cannot be understood: {type(error).__name__}"


def pause(error: Exception, attempt: int) -> float:
    """Seconds to wait after the `attempt`-th failure in a row (from 0)."""
    if isinstance(error, RetryAfter):
        return _seconds(error) + 0.5
    pauses = (*POLL_PAUSES, REFUSED_PAUSE) if isinstance(error, InvalidToken) else POLL_PAUSES
    return pauses[min(attempt, len(pauses) - 1)]


def _seconds(error: RetryAfter) -> float:
    value = error.retry_after
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _brief(error: TelegramError) -> str:
    """Without the body of a proxy's error page."""
    return error.message.partition(". Parsing the server response")[0] or type(error).__name__
