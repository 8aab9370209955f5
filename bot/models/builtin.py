"""The model that needs no server and no key: a GGUF file, run by llama.cpp inside this process.

One rule: it is small, so it is asked for little: short prompts, short answers, no tools, no structures.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from threading import Event
from typing import Any, Final, cast

import structlog

from bot.models.history import check_history
from bot.models.prompt_fit import fit, weigh
from memory.ports import (
    Failure,
    Finished,
    Json,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelTraits,
    StopReason,
    TextDelta,
    Tier,
    Usage,
)

log = structlog.get_logger(__name__)

_LONGEST_ANSWER: Final = 400
"""Tokens. A small model that has not come to an end by then is rambling."""
_BATCH: Final = 128
"""Prompt tokens between two looks at whether anyone still waits: about a second, and less memory than the default."""
_IDLE_SECONDS: Final = 300
"""After this the model's memory (140 MB) is given back; waking takes as long as loading, 0.4 s."""
_MOST_THREADS: Final = 8
_BYTES_PER_TOKEN: Final = 2.4
"""The first guess. English has 4.9, German 2.6, Russian 2.4, numbers 1.0; a wrong guess is corrected by the server."""
_ATTEMPTS: Final = 4
_SAMPLING: Final[Json] = {
    "temperature": 0,
    "repeat_penalty": 1.05,
    "dry_multiplier": 0.8,
    "dry_allowed_length": 4,
}
"""Repeats 9 of 10 facts that stand beside the question (penalty 1.1: 6) and ends most answers by itself. More penalty
forbids the names that it should repeat, less lets it loop."""


class _TooLongError(Exception):
    """The prompt has more tokens than the context."""

    def __init__(self, tokens: int) -> None:
        super().__init__(tokens)
        self.tokens = tokens


