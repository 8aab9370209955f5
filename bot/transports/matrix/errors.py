"""What a homeserver's refusals mean: for a send, for a sync, and for the person who runs the bot. Pure."""

from typing import Any

from bot.transports.base import Fault, SendError

TOO_MANY = 429
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_LARGE = 401, 403, 404, 413
SERVER_FAULT = 500

PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between attempts while the homeserver does not answer."""
REFUSED_PAUSE = 60.0
"""The same while it refuses us: an administrator has to do something first."""
UNSAID_PAUSE = 5.0
"""After a 429 that does not say how long."""


class MatrixError(Exception):
    """A request that did not succeed. `status` 0: there was no answer; `was_written`: it may have been carried out."""

    def __init__(
        self,
        status: int,
        errcode: str,
        detail: str,
        *,
        retry_after: float = 0.0,
        was_written: bool = True,
        body: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{status} {errcode}: {detail}")
        self.status = status
        self.errcode = errcode
        self.detail = detail
        self.retry_after = retry_after
        self.was_written = was_written
        self.body = body or {}

    @property
    def is_passing(self) -> bool:
        """True where the same request may succeed later."""
        return self.status in (0, TOO_MANY) or self.status >= SERVER_FAULT or self.is_logged_out

    @property
    def is_logged_out(self) -> bool:
        return self.status == UNAUTHORIZED and self.errcode in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN")


class AccountError(Exception):
    """The bot's account or device is not what it must be; the text says what to do."""


def as_send_error(error: MatrixError, *, is_in_thread: bool = False) -> SendError:
    """Say what is to be done about a call that failed."""
    return SendError(_fault(error, is_in_thread), f"{error.errcode} {error.detail}", retry_after=error.retry_after)


def _fault(error: MatrixError, is_in_thread: bool) -> Fault:
    if error.status == TOO_MANY:
        return Fault.LATER
    if error.is_passing:
        return Fault.UNKNOWN if error.was_written and not error.is_logged_out else Fault.UNSENT
    if error.status == TOO_LARGE or error.errcode == "M_TOO_LARGE":
        return Fault.FORMAT
    if error.status == FORBIDDEN:
        return Fault.NO_CHAT if "not in room" in error.detail.casefold() else Fault.REFUSED
    if error.status == NOT_FOUND:
        return Fault.NO_CHAT
    return Fault.NO_THREAD if is_in_thread and "thread" in error.detail.casefold() else Fault.REFUSED


def explain(error: Exception) -> str:
    """Say in one sentence why nothing is received, and what to do."""
    if isinstance(error, AccountError):
        return str(error)
    return _explain(error) if isinstance(error, MatrixError) else f"unexpected: {type(error).__name__}"


def _explain(error: MatrixError) -> str:
    if error.status == TOO_MANY:
        return f"the homeserver asks to wait for {error.retry_after:.0f} seconds"
    if error.is_logged_out:
        return "the homeserver does not know the access token: set matrix.password, or a new matrix.access_token"
    if error.status == FORBIDDEN:
        return f"the homeserver refuses the login ({error.detail}): check matrix.user_id and matrix.password"
    if error.is_passing:
        return f"the homeserver cannot be reached: {error.detail}"
    return f"the homeserver refuses the request: {error.errcode} {error.detail}"


def pause(error: Exception, attempt: int) -> float:
    """Seconds to wait after the `attempt`-th failure in a row (from 0)."""
    if isinstance(error, MatrixError) and error.status == TOO_MANY:
        return error.retry_after + 0.5
    is_refused = isinstance(error, AccountError) or (isinstance(error, MatrixError) and error.status == FORBIDDEN)
    pauses = (*PAUSES, REFUSED_PAUSE) if is_refused else PAUSES
    return pauses[min(attempt, len(pauses) - 1)]
