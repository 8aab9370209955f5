"""The HTTP side of the stand-in: endpoints, records, and faults on the wire."""

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from aiohttp import web

from tests.fakes.messages_api.cache import PromptCache, count
from tests.fakes.messages_api.catalogue import MODELS, Spec, describe_model
from tests.fakes.messages_api.control import control_routes
from tests.fakes.messages_api.delivery import REQUEST_ID, Wire, abort, as_refusal, json_response
from tests.fakes.messages_api.faults import Fault, FaultKind, matching, take_fault
from tests.fakes.messages_api.model import Model
from tests.fakes.messages_api.rules import Answer, Call, Match, Rule
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.strictness import check, check_sender
from tests.fakes.messages_api.wire import ApiError, Json, error_body, mapping, refuse

MAX_BYTES: Final = 32 * 1024 * 1024
NUMBER: Final = web.RequestKey("number", int)


@dataclass(frozen=True)
class Violation:
    """A rule of the API that a client broke."""

    request: int
    status: int
    message: str


@dataclass(frozen=True)
class Cue:
    """A condition that waits for what shall happen under it."""

    api: "MessagesApi"
    match: Match

    def reply(
        self,
        text: str | None = None,
        *,
        tool: Call | None = None,
        tools: Sequence[Call] = (),
        json: Any = None,
        fn: Callable[[Request], Answer] | None = None,
        thinking: str | None = None,
        advice: str | None = None,
        stop_reason: str | None = None,
        times: int | None = None,
    ) -> Rule[Request]:
        """Answer so; see RuleBook.add for what holds where the condition is silent."""
        return self.api.model.book.add(
            self.match,
            text,
            tool=tool,
            tools=tools,
            json=json,
            fn=fn,
            thinking=thinking,
            advice=advice,
            stop_reason=stop_reason,
            times=times,
        )

    def fault(self, kind: FaultKind, times: int | None = 1, **options: Any) -> Fault:
        """Fail so; options are `retry_after`, `seconds`, `after`."""
        return self.api.fault(kind, times, self.match, **options)


