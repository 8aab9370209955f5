"""An HTTP server that answers from a list, byte for byte: for what no well-behaved stand-in would say."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web


@dataclass(frozen=True)
class Canned:
    """One answer. `breaks` drops the socket after the body, `hangs` leaves it open for ever."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    breaks: bool = False
    hangs: bool = False


@dataclass(frozen=True)
class Seen:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class CannedServer:
    """`routes` hold the answers by path, in their order; the last one is repeated. Other paths are 404."""

    def __init__(self, routes: Mapping[str, list[Canned]] | None = None) -> None:
        self.routes = dict(routes or {})
        self.seen: list[Seen] = []
        self.left = asyncio.Event()
        self.url = ""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True)

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """What was posted to a path."""
        return [seen.body for seen in self.seen if seen.path == path]

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json() if request.can_read_body else {}
        self.seen.append(Seen(request.path, request.headers.copy(), body))
        answers = self.routes.get(request.path)
        if not answers:
            return web.Response(status=404, text="404 page not found")
        answer = answers[0] if len(answers) == 1 else answers.pop(0)
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        await response.prepare(request)
        await response.write(answer.body or b"")
        if answer.hangs:
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        if answer.breaks:
            await asyncio.sleep(0.02)  # let the body arrive first
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write_eof()
        return response
