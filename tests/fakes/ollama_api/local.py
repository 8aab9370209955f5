"""An Ollama that answers with real models: the stand-in's wire in front of llama.cpp.

Rule: it counts by the model's own template and tokens, and what does not fit is cut as Ollama cuts it: the oldest
first, system messages never, and without a word.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import aiohttp
from aiohttp import web

from tests.fakes.messages_api.wire import Json, dumps, mapping, mappings
from tests.fakes.ollama_api.chat import check_chat, misplaced_results, send, stamp, stream
from tests.fakes.ollama_api.records import OllamaError, OllamaModel, OllamaRequest
from tests.fakes.ollama_api.server import CHAT_FIELDS, OllamaApi

SAMPLING: Final[Json] = {"temperature": 0, "repeat_penalty": 1.05, "dry_multiplier": 0.8, "dry_allowed_length": 4}


@dataclass(frozen=True)
class Weights:
    """A model in a GGUF file, with what stands in its Modelfile."""

    path: Path
    template: str | None = None
    """Takes the place of the one in the file."""
    stop: tuple[str, ...] = ()
    """Texts at which it ends: a small model finds no end by itself."""

    @property
    def options(self) -> Json:
        """Those of a request win."""
        return {**SAMPLING, "stop": list(self.stop)} if self.stop else SAMPLING


class LocalOllama(OllamaApi):
    """`async with LocalOllama({"smollm2:135m": weights}) as api:` serves chat at `api.host`.

    Models are loaded with the context that is asked for, and anew where another is. Rules are not asked; faults are.
    """

    def __init__(self, weights: Mapping[str, Weights], models: Iterable[OllamaModel] = ()) -> None:
        """`models` describes those that can do more than talk in 8192 tokens."""
        plain = {name: OllamaModel(name, ("completion",), 8_192) for name in weights}
        super().__init__({**plain, **{model.name: model for model in models}}.values())
        self._weights = dict(weights)
        self._running: dict[str, _Llama] = {}

    async def down(self) -> None:
        await super().down()
        for llama in self._running.values():
            await llama.close()
        self._running.clear()

    async def _chat_answer(self, request: OllamaRequest, http: web.Request) -> web.StreamResponse:
        model = self._find(request.body)
        self._check_fields(request, CHAT_FIELDS)
        check_chat(request, model)
        self.violations += misplaced_results(request)
        llama = await self._llama(model, self._load(model, request))
        request.seen, request.prompt_tokens = await llama.cut(request)
        fault = await self._fault(request)
        async with aclosing(llama.answer(request)) as parts:
            if request.body.get("stream", True):
                return await stream(request, fault, parts, http)
            return await send(request, fault, [part async for part in parts], http)

    async def _llama(self, model: OllamaModel, context: int) -> "_Llama":
        running = self._running.get(model.name)
        if running is not None and running.context == context:
            return running
        if running is not None:
            await running.close()
        weights = self._weights[model.name]
        self._running[model.name] = llama = _Llama(
            await asyncio.to_thread(_start, weights, context), weights.options, context
        )
        return llama


def _start(weights: Weights, context: int) -> Any:
    import xllamacpp  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - late: only tests with real models

    llama = cast("Any", xllamacpp)
    params = llama.CommonParams()
    params.model.path = str(weights.path)
    params.n_ctx, params.n_parallel = context, 1
    params.n_batch = params.n_ubatch = 128
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # several wait for each other on a busy machine
    params.hostnames, params.port, params.cors_origins = ["127.0.0.1"], 0, ""
    params.model_alias, params.cache_ram_mib = {"local"}, 0
    params.warmup, params.verbosity = False, -1
    if weights.template is not None:
        params.chat_template = weights.template
    return llama.Server(params)


class _Llama:
    """One loaded model."""

    def __init__(self, server: Any, options: Json, context: int) -> None:
        self.context = context
        self._options = options
        self._server = server
        connector = aiohttp.TCPConnector(force_close=True)  # its server closes connections that wait for another call
        self._http = aiohttp.ClientSession(str(server.listening_address), connector=connector)

    async def close(self) -> None:
        await self._http.close()
        self._server = None

    async def cut(self, request: OllamaRequest) -> tuple[list[Json], int]:
        """The messages that fit, and the tokens of the prompt that they make."""
        kept = list(request.messages)
        while (tokens := await self._count(kept, request)) >= self.context:
            oldest = next((at for at, each in enumerate(kept[:-1]) if each.get("role") != "system"), None)
            if oldest is None:
                raise OllamaError(400, "the input length exceeds the context length")
            del kept[oldest]
        return kept, tokens

    async def answer(self, request: OllamaRequest) -> AsyncGenerator[Json, None]:
        """The objects of the answer's stream as they are made, the last one with `done`."""
        head: Json = {"model": request.body["model"], "created_at": stamp()}
        said = _Said()
        async with self._http.post("/v1/chat/completions", json=_completion(request, self._options)) as response:
            if response.status != web.HTTPOk.status_code:
                raise OllamaError(500, (await response.text())[:200])
            async for line in response.content:
                chunk = _chunk(line)
                if chunk is not None and (text := said.add(chunk)):
                    yield head | {"message": {"role": "assistant", "content": text}, "done": False}
        if said.calls:
            calls = [{"function": {"name": name, "arguments": json.loads(told or "{}")}} for name, told in said.calls]
            yield head | {"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False}
        counts: Json = {"prompt_eval_count": said.read or request.prompt_tokens, "eval_count": said.written}
        times = dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 1_000)
        end: Json = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": said.reason}
        yield head | end | counts | times

    async def _count(self, messages: Sequence[Json], request: OllamaRequest) -> int:
        rendered = await self._post("/apply-template", {**_prompt(messages), **_tools(request)})
        asked = {"content": rendered["prompt"], "add_special": True, "parse_special": True}
        return len((await self._post("/tokenize", asked))["tokens"])

    async def _post(self, path: str, body: Json) -> Json:
        async with self._http.post(path, json=body) as response:
            if response.status != web.HTTPOk.status_code:
                raise OllamaError(500, (await response.text())[:200])
            return await response.json()