class MessagesApi:
    """A strict Messages API on a loopback port, answering by script.

    `async with MessagesApi() as api:` serves at `api.base_url` (root, without `/v1`) for the key `api.key`. Leaving the
    block raises what a scripted function raised meanwhile.
    """

    def __init__(self, *, port: int = 0, key: str = "test", clock: Callable[[], float] = time.monotonic) -> None:
        self.port = port
        self.key = key
        self.models: dict[str, Spec] = dict(MODELS)
        self.model = Model(cache=PromptCache(clock))
        self.requests: list[Request] = []
        self.counted: list[Request] = []
        self.violations: list[Violation] = []
        self.faults: list[Fault] = []
        self.failures: list[Exception] = []
        self.is_down = False
        self._numbers = 0
        self._runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def on(
        self,
        user: str | None = None,
        *,
        system: str | None = None,
        model: str | None = None,
        after_tool: bool | str | None = None,
        has_tool: str | None = None,
        background: bool | None = None,
    ) -> Cue:
        """Begin a rule or a fault; see Match."""
        return Cue(self, Match(user, system, model, after_tool, has_tool, background))

    def fault(self, kind: FaultKind, times: int | None = 1, match: Match | str | None = None, **options: Any) -> Fault:
        """Let the next `times` requests that match fail (None: for ever). The newest fault goes first."""
        fault = Fault(kind, times, matching(match), **options)
        self.faults.append(fault)
        return fault

    def down(self) -> None:
        """Cut every connection to /v1 before it is answered, until `up`."""
        self.is_down = True

    def up(self) -> None:
        self.is_down = False

    def shrink(self, model: str, window: int) -> None:
        """Give a model a smaller context window, in tokens."""
        self.models[model] = replace(self.models[model], window=window)

    def clear(self) -> None:
        """Drop rules and faults, and be up."""
        self.model.book.rules.clear()
        self.faults.clear()
        self.is_down = False

    def reset(self) -> None:
        """Forget everything: script, records, cache, windows."""
        self.clear()
        for record in (self.requests, self.counted, self.violations):
            record.clear()
        self.model.cache.entries.clear()
        self.models = dict(MODELS)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=MAX_BYTES, middlewares=[self._guard])
        app.add_routes(
            [
                web.post("/v1/messages", self._messages),
                web.post("/v1/messages/count_tokens", self._count_tokens),
                web.get("/v1/models", self._models),
                web.get("/v1/models/{name}", self._model),
                *control_routes(self),
            ]
        )
        # a client that leaves cancels its handler, so that stalls end and the record says who left
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self.failures:
            raise ExceptionGroup("the script of the stand-in failed", self.failures)

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        http = request
        if self.is_down and http.path.startswith("/v1"):
            return abort(http)
        request_id = f"req_{secrets.token_hex(12)}"
        http[REQUEST_ID] = request_id
        try:
            if http.path.startswith("/v1"):
                check_sender({name.lower(): value for name, value in http.headers.items()}, self.key)
            return await handler(http)
        except ApiError as error:
            if error.is_violation:
                number = http.get(NUMBER, -1)
                self.violations.append(Violation(number, error.status, error.message))
            return json_response(error.status, error.body(request_id), request_id)
        except web.HTTPException as error:  # no such path or method, or a body beyond 32 MB
            self.violations.append(Violation(-1, error.status, f"{error.reason}: {http.method} {http.path}"))
            return json_response(error.status, error_body(error.status, error.reason, request_id), request_id)
        except Exception as error:  # noqa: BLE001 - kept and raised again when the stand-in closes
            self.failures.append(error)
            return json_response(500, error_body(500, f"script failed: {error!r}", request_id), request_id)

    async def _read(self, http: web.Request, log: list[Request]) -> Request:
        try:
            body = mapping(json.loads(await http.text()))
        except ValueError:
            body = None
        self._numbers += 1
        headers = {name.lower(): value for name, value in http.headers.items()}
        named = ",".join(http.headers.getall("anthropic-beta", ()))
        betas = frozenset(beta.strip() for beta in named.split(",") if beta.strip())
        request = Request(self._numbers, http.path_qs, headers, body or {}, betas)
        http[NUMBER] = request.number
        log.append(request)
        if body is None:
            request.status, request.end = 400, "refused"
            refuse("The request body is not valid JSON.")
        return request

    def _check(self, request: Request, *, counts: bool) -> Spec:
        try:
            return check(request, self.models, self.model.seals, counts=counts)
        except ApiError as error:
            request.status, request.end = error.status, "refused"
            raise

    async def _count_tokens(self, http: web.Request) -> web.StreamResponse:
        request = await self._read(http, self.counted)
        self._check(request, counts=True)
        request.status, request.end = 200, "complete"
        return json_response(200, {"input_tokens": count(request)}, http[REQUEST_ID])

    async def _models(self, http: web.Request) -> web.StreamResponse:
        names = list(self.models)
        start = names.index(http.query["after_id"]) + 1 if http.query.get("after_id") in names else 0
        limit = int(http.query.get("limit", "20"))
        page = names[start : start + limit]
        betas = frozenset(http.headers.get("anthropic-beta", "").split(","))
        body: Json = {
            "data": [describe_model(name, self.models[name], betas) for name in page],
            "has_more": start + limit < len(names),
            "first_id": page[0] if page else None,
            "last_id": page[-1] if page else None,
        }
        return json_response(200, body, http[REQUEST_ID])

    async def _model(self, http: web.Request) -> web.StreamResponse:
        name = http.match_info["name"]
        if name not in self.models:
            raise ApiError(404, f"model: {name}")
        betas = frozenset(http.headers.get("anthropic-beta", "").split(","))
        return json_response(200, describe_model(name, self.models[name], betas), http[REQUEST_ID])

    async def _messages(self, http: web.Request) -> web.StreamResponse:
        request = await self._read(http, self.requests)
        spec = self._check(request, counts=False)
        fault = take_fault(self.faults, request)
        if fault is not None and fault.is_error:
            status, body, headers = fault.error(http[REQUEST_ID])
            request.status, request.end = status, f"fault: {fault.kind}"
            return json_response(status, body, http[REQUEST_ID], headers)
        try:
            message = self.model.answer(request, spec)
        except ApiError as error:
            request.status, request.end = error.status, "refused"
            raise
        if fault is not None and fault.kind == "refusal":
            message = as_refusal(message, fault.after)
        request.reply, request.status = message, 200
        wire = Wire(http, request, fault)
        try:
            return await (wire.stream(message) if request.is_stream else wire.send(message))
        except (asyncio.CancelledError, ConnectionError):
            request.end = "client left" if request.end == "open" else request.end
            raise
