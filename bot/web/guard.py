"""In front of every page: how often somebody may ask, from where a form may come, and what browsers are told.

Rule: nothing here knows a page. What it refuses is refused before anything is read or looked up.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLIENTS = 10_000
"""Remembered at most; whoever has not asked for longest is forgotten."""
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers call the origin of our own forms "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_STATIC = "/static/"
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Limits:
    """How often one client may ask."""

    per_second: float = 20.0
    burst: int = 200
    wrong_per_second: float = 1 / 6
    """Tries with a wrong token, link or session."""
    wrong_burst: int = 10


class Bucket:
    """Tokens for each client, refilled as time goes by."""

    def __init__(self, per_second: float, burst: int, now: Callable[[], float]) -> None:
        self._rate = per_second
        self._burst = burst
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until the client may ask; 0 = now."""
        left = self._refilled(client)
        return 0.0 if left >= 1 else (1 - left) / self._rate

    def take(self, client: str) -> None:
        self._left[client] = (max(self._refilled(client) - 1, 0.0), self._now())
        self._left.move_to_end(client)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)

    def _refilled(self, client: str) -> float:
        left, at = self._left.get(client, (float(self._burst), self._now()))
        return min(left + (self._now() - at) * self._rate, self._burst)


class Guard:
    """ASGI middleware."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        now: Callable[[], float] = time.monotonic,
        *,
        apart: Mapping[str, Limits] | None = None,
    ) -> None:
        """`apart` counts what is asked below a path by limits of its own; wrong tries are counted together."""
        self._app = app
        self._asked = Bucket(limits.per_second, limits.burst, now)
        self._apart = {path: Bucket(each.per_second, each.burst, now) for path, each in (apart or {}).items()}
        self._wrong = Bucket(limits.wrong_per_second, limits.wrong_burst, now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = str((scope.get("client") or ("unknown", 0))[0])
        headers = Headers(scope=scope)
        offers = "authorization" in headers or "cookie" in headers or scope["method"] not in _SAFE
        asked = next((each for path, each in self._apart.items() if scope["path"].startswith(path)), self._asked)
        wait = max(asked.wait(client), self._wrong.wait(client) if offers else 0.0)
        asked.take(client)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == _UNAUTHORIZED and offers:
                    self._wrong.take(client)
                _tell_browsers(MutableHeaders(scope=message), scope)
            await send(message)

        if wait:
            await _refuse(answer, 429, "Too many requests.", {"retry-after": str(int(wait) + 1)})
        elif scope["method"] not in _SAFE and not _is_ours(headers, scope):
            await _refuse(answer, 403, "The request comes from another site.", {})
        else:
            await self._app(scope, receive, answer)


def _is_ours(headers: Headers, scope: Scope) -> bool:
    """Browsers say where a write comes from; a program says nothing, and brings a token."""
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None or origin == "null":
        return origin is None
    return urlsplit(origin).netloc == headers.get("host", "") and urlsplit(origin).scheme == scope["scheme"]


def _tell_browsers(headers: MutableHeaders, scope: Scope) -> None:
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    if not scope["path"].startswith(_STATIC):
        headers.setdefault("cache-control", "no-store")
    if scope["scheme"] == "https":
        headers.setdefault("strict-transport-security", "max-age=31536000")


async def _refuse(send: Send, status: int, said: str, more: dict[str, str]) -> None:
    body = json.dumps({"detail": said}).encode()
    head = {"content-type": "application/json", "content-length": str(len(body)), **more}
    raw = [(name.encode(), value.encode()) for name, value in head.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
