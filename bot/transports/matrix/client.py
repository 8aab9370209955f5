"""The client-server API in plain requests: one call, one answer or one `MatrixError`.

Rule: nothing is repeated here; whether a call goes out again is decided by who made it.
"""

import json
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx

from bot.transports.matrix.errors import TOO_MANY, UNSAID_PAUSE, MatrixError

Json = dict[str, Any]

CLIENT = "/_matrix/client/v3"
MEDIA = "/_matrix/media/v3"

READ_SECONDS = 30.0
"""Generous: a send whose answer is not waited for is one that nobody knows about."""
PASSING_SECONDS = 5.0
"""For what must not hold up anything: typing, receipts, reactions."""
LONG_POLL_SECONDS = 30

_NOT_WRITTEN = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)

FILTER: Json = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {
        "account_data": {"types": []},
        "ephemeral": {"types": []},
        "timeline": {"limit": 100},
        "state": {"lazy_load_members": False},
    },
}
"""Nothing that nobody reads; and members whole, for who can read along is a question of each message."""

KEYS_ONLY: Json = {"presence": {"types": []}, "account_data": {"types": []}, "room": {"rooms": []}}


class Homeserver:
    """One homeserver, as one device sees it."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.token = ""
        timeout = httpx.Timeout(READ_SECONDS, connect=5.0, pool=5.0)
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        # a proxy of the environment could not be trusted with a token on loopback
        verify = httpx.create_ssl_context() if self.url.startswith("https:") else False
        self._http = httpx.AsyncClient(timeout=timeout, limits=limits, verify=verify)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def call(  # noqa: PLR0913 - what a request has
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: dict[str, str] | None = None,
        seconds: float = READ_SECONDS,
        upload: tuple[bytes, str] | None = None,
        root: str = CLIENT,
    ) -> Json:
        """One request; `upload` is bytes and their content type. Raises `MatrixError`."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        content: bytes | None = None
        if upload:
            content, headers["Content-Type"] = upload
        elif body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        timeout = httpx.Timeout(seconds, connect=5.0, pool=5.0)
        try:
            answer = await self._http.request(
                method, self.url + root + path, params=query, content=content, headers=headers, timeout=timeout
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            written = not isinstance(error, _NOT_WRITTEN)
            raise MatrixError(0, type(error).__name__, f"{self.url} does not answer", was_written=written) from None
        return _read(answer)

    async def sync(self, since: str | None, *, full_state: bool, seconds: float, only: Json = FILTER) -> Json:
        """One sync, waiting so long for news."""
        query = {"filter": json.dumps(only), "timeout": str(round(seconds * 1000)), "set_presence": "online"}
        if since:
            query["since"] = since
        if full_state:
            query["full_state"] = "true"
        return await self.call("GET", "/sync", query=query, seconds=seconds + READ_SECONDS)

    async def send(self, room: str, kind: str, content: Json, txn: str, *, seconds: float = READ_SECONDS) -> str:
        """Send an event and return its id; the same `txn` again is the same event."""
        path = f"/rooms/{quoted(room)}/send/{quoted(kind)}/{quoted(txn)}"
        return str((await self.call("PUT", path, content, seconds=seconds))["event_id"])

    async def redact(self, room: str, event_id: str) -> None:
        """Take an event's words away; the same again does no harm."""
        path = f"/rooms/{quoted(room)}/redact/{quoted(event_id)}/{quoted(f'gone-{event_id}')}"
        await self.call("PUT", path, {})

    async def event(self, room: str, event_id: str) -> Json | None:
        """An event as it is now; None where it is not to be seen."""
        try:
            return await self.call("GET", f"/rooms/{quoted(room)}/event/{quoted(event_id)}")
        except MatrixError as error:
            if error.is_passing:
                raise
            return None

    async def related(self, room: str, event_id: str, relation: str) -> list[Json]:
        """The events that relate to an event in this way, all of them."""
        found: list[Json] = []
        query = {"limit": "100"}
        while True:
            path = f"/rooms/{quoted(room)}/relations/{quoted(event_id)}/{relation}"
            page = await self.call("GET", path, query=query, root="/_matrix/client/v1")
            found += page.get("chunk", [])
            if not page.get("next_batch"):
                return found
            query["from"] = str(page["next_batch"])

    async def upload(self, content: bytes, content_type: str, name: str) -> str:
        """Store a file and return its address (mxc://…)."""
        query = {"filename": name} if name else None
        answer = await self.call("POST", "/upload", query=query, upload=(content, content_type), root=MEDIA)
        return str(answer["content_uri"])


def quoted(part: str) -> str:
    """A part of a path: ids hold `!`, `$`, `:` and `/`."""
    return quote(part, safe="")


def _read(answer: httpx.Response) -> Json:
    try:
        value: Any = answer.json()
    except ValueError:
        value = None
    body = cast("Json", value) if isinstance(value, dict) else {}
    if answer.status_code == HTTPStatus.OK and isinstance(value, dict):
        return body
    status = answer.status_code if answer.status_code != HTTPStatus.OK else HTTPStatus.BAD_GATEWAY
    detail = str(body.get("error") or answer.reason_phrase)
    code = str(body.get("errcode") or "no error code")
    raise MatrixError(status, code, detail, retry_after=_retry_after(status, body, answer.headers), body=body)


def _retry_after(status: int, body: Json, headers: httpx.Headers) -> float:
    """Seconds; the body's milliseconds are what homeservers send, the header is what the newer specification says."""
    if status != TOO_MANY:
        return 0.0
    try:
        if (said := body.get("retry_after_ms")) is not None:
            return float(said) / 1000
        return float(headers["Retry-After"])
    except (KeyError, ValueError, TypeError):
        return UNSAID_PAUSE