class BuiltinModel:
    """A chat model in a GGUF file, loaded at the first request (SmolLM2-135M: 0.4 s, 180 MB with 2048 tokens).

    Requests are answered one after the other. The prompt is cut to fit: system text and the newest user message stay,
    the oldest messages go first. Tools are not offered to the model, a schema is refused with BAD_REQUEST.

    `threads` None leaves one core to everyone else while it writes, because llama.cpp's threads wait for each other: on
    two cores two threads write 74 tokens/s alone, but 2 to 7 beside one busy process, where one thread writes 16 to 41
    (42 alone). Prompts are read by all cores, 260 tokens/s on two. `context` is in tokens; more than 2048 takes many
    seconds to read and does not make a small model wiser. Loading holds the GIL for its 0.4 s, answering does not.
    """

    def __init__(self, path: Path, *, threads: int | None = None, context: int = 2048) -> None:
        self._path = path
        cores = min(os.cpu_count() or 1, _MOST_THREADS)
        self._threads = (threads or max(1, cores - 1), threads or cores)
        self._context = context
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llama")
        self._server: Any = None
        self._stops: set[Event] = set()
        self._is_closed = False

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        del tier  # one model serves all
        return ModelTraits(
            name=self._path.stem,
            can_call_tools=False,
            can_follow_schema=False,
            context_tokens=self._context,
            facts_near_question=True,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        check_history(request.messages)
        if request.schema is not None or request.compacts:
            raise ModelError(Failure.BAD_REQUEST, "the built-in model follows no schema and condenses nothing")
        answer_tokens = min(request.max_tokens, _LONGEST_ANSWER, self._context // 4)
        room = self._context - answer_tokens
        size = room * _BYTES_PER_TOKEN
        for _ in range(_ATTEMPTS):
            messages = fit(request, int(size))
            body: Json = {"messages": messages, "max_tokens": answer_tokens, **_SAMPLING}
            try:
                async with aclosing(self._answer(body)) as events:
                    async for event in events:
                        yield event
            except _TooLongError as error:
                size = weigh(messages) * 0.95 * room / error.tokens
            else:
                return
        raise ModelError(Failure.TOO_LONG, "the prompt could not be cut to the context")

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for stop in self._stops:
            stop.set()
        await asyncio.get_running_loop().run_in_executor(self._worker, self._unload)
        self._worker.shutdown()

    async def _answer(self, body: Json) -> AsyncGenerator[ModelEvent, None]:
        """Ask once. Raises `_TooLongError` before the first event, `ModelError` at any time."""
        text, stop, usage = "", None, Usage()
        async with aclosing(self._chunks(body)) as chunks:
            async for chunk in chunks:
                _raise_error(chunk)
                if chunk.get("usage"):
                    usage = _usage(chunk["usage"])
                for choice in chunk.get("choices", []):
                    stop = choice.get("finish_reason") or stop
                    delta: str | None = choice["delta"].get("content")
                    if delta:
                        text += delta
                        yield TextDelta(delta)
        if stop is None:
            raise ModelError(Failure.CUT, "the built-in model stopped without an end")
        reason = StopReason.LENGTH if stop == "length" else StopReason.END
        yield Finished(stop=reason, text=text, usage=usage, model=self._path.stem)

    async def _chunks(self, body: Json) -> AsyncGenerator[Json, None]:
        """Bridge the worker thread to the event loop; closing this stops the generation at its next token."""
        if self._is_closed:
            raise ModelError(Failure.UNREACHABLE, "the built-in model is closed")
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Json | ModelError | None] = asyncio.Queue()
        stop = Event()

        def feed(item: Json | ModelError | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(arrived.put_nowait, item)

        self._stops.add(stop)
        try:
            self._worker.submit(self._generate, body, feed, stop)
            while (item := await arrived.get()) is not None:
                if isinstance(item, ModelError):
                    raise item
                yield item
        finally:
            stop.set()
            self._stops.discard(stop)

    def _generate(self, body: Json, feed: Callable[[Json | ModelError | None], None], stop: Event) -> None:
        """Run one request on the worker thread, feeding its chunks and then None."""

        def take(chunk: Json) -> bool:
            feed(chunk)
            return stop.is_set()  # True ends the generation

        try:
            if not stop.is_set():
                # return_progress makes chunks while the prompt is read, too, so that it can be stopped there
                options: Json = {"stream": True, "return_progress": True, "stream_options": {"include_usage": True}}
                self._load().handle_chat_completions({**body, **options}, take)
        except ModelError as error:
            feed(error)
        except (RuntimeError, ValueError, OSError, MemoryError) as error:
            feed(ModelError(Failure.CUT, f"llama.cpp failed: {error}"))
        finally:
            feed(None)

    def _unload(self) -> None:
        self._server = None

    def _load(self) -> Any:
        if self._server is None:
            self._server = _start(self._path, self._threads, self._context)
            log.info("model.loaded", name=self._path.stem, context=self._context)
        return self._server


def _start(path: Path, threads: tuple[int, int], context: int) -> Any:
    """Start llama.cpp with so many threads to write and to read.

    It always listens on a port: on the loopback, with a key that nobody knows, and without CORS.
    """
    try:
        # Late: 34 MB that no deployment with another model needs; the package has no type stubs.
        import xllamacpp  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ModelError(Failure.NO_MODEL, f"xllamacpp cannot be loaded on this machine: {error}") from error
    llama = cast("Any", xllamacpp)
    params = llama.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = context, 1
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = 0
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys, params.cors_origins = [secrets.token_urlsafe()], ""
    params.model_alias = {path.stem}  # else answers carry the path
    params.ui = params.endpoint_slots = False
    params.n_threads_http = 1
    params.sleep_idle_seconds = _IDLE_SECONDS
    params.warmup, params.verbosity = False, -1
    try:
        return llama.Server(params)
    except RuntimeError as error:
        raise ModelError(Failure.NO_MODEL, f"{path} cannot be loaded: is it a whole GGUF file? ({error})") from error


def _raise_error(chunk: Json) -> None:
    error = chunk.get("error")
    if not error:
        return
    if error.get("type") == "exceed_context_size_error":
        raise _TooLongError(int(error["n_prompt_tokens"]))
    is_ours = error.get("code") == 400  # noqa: PLR2004 - HTTP's Bad Request
    raise ModelError(Failure.BAD_REQUEST if is_ours else Failure.OVERLOADED, str(error.get("message", error)))


def _usage(told: Json) -> Usage:
    cached = int(told["prompt_tokens_details"]["cached_tokens"])
    return Usage(input=int(told["prompt_tokens"]) - cached, output=int(told["completion_tokens"]), cache_read=cached)