@dataclass
class _Said:
    """What has come of an answer so far."""

    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Name and arguments, as far as they have come."""
    reason: str = "stop"
    read: int = 0
    written: int = 0

    def add(self, chunk: Json) -> str:
        """Take in a piece and return the text in it."""
        if usage := mapping(chunk.get("usage")):
            self.read, self.written = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
        text = ""
        for choice in mappings(chunk.get("choices")):
            if choice.get("finish_reason") == "length":
                self.reason = "length"
            delta = mapping(choice.get("delta")) or {}
            text += delta.get("content") or ""
            for call in mappings(delta.get("tool_calls")):
                self._add_call(int(call.get("index", 0)), mapping(call.get("function")) or {})
        return text

    def _add_call(self, at: int, piece: Json) -> None:
        if at == len(self.calls):
            self.calls.append(("", ""))
        name, told = self.calls[at]
        self.calls[at] = (name + (piece.get("name") or ""), told + (piece.get("arguments") or ""))


def _chunk(line: bytes) -> Json | None:
    told = line.removeprefix(b"data: ").strip()
    if not told.startswith(b"{"):
        return None
    chunk = cast("Json", json.loads(told))
    if "error" in chunk:
        raise OllamaError(500, dumps(chunk["error"])[:200])
    return chunk


def _completion(request: OllamaRequest, defaults: Json) -> Json:
    options = {**defaults, **request.options}
    limit = options.pop("num_predict", -1)
    options.pop("num_ctx", None)
    shape = request.body.get("format")
    asked: Json = {**_prompt(request.seen), **_tools(request), **options, "max_tokens": limit}
    if mapping(shape) is not None:
        asked["response_format"] = {"type": "json_schema", "json_schema": {"schema": shape}}
    elif shape == "json":
        asked["response_format"] = {"type": "json_object"}
    return {**asked, "stream": True, "stream_options": {"include_usage": True}}


def _tools(request: OllamaRequest) -> Json:
    return {"tools": request.body["tools"]} if request.body.get("tools") else {}


def _prompt(messages: Sequence[Json]) -> Json:
    """The messages as llama.cpp takes them: calls have ids, and results name them."""
    told: list[Json] = []
    calls: list[str] = []
    for message in messages:
        said: Json = {"role": message["role"], "content": message.get("content", "")}
        if asked := mappings(message.get("tool_calls")):
            named = [mapping(call.get("function")) or {} for call in asked]
            first = len(told)
            calls = [f"call_{first}_{at}" for at in range(len(named))]
            said["tool_calls"] = [
                {"id": id, "type": "function", "function": {**each, "arguments": dumps(each.get("arguments"))}}
                for id, each in zip(calls, named, strict=True)
            ]
        if message["role"] == "tool" and calls:
            said["tool_call_id"] = calls.pop(0)
        told.append(said)
    return {"messages": told}
