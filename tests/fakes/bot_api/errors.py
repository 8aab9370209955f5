"""What the Bot API says when it refuses.

One rule: every refusal is a `BotApiError`, worded by `refuse`, so that the texts can be compared with the real ones.
"""

import re
from typing import Any

Json = dict[str, Any]

_PREFIXES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
}

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)
TOO_OLD_QUERY = "query is too old and response timeout expired or query ID is invalid"
SECOND_POLLER = "terminated by other getUpdates request; make sure that only one bot instance is running"
POLL_ENDED_BY_WEBHOOK = "terminated by setWebhook request"
WEBHOOK_ACTIVE = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"


class BotApiError(Exception):
    """A refusal as it goes over the wire: the HTTP status is the code, the description is complete."""

    def __init__(self, code: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def body(self) -> Json:
        body: Json = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            body["parameters"] = self.parameters
        return body


def refuse(message: str, code: int = 400, parameters: Json | None = None) -> BotApiError:
    """Word a refusal as the real server does.

    The prefix goes by the code; the first letter is lowered unless the second is upper-case or `_`; a 403 that is a
    bare constant (capitals, digits, `_`) is really a 400 (telegram-bot-api 10.0, `fail_query_with_error`).
    """
    if code == 403 and re.fullmatch(r"[A-Z0-9_]+", message):
        code = 400
    is_constant = len(message) > 1 and (message[1].isupper() or message[1] == "_")
    text = message if is_constant else message[:1].lower() + message[1:]
    return BotApiError(code, f"{_PREFIXES[code]}: {text}", parameters)


def too_many_requests(seconds: int) -> BotApiError:
    return BotApiError(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})
