"""What the servers of others say of us: who the bot is, whether a key is good, what time it is.

Rule: no text of an error leaves here, because the address of Telegram's server holds the token.
"""

import time
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal

import httpx
import structlog

TELEGRAM = "https://api.telegram.org"
ANTHROPIC = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2026-10-21"

SECONDS = 8.0

log = structlog.get_logger(__name__)


class ServerError(Exception):
    """A server does not answer, or not as it should; the text says which and how."""

    def __init__(self, url: str, how: str) -> None:
        super().__init__(f"{url} {how}")
        self.url = url


async def get_me(url: str, token: str) -> dict[str, Any] | None:
    """What Telegram says of a bot; None for a token that it does not accept. Raises `ServerError`."""
    answer = await ask("GET", url, f"/bot{token}/getMe")
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND):
        return None
    return result_of(url, answer)["result"]


async def find_claude(url: str, key: str, model: str) -> Literal["there", "unknown model", "refused key"]:
    """Ask Anthropic for a model, which costs nothing. Raises `ServerError`."""
    headers = {"Authorization": f"Bearer {key}", "anthropic-version": ANTHROPIC_VERSION}
    answer = await ask("GET", url, f"/v1/models/{model}", headers=headers)
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "refused key"
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return "unknown model"
    result_of(url, answer)
    return "there"


async def seconds_apart(url: str) -> float | None:
    """How far our clock is from a server's; None where it does not say."""
    try:
        answer = await ask("HEAD", url, "")
        return abs(parsedate_to_datetime(answer.headers["date"]).timestamp() - time.time())
    except (ServerError, KeyError, ValueError) as error:
        log.debug("servers.no_clock", url=url, error=type(error).__name__)
        return None


async def ask(method: str, url: str, path: str, **more: Any) -> httpx.Response:
    """One request, whatever the status of its answer. Raises `ServerError`."""
    try:
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            return await client.request(method, url.rstrip("/") + path, **more)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ServerError(url, f"does not answer ({type(error).__name__})") from None


def result_of(url: str, answer: httpx.Response) -> dict[str, Any]:
    """The JSON object of a good answer. Raises `ServerError`."""
    if answer.status_code != HTTPStatus.OK:
        raise ServerError(url, f"answers with an error ({answer.status_code})")
    try:
        return dict(answer.json())
    except (ValueError, TypeError):
        raise ServerError(url, "answers with something else than JSON") from None
