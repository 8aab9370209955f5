"""Chat models of an Ollama server: the only module of this port that knows the `ollama` client.

One rule: believe `show()`, state `num_ctx`, and refuse a prompt that Ollama would cut without a word.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import ollama
import structlog

from bot.models.history import check_history, says_something, with_told
from memory.ports import (
    ChatMessage,
    Failure,
    Finished,
    Json,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelTraits,
    StopReason,
    TextBlock,
    TextDelta,
    Tier,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)

log = structlog.get_logger(__name__)

_DEFAULT_HOST: Final = "http://127.0.0.1:11434"
_PROBE_SECONDS: Final = 0.5
_ASK_SECONDS: Final = 10.0
_BYTES_PER_TOKEN: Final = 3
"""Low on purpose: English has about four, German and JSON three; a prompt guessed too long is refused, not cut."""
_MESSAGE_TOKENS: Final = 4
"""What a chat template adds to a message."""
_ANSWER_SHARE: Final = 4
"""A quarter of the context is kept for the answer, where so much is wanted."""
_NEARLY_FULL: Final = 0.95
_SMALL_MODEL: Final = 2e9
_SIZE: Final = re.compile(r"([\d.]+)\s*([KMBT])", re.IGNORECASE)
_SCALES: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_NESTED: Final = frozenset({"properties", "anyOf", "oneOf", "allOf", "$ref"})
_BY_STATUS: Final = {
    401: Failure.AUTH,
    403: Failure.AUTH,
    404: Failure.NO_MODEL,
    429: Failure.RATE,
    -1: Failure.CUT,  # an error line within the stream
}
_SERVER_ERROR: Final = 500
_LOCAL: Final = frozenset({None, "localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 (recognised, not bound)


async def find_ollama(host: str | None) -> str | None:
    """Return the address of an Ollama that answers within half a second, else None. None looks where Ollama would."""
    address = _address(host)
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            await installed_models(address)
    except (ModelError, TimeoutError, ValueError) as err:
        log.debug("ollama_not_found", host=address, detail=str(err))
        return None
    return address


async def installed_models(host: str | None) -> tuple[str, ...]:
    """Return the names of the models that are there, sorted. Raises `ModelError`, or ValueError for no address."""
    client = _connect(host, httpx.Timeout(_ASK_SECONDS, connect=3.0))
    try:
        with _told():
            listed = await client.list()
    finally:
        await client.close()
    return tuple(sorted(entry.model for entry in listed.models if entry.model))


@dataclass(frozen=True, slots=True)
class _Shown:
    """What `show()` says of a model. `think` is what a request must say about thinking; None: nothing at all."""

    traits: ModelTraits
    think: Any


class OllamaModel:
    """`LanguageModel` over Ollama. One request at a time: the server would queue others anyway, unseen by us.

    `models` names at least the default one, which serves the tiers left out. `num_ctx` is the context window in tokens
    to load them with, `keep_alive` how long they stay loaded.
    """

    def __init__(
        self, *, host: str | None, models: Mapping[Tier, str], num_ctx: int = 8192, keep_alive: str = "30m"
    ) -> None:
        """Raise ValueError when the host is no address."""
        self._models = {tier: models.get(tier) or models[Tier.DEFAULT] for tier in Tier}
        self._num_ctx = num_ctx
        self._keep_alive = keep_alive
        self._shown: dict[str, _Shown] = {}
        self._density: dict[str, float] = {}  # tokens to one that was guessed, at most so far
        self._turn = asyncio.Semaphore(1)
        # 300 s: a cold start reads gigabytes from a disk before the first token
        self._client = _connect(host, httpx.Timeout(300.0, connect=3.0))

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        """Ask once what the model can do. Raises `ModelError`."""
        return (await self._show(self._models[tier])).traits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer a request; see `LanguageModel`. Tools are offered only to models that list them."""
        check_history(request.messages)
        if request.compacts:
            raise ModelError(Failure.BAD_REQUEST, "Ollama does not condense conversations")
        name = self._models[request.tier]
        shown = await self._show(name)
        window = shown.traits.context_tokens
        messages = _messages(request, with_tools=shown.traits.can_call_tools)
        tools = [_tool(spec) for spec in sorted(request.tools, key=lambda spec: spec.name)]
        if request.must_answer or not shown.traits.can_call_tools:
            tools = []
        room = window - min(request.max_tokens, window // _ANSWER_SHARE)
        plain = _guess_tokens(messages, tools)
        guess = round(plain * self._density.get(name, 1.0))
        if guess > room:
            detail = f"about {guess} tokens for {name}, which has room for {room} of {window}"
            raise ModelError(Failure.TOO_LONG, detail, excess=guess / room)
        answer = _Answer(name)
        async with self._turn:
            with _told(name, answer):
                parts = await cast("Any", self._client).chat(  # its type has holes: tools may be functions
                    model=name,
                    messages=messages,
                    tools=tools or None,
                    stream=True,
                    think=shown.think,
                    format=request.schema,
                    # beyond the window it would lose the beginning of the prompt while it writes
                    options={"num_ctx": window, "num_predict": min(request.max_tokens, window - guess)},
                    keep_alive=self._keep_alive,
                )
                async with aclosing(cast("AsyncGenerator[ollama.ChatResponse, None]", parts)) as stream:
                    async for part in stream:
                        delta = answer.add(part)
                        if delta:
                            yield TextDelta(delta)
        finished = answer.finished()
        self._density[name] = max(self._density.get(name, 1.0), finished.usage.input / max(plain, 1))
        if finished.usage.input > window * _NEARLY_FULL:
            log.warning("prompt_fills_num_ctx", model=name, tokens=finished.usage.input, num_ctx=window)
        yield finished

    async def close(self) -> None:
        await self._client.close()

    async def _show(self, name: str) -> _Shown:
        if name not in self._shown:
            with _told(name):
                async with asyncio.timeout(_ASK_SECONDS):
                    response = await self._client.show(name)
            self._shown[name] = _read_show(name, response, self._num_ctx)
        return self._shown[name]


def _connect(host: str | None, timeout: httpx.Timeout) -> ollama.AsyncClient:
    """A proxy in the environment is meant for the internet, never for the Ollama of this machine."""
    address = _address(host)
    try:
        hostname = urlsplit(address if "://" in address else f"//{address}").hostname
        return ollama.AsyncClient(host=address, timeout=timeout, trust_env=hostname not in _LOCAL)
    except (ValueError, httpx.InvalidURL) as err:
        raise ValueError(f"{address!r} is no address of an Ollama server: {err}") from err


def _address(host: str | None) -> str:
    return host or os.environ.get("OLLAMA_HOST") or _DEFAULT_HOST


# --- what a model can do -------------------------------------------------------------------------


def _read_show(name: str, shown: ollama.ShowResponse, num_ctx: int) -> _Shown:
    capabilities = frozenset(shown.capabilities or ())
    info = shown.modelinfo or {}
    most = info.get(f"{info.get('general.architecture')}.context_length")
    size, family = (shown.details.parameter_size, shown.details.family) if shown.details else (None, None)
    traits = ModelTraits(
        name,
        can_call_tools="tools" in capabilities,
        can_follow_schema=True,  # the answer is sampled within the schema's grammar, whatever the model
        context_tokens=min(num_ctx, most) if isinstance(most, int) else num_ctx,
        facts_near_question=_parameters(size) < _SMALL_MODEL,
    )
    if "thinking" not in capabilities:
        return _Shown(traits, think=None)
    return _Shown(traits, think="low" if family == "gptoss" else False)  # gpt-oss cannot be told not to


def _parameters(size: str | None) -> float:
    """`1.5B` is 1.5e9; what does not say is not small."""
    match = _SIZE.match(size or "")
    return float(match[1]) * _SCALES[match[2].upper()] if match else float("inf")


# --- our types to Ollama's -----------------------------------------------------------------------


def _messages(request: ModelRequest, *, with_tools: bool) -> list[Json]:
    system = [block.text for block in request.system if block.text.strip()]
    if request.schema is not None:  # `format` binds the sampler only: the model itself has to be told
        system.append(f"Answer with one JSON object that fits this schema: {_dump(request.schema)}")
    messages: list[Json] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    calls: list[str] = []
    for message in with_told(request):
        if message.role == "assistant":
            calls += [block.id for block in message.blocks if isinstance(block, ToolCall)]
            messages += _said_by_model(message, with_tools=with_tools)
        else:
            results = [block for block in message.blocks if isinstance(block, ToolResult)]
            results.sort(key=lambda result: calls.index(result.call_id))
            messages += _said_by_user(message, results, with_tools=with_tools)
    return messages


def _said_by_model(message: ChatMessage, *, with_tools: bool) -> list[Json]:
    text = _text(message)
    calls = [
        {"function": {"name": block.name, "arguments": block.input}}
        for block in message.blocks
        if isinstance(block, ToolCall) and with_tools
    ]
    return [{"role": "assistant", "content": text, "tool_calls": calls}] if text or calls else []


def _said_by_user(message: ChatMessage, results: Sequence[ToolResult], *, with_tools: bool) -> list[Json]:
    """Results are matched by order and name: Ollama knows no call ids. Without tools they are told in words."""
    told = [f"Error: {result.text}" if result.is_error else result.text for result in results]
    text = _text(message)
    if with_tools:
        messages: list[Json] = [
            {"role": "tool", "tool_name": result.name, "content": content or "(nothing)"}
            for result, content in zip(results, told, strict=True)
        ]
        return [*messages, {"role": "user", "content": text}] if text else messages
    words = [f"{result.name}: {content}" for result, content in zip(results, told, strict=True)]
    return [{"role": "user", "content": "\n\n".join([*words, text] if text else words)}]


def _text(message: ChatMessage) -> str:
    return "\n\n".join(block.text for block in message.blocks if isinstance(block, TextBlock) and says_something(block))


def _tool(spec: ToolSpec) -> Json:
    """The client forgets nested properties without a word, so they are refused here."""
    for name, schema in spec.schema.get("properties", {}).items():
        if _NESTED & set(schema):
            raise ModelError(Failure.BAD_REQUEST, f"tool {spec.name}: make the nested schema of {name!r} flat")
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": spec.schema},
    }


