"""The HTTP side of the stand-in for Ollama: endpoints, loaded models, records."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from aiohttp import web

from tests.fakes.messages_api.control import add_rules, posting
from tests.fakes.messages_api.rules import Answer, Call, Match, Rule, RuleBook
from tests.fakes.messages_api.wire import Json, mapping, size
from tests.fakes.ollama_api.chat import (
    FOR_EVER,
    check_chat,
    cut,
    lines,
    misplaced_results,
    one_by_one,
    send,
    stamp,
    stream,
    unscripted,
)
from tests.fakes.ollama_api.records import (
    ERRORS,
    INSTALLED,
    FaultKind,
    OllamaError,
    OllamaFault,
    OllamaModel,
    OllamaRequest,
)
from tests.fakes.ollama_api.vectors import embed

DEFAULT_CONTEXT: Final = 4_096  # what a machine with less than 24 GiB of video memory gets
KEEP_ALIVE: Final = 300.0
A_CENTURY: Final = 3.15e9  # seconds
UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}
INTEGERS: Final = frozenset(
    {"num_ctx", "num_predict", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "seed", "top_k"}
    | {"repeat_last_n"}
)
NUMBERS: Final = frozenset(
    {"temperature", "top_p", "min_p", "typical_p", "repeat_penalty", "presence_penalty", "frequency_penalty"}
)
OTHER_OPTIONS: Final = frozenset({"stop", "use_mmap"})
CHAT_FIELDS: Final = frozenset(
    {"model", "messages", "tools", "stream", "format", "options", "keep_alive", "think", "logprobs", "top_logprobs"}
)
EMBED_FIELDS: Final = frozenset({"model", "input", "truncate", "options", "keep_alive", "dimensions"})


@dataclass(frozen=True)
class OllamaCue:
    """A condition that waits for its reply."""

    book: RuleBook[OllamaRequest]
    match: Match

    def reply(
        self,
        text: str | None = None,
        *,
        tool: Call | None = None,
        tools: Sequence[Call] = (),
        json: Any = None,
        fn: Callable[[OllamaRequest], Answer] | None = None,
        thinking: str | None = None,
        times: int | None = None,
    ) -> Rule[OllamaRequest]:
        """Answer so; see RuleBook.add for what holds where the condition is silent."""
        return self.book.add(self.match, text, tool=tool, tools=tools, json=json, fn=fn, thinking=thinking, times=times)


class OllamaApi:
    """A scripted Ollama on a loopback port: `async with OllamaApi() as api:` serves at `api.host`.

    `loads` lists every loading of a model as (name, context in tokens); `violations` what the real server would
    silently ignore or stumble over. Leaving the block raises what a scripted function raised meanwhile.
    """

    def __init__(self, models: Iterable[OllamaModel] = INSTALLED, *, port: int = 0) -> None:
        self.port = port
        self.models = {model.name: model for model in models}
        self.book: RuleBook[OllamaRequest] = RuleBook()
        self.requests: list[OllamaRequest] = []
        self.faults: list[OllamaFault] = []
        self.violations: list[str] = []
        self.loads: list[tuple[str, int]] = []
        self.failures: list[Exception] = []
        self._loaded: dict[str, tuple[int, float]] = {}
        self._runner: web.AppRunner | None = None

    @property
    def host(self) -> str:
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
    ) -> OllamaCue:
        """Begin a rule; a request with a `format` counts as background."""
        return OllamaCue(self.book, Match(user, system, model, after_tool, has_tool, background))

    def fault(self, kind: FaultKind, times: int | None = 1, **options: Any) -> OllamaFault:
        """Let the next `times` requests fail (None: all); options are `path`, `seconds`, `after`."""
        fault = OllamaFault(kind, times, **options)
        self.faults.append(fault)
        return fault

    def clear(self) -> None:
        """Drop rules and faults."""
        self.book.rules.clear()
        self.faults.clear()

    async def up(self) -> None:
        """Listen, on the same port as before."""
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/api/version", self._version),
                web.get("/api/tags", self._tags),
                web.get("/api/ps", self._ps),
                web.post("/api/show", self._show),
                web.post("/api/chat", self._chat),
                web.post("/api/embed", self._embed),
                web.post("/ctl/rules", posting(lambda body: add_rules(self.book, body))),
                web.post("/ctl/faults", posting(lambda body: self.faults.append(OllamaFault(**body)))),
                web.post("/ctl/clear", posting(lambda _: self.clear())),
                web.get("/ctl/requests", self._records),
            ]
        )
        # a client that leaves cancels its handler, so that stalls end and the record says who left
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def down(self) -> None:
        """Stop listening: connections are refused until `up`."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.down()
        if self.failures:
            raise ExceptionGroup("the script of the stand-in failed", self.failures)

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            return await handler(request)
        except OllamaError as error:
            return web.json_response({"error": error.message}, status=error.status)
        except web.HTTPException as error:
            self.violations.append(f"{request.method} {request.path}: {error.reason}")
            return web.Response(status=error.status, text=f"{error.status} {error.reason}")
        except Exception as error:  # noqa: BLE001 - kept and raised again when the stand-in closes
            self.failures.append(error)
            return web.json_response({"error": repr(error)}, status=500)

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.14.2"})

    async def _tags(self, _: web.Request) -> web.Response:
        return web.json_response({"models": [_describe(model) for model in self.models.values()]})

    async def _records(self, _: web.Request) -> web.Response:
        told = [request.record() for request in self.requests]
        return web.json_response({"requests": told, "violations": self.violations})

    async def _ps(self, _: web.Request) -> web.Response:
        now = time.time()
        loaded = [
            _describe(self.models[name]) | {"expires_at": stamp(until - now), "size_vram": 0, "context_length": context}
            for name, (context, until) in self._loaded.items()
            if until > now
        ]
        return web.json_response({"models": loaded})

    async def _show(self, http: web.Request) -> web.Response:
        model = self._find(mapping(await http.json()) or {})
        info: Json = {"general.architecture": "standin", "standin.context_length": model.context}
        if model.can("embedding"):
            info["standin.embedding_length"] = model.dimensions
        shown: Json = {"modelfile": "", "template": "", "modified_at": stamp(), "model_info": info}
        shown |= {"details": _describe(model)["details"], "capabilities": list(model.capabilities)}
        return web.json_response(shown)

    def _find(self, body: Json) -> OllamaModel:
        name = str(body.get("model", ""))
        if not name:
            raise OllamaError(400, "model is required")
        model = self.models.get(name) or self.models.get(f"{name}:latest")
        if model is None:
            raise OllamaError(404, f"model '{name}' not found")
        return model

    async def _record(self, http: web.Request) -> OllamaRequest:
        try:
            body = mapping(json.loads(await http.text()))
        except ValueError:
            body = None
        if body is None:
            self.violations.append(f"{http.path}: the body is not a JSON object")
            raise OllamaError(400, "invalid request body")
        request = OllamaRequest(http.path, body)
        self.requests.append(request)
        return request

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        return await self._answer(await self._record(http), self._chat_answer, http)

    async def _embed(self, http: web.Request) -> web.StreamResponse:
        return await self._answer(await self._record(http), self._embed_answer, http)

    async def _answer(
        self,
        request: OllamaRequest,
        answer: Callable[[OllamaRequest, web.Request], Awaitable[web.StreamResponse]],
        http: web.Request,
    ) -> web.StreamResponse:
        """Answer, and note on the record how it ended."""
        try:
            request.status = 200
            return await answer(request, http)
        except OllamaError as error:
            request.status, request.end = error.status, error.end
            raise
        except (asyncio.CancelledError, ConnectionError):
            request.end = "client left" if request.end == "open" else request.end
            raise

    async def _chat_answer(self, request: OllamaRequest, http: web.Request) -> web.StreamResponse:
        model = self._find(request.body)
        self._check_fields(request, CHAT_FIELDS)
        check_chat(request, model)
        self.violations += misplaced_results(request)
        request.seen, request.prompt_tokens = cut(request, self._load(model, request))
        fault = await self._fault(request)
        request.reply = self.book.take(request) or unscripted(request)
        parts = lines(request, model)
        if request.body.get("stream", True):
            return await stream(request, fault, one_by_one(parts), http)
        return await send(request, fault, parts, http)

    async def _embed_answer(self, request: OllamaRequest, http: web.Request) -> web.StreamResponse:
        del http  # vectors come in one piece
        model = self._find(request.body)
        self._check_fields(request, EMBED_FIELDS)
        vectors = embed(request, model, self._load(model, request))
        fault = await self._fault(request)
        if fault is not None and fault.kind == "stall":
            await asyncio.sleep(FOR_EVER)
        request.prompt_tokens = sum(size(text) for text in request.inputs)
        request.end = "complete"
        told: Json = {"model": request.body["model"], "embeddings": vectors, "total_duration": 1, "load_duration": 0}
        return web.json_response(told | {"prompt_eval_count": request.prompt_tokens})

    def _check_fields(self, request: OllamaRequest, known: frozenset[str]) -> None:
        """Note what would be ignored; raises OllamaError 400 for an option of the wrong type."""
        unknown = sorted(request.body.keys() - known)
        unknown += sorted(request.options.keys() - INTEGERS - NUMBERS - OTHER_OPTIONS)
        self.violations += [f"{request.path}: `{name}` is not known and would be ignored" for name in unknown]
        for name, value in request.options.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if name in INTEGERS and not (is_number and value == int(value)):
                raise OllamaError(400, f'option "{name}" must be of type integer')
            if name in NUMBERS and not is_number:
                raise OllamaError(400, f'option "{name}" must be of type float32')

    def _load(self, model: OllamaModel, request: OllamaRequest) -> int:
        """Load the model with the context asked for; a changed one loads it anew. Returns the context in tokens."""
        wanted = model.context if model.can("embedding") else DEFAULT_CONTEXT
        context = min(request.num_ctx or wanted, model.context)
        loaded, until = self._loaded.get(model.name, (0, 0.0))
        if loaded != context or until <= time.time():
            self.loads.append((model.name, context))
        self._loaded[model.name] = (context, time.time() + _seconds(request.body.get("keep_alive")))
        return context

    async def _fault(self, request: OllamaRequest) -> OllamaFault | None:
        """The newest fault that hits this request. Raises OllamaError for those that are an error status."""
        fault = next((fault for fault in reversed(self.faults) if fault.take(request.path)), None)
        if fault is not None and fault.kind in ERRORS:
            raise OllamaError(*ERRORS[fault.kind], f"fault: {fault.kind}")
        if fault is not None and fault.kind == "slow_start":
            await asyncio.sleep(fault.seconds)
        return fault


def _describe(model: OllamaModel) -> Json:
    details: Json = {"parent_model": "", "format": "gguf", "family": "standin", "families": ["standin"]}
    details |= {"parameter_size": "1B", "quantization_level": "Q4_K_M"}
    named: Json = {"name": model.name, "model": model.name, "modified_at": stamp(), "size": 1_000}
    return named | {"digest": hashlib.sha256(model.name.encode()).hexdigest(), "details": details}


def _seconds(keep_alive: Any) -> float:
    """A `keep_alive` in seconds: a number, or a text such as `30m`; negative means for ever."""
    if keep_alive is None:
        return KEEP_ALIVE
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)(ms|s|m|h)?", str(keep_alive))
    if found is None:
        raise OllamaError(400, f'time: invalid duration "{keep_alive}"')
    seconds = float(found[1]) * UNITS[found[2] or "s"]
    return seconds if seconds >= 0 else A_CENTURY
