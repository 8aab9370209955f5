"""One answer on its way to the client, and the faults that may hit it there."""

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from tests.fakes.messages_api.faults import BREAKING, Fault
from tests.fakes.messages_api.model import refusal_details
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.stream import DELTA, Event, encode, events, pieces
from tests.fakes.messages_api.wire import Json, error_body

FOR_EVER: Final = 3_600.0
REQUEST_ID: Final = web.RequestKey("request_id", str)


@dataclass
class Wire:
    """One answer on its way out, with the fault that may hit it there."""

    http: web.Request
    request: Request
    fault: Fault | None

    @property
    def kind(self) -> str | None:
        return self.fault.kind if self.fault is not None else None

    def _ends(self) -> None:
        """Note the end before it is on the wire: the client may act on it at once."""
        self.request.end = "complete" if self.kind in (None, "slow_start", "slow_chunks") else f"fault: {self.kind}"

    async def _wait(self, *kinds: str) -> None:
        if self.fault is not None and self.fault.kind in kinds:
            await asyncio.sleep(self.fault.seconds)

    async def send(self, message: Json) -> web.StreamResponse:
        """The message in one piece; faults of streams in the form they have there."""
        request_id = self.http[REQUEST_ID]
        await self._wait("slow_start", "slow_chunks")
        if self.kind == "stall":
            await asyncio.sleep(FOR_EVER)
        self._ends()
        match self.kind:
            case "disconnect" | "truncate":
                return abort(self.http)
            case "empty":
                return web.Response(headers={"request-id": request_id, "content-type": "application/json"})
            case "malformed":
                return web.Response(text='{"id": "msg_', headers={"content-type": "application/json"})
            case "stream_error":
                self.request.status = 529
                return json_response(529, error_body(529, "Overloaded", request_id), request_id)
            case _:
                return json_response(200, message, request_id)

    async def stream(self, message: Json) -> web.StreamResponse:
        """The message as server-sent events, up to where the fault breaks it."""
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "request-id": self.http[REQUEST_ID]}
        )
        await response.prepare(self.http)
        await self._wait("slow_start")
        if self.kind == "empty":
            self._ends()
            return response
        shown = 0
        for event in events(message):
            if self._breaks_at(event, shown):
                return await self._break(response)
            if _carries_text(event):
                await self._wait("slow_chunks")
                shown += 1
            if event[0] == "message_stop":
                self._ends()
            await response.write(encode(event))
        return response

    def _breaks_at(self, event: Event, shown: int) -> bool:
        if self.fault is None or self.fault.kind not in BREAKING:
            return False
        return event[0] == "message_delta" or (_carries_text(event) and shown >= self.fault.after)

    async def _break(self, response: web.StreamResponse) -> web.StreamResponse:
        if self.kind == "stall":
            await asyncio.sleep(FOR_EVER)
        self._ends()
        match self.kind:
            case "stream_error":
                await response.write(encode(("error", error_body(529, "Overloaded", self.http[REQUEST_ID]))))
            case "malformed":
                await response.write(f'event: {DELTA}\ndata: {{"type": "{DELTA}", "index": 0, "del\n\n'.encode())
            case "disconnect":
                abort(self.http)
            case _:
                pass  # truncate: the response ends here, well-formed
        return response


def _carries_text(event: Event) -> bool:
    name, data = event
    return name == DELTA and data["delta"]["type"] in ("text_delta", "input_json_delta")


def as_refusal(message: Json, shown: int) -> Json:
    """The message as a refusal: a little text, no calls."""
    kept: list[Json] = [
        block | {"text": "".join(pieces(block["text"])[:shown])}
        for block in message["content"]
        if block["type"] == "text" and shown
    ]
    return message | {"content": kept[:1], "stop_reason": "refusal", "stop_details": refusal_details()}


def abort(http: web.Request) -> web.StreamResponse:
    """Let the socket die under the client."""
    if http.transport is not None:
        http.transport.abort()
    return web.Response()


def json_response(status: int, body: Json, request_id: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(body, status=status, headers={"request-id": request_id, **(headers or {})})