def _guess_tokens(messages: Sequence[Json], tools: Sequence[Json]) -> int:
    size = sum(len(message["content"].encode(errors="replace")) for message in messages)
    size += sum(len(_dump(call)) for message in messages for call in message.get("tool_calls", ()))
    size += sum(len(_dump(tool)) for tool in tools)
    return size // _BYTES_PER_TOKEN + _MESSAGE_TOKENS * len(messages)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- Ollama's types to ours ----------------------------------------------------------------------


class _Answer:
    """What has come of one answer."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._text: list[str] = []
        self._calls: list[ToolCall] = []
        self._last: ollama.ChatResponse | None = None

    @property
    def has_begun(self) -> bool:
        return self._last is not None

    def add(self, part: ollama.ChatResponse) -> str:
        """Take in a part and return the text it adds."""
        self._last = part
        for call in part.message.tool_calls or ():
            # Ollama has no ids for calls: ours hold for as long as the history is kept
            self._calls.append(ToolCall(f"call_{uuid4().hex}", call.function.name, dict(call.function.arguments)))
        text = part.message.content or ""
        self._text.append(text)
        return text

    def finished(self) -> Finished:
        """Raises `ModelError(CUT)` when the stream ended before Ollama said that it was done."""
        last = self._last
        if last is None or not last.done:
            raise ModelError(Failure.CUT, f"the stream of {self._model} ended before it was done")
        stop = StopReason.END
        if last.done_reason == "length":
            stop = StopReason.LENGTH
        elif self._calls:
            stop = StopReason.TOOLS
        return Finished(
            stop=stop,
            text="".join(self._text),
            calls=tuple(self._calls) if stop is StopReason.TOOLS else (),
            usage=Usage(input=last.prompt_eval_count or 0, output=last.eval_count or 0),
            model=last.model or self._model,
        )


# --- errors --------------------------------------------------------------------------------------


@contextmanager
def _told(model: str | None = None, answer: _Answer | None = None) -> Generator[None]:
    """Turn whatever the client raises into `ModelError`."""
    try:
        yield
    except Exception as err:
        raise _model_error(err, model, has_begun=answer is not None and answer.has_begun) from err


def _model_error(err: Exception, model: str | None, *, has_begun: bool) -> ModelError:
    if isinstance(err, ollama.ResponseError):
        return _status_error(err, model)
    if isinstance(err, UnicodeEncodeError):
        return ModelError(Failure.BAD_REQUEST, "the prompt holds a lone surrogate, which is not text")
    name = type(err).__name__
    if has_begun:
        return ModelError(Failure.CUT, f"the stream of {model} broke off with {name}")
    if isinstance(err, httpx.ReadTimeout):
        return ModelError(Failure.OVERLOADED, f"{model} did not begin to answer in time")
    # builtin ConnectionError or raw httpx errors, by the kind of call; bad JSON from what is no Ollama
    return ModelError(Failure.UNREACHABLE, f"no answer of Ollama: {name}")


def _status_error(err: ollama.ResponseError, model: str | None) -> ModelError:
    failure = _BY_STATUS.get(err.status_code, Failure.BAD_REQUEST)
    if err.status_code >= _SERVER_ERROR:  # 503: the queue is full; 500: often no memory for the model
        failure = Failure.OVERLOADED
    if failure is Failure.NO_MODEL:
        if model is None:
            return ModelError(Failure.UNREACHABLE, "what answers there is no Ollama")
        return ModelError(failure, f"{model} is not installed: run `ollama pull {model}`", is_of_model=True)
    return ModelError(failure, f"{err.status_code}: {str(err.error)[:200]}")
