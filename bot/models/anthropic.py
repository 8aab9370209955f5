"""Claude over the Messages API: the only module that knows the `anthropic` SDK, so import it only when there is a key.

One rule: nothing of the SDK leaves here, neither an object nor an exception.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import Enum
from typing import Any, Final, cast

import anthropic
import httpx2
import structlog
from anthropic import omit
from anthropic.lib.streaming import AsyncMessageStreamManager
from anthropic.types import Message, OutputConfigParam

from bot.models.anthropic_prompt import CACHE, Prompt, build_prompt
from bot.models.history import check_history
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
    ToolCall,
    Usage,
)

log = structlog.get_logger(__name__)

_OFFICIAL: Final = "https://api.anthropic.com"
_FALLBACK_CONTEXT: Final = 200_000
"""Tokens; the smallest window among the models on offer (2026-11)."""
_LEAST_TOKENS: Final = 1024
"""Thinking counts against `max_tokens` and eats a smaller allowance whole."""
_MOST_PAUSES: Final = 4
_RETRY_AFTER_SECONDS: Final = 0.5
_DROP_BLOCK: Final = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
_BINDING_CONTROLS: Final = "thinking-binding-controls-2026-08-01"
_STOPS: Final = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "pause_turn": StopReason.LENGTH,  # still pausing after `_MOST_PAUSES`
    "refusal": StopReason.REFUSED,
}
_BY_TYPE: Final = {
    "overloaded_error": Failure.OVERLOADED,
    "api_error": Failure.OVERLOADED,
    "timeout_error": Failure.OVERLOADED,
    "rate_limit_error": Failure.RATE,
    "authentication_error": Failure.AUTH,
    "permission_error": Failure.AUTH,
    "billing_error": Failure.SPEND,
    "not_found_error": Failure.NO_MODEL,
    "request_too_large": Failure.TOO_LONG,
}
_BY_STATUS: Final = {
    401: Failure.AUTH,
    402: Failure.SPEND,
    403: Failure.AUTH,
    404: Failure.UNREACHABLE,  # without the API's own type: `base_url` leads somewhere else
    408: Failure.OVERLOADED,
    409: Failure.OVERLOADED,
    413: Failure.TOO_LONG,
    429: Failure.RATE,
}
_BY_TEXT: Final = (  # these have no code of their own
    ("prompt is too long", Failure.TOO_LONG),
    ("exceed context limit", Failure.TOO_LONG),
    ("credit balance", Failure.SPEND),
    ("usage limit", Failure.SPEND),
    ("spend limit", Failure.SPEND),
)
_BAD_SIGNATURE: Final = "invalid `signature` in `thinking` block"
_BOUND_ELSEWHERE: Final = "bound to a different conversation"
_PASSING: Final = frozenset({"overloaded_error", "api_error", "timeout_error"})
_OK: Final = 200


class _Thinking(Enum):
    """What becomes of the thinking in an open tool loop."""

    SENT = "sent"
    DROPPED_WHERE_STALE = "dropped where stale"
    """By the server: inside a loop it refuses calls whose thinking we took away."""
    LEFT_OUT = "left out"


class AnthropicModel:
    """`LanguageModel` over Claude. `models` names at least the default one, which serves the tiers left out.

    `timeout` is the seconds without a byte after which a request is given up.
    """

    def __init__(
        self, *, api_key: str, base_url: str | None, models: Mapping[Tier, str], timeout: float = 600.0
    ) -> None:
        """Raise ValueError when the key cannot be one."""
        key = api_key.strip()
        if not key or not (key.isascii() and key.isprintable()):
            raise ValueError("the Claude API key is blank or holds characters no key has: copy it again")
        self._models = {tier: models.get(tier) or models[Tier.DEFAULT] for tier in Tier}
        self._known: dict[str, ModelTraits] = {}
        self._without_effort: set[str] = set()
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=base_url or _OFFICIAL,  # explicit: a stray variable must not send the key elsewhere
            timeout=httpx2.Timeout(timeout, connect=5.0),
            max_retries=2,
            open_telemetry=False,
        )

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        """Ask once for the model's context size; 200k tokens while the API cannot be asked. Raises nothing."""
        name = self._models[tier]
        if name in self._known:
            return self._known[name]
        traits = ModelTraits(name, can_call_tools=True, can_follow_schema=True, context_tokens=_FALLBACK_CONTEXT)
        try:
            info = await self._client.with_options(max_retries=0, timeout=10.0).models.retrieve(name)
            traits = replace(traits, context_tokens=_number(info, "max_input_tokens") or _FALLBACK_CONTEXT)
            if not _supports_effort(info):
                self._without_effort.add(name)
        except anthropic.APIConnectionError as err:
            log.warning("model_traits_unknown", model=name, detail=type(err).__name__)
            return traits  # not remembered: the network may come back
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as err:  # ValueError: not JSON
            log.warning("model_traits_unknown", model=name, detail=type(err).__name__)
        self._known[name] = traits
        return traits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer a request; see `LanguageModel`.

        Before the first delta a stream that broke is asked for once more, and so is one whose thinking no longer fits
        the history (then without it). Statuses are retried by the SDK.
        """
        check_history(request.messages)
        may_retry, thinking = True, _Thinking.SENT
        while True:
            shown = False
            try:
                async with aclosing(self._answer(request, thinking)) as events:
                    async for event in events:
                        shown = True
                        yield event
            except Exception as err:
                error = _model_error(err)
                if shown:
                    raise error from err
                if thinking is _Thinking.SENT and (remedy := _stale_thinking(err)):
                    thinking = remedy
                elif may_retry and _broke_off(err):
                    may_retry = False
                    await asyncio.sleep(_RETRY_AFTER_SECONDS)
                else:
                    raise error from err
                log.warning("model_call_retried", failure=error.failure, detail=error.detail)
            else:
                return

    async def close(self) -> None:
        await self._client.close()

    async def _answer(self, request: ModelRequest, thinking: _Thinking) -> AsyncGenerator[ModelEvent, None]:
        """One attempt. A paused turn is sent back as it is and goes on in the same answer."""
        parts: list[Message] = []
        prompt = build_prompt(request, with_thinking=thinking is not _Thinking.LEFT_OUT)
        while True:
            async with self._open(request, prompt, thinking) as stream:
                async for event in stream:
                    if event.type == "text" and event.text:
                        yield TextDelta(event.text)
                part = stream.current_message_snapshot
                log.debug("model_answered", model=part.model, request_id=stream.request_id, stop=part.stop_reason)
            if part.stop_reason not in _STOPS:
                raise _BrokenStreamError(f"the stream ended with the stop reason {part.stop_reason}")
            parts.append(part)
            if part.stop_reason != "pause_turn" or len(parts) > _MOST_PAUSES:
                break
            prompt.messages.append({"role": "assistant", "content": _raw_blocks(part)})
        yield _finished(parts)

    def _open(self, request: ModelRequest, prompt: Prompt, thinking: _Thinking) -> AsyncMessageStreamManager[None]:
        model = self._models[request.tier]
        output: OutputConfigParam = {}
        if model not in self._without_effort:
            output["effort"] = "low" if request.tier is Tier.SMALL else "medium"
        if request.schema is not None:
            output["format"] = {"type": "json_schema", "schema": request.schema}
        drops_stale = thinking is _Thinking.DROPPED_WHERE_STALE
        return self._client.messages.stream(
            model=model,
            max_tokens=max(request.max_tokens, _LEAST_TOKENS),
            messages=cast("Any", prompt.messages),
            system=cast("Any", prompt.system) or omit,
            tools=cast("Any", prompt.tools) or omit,
            cache_control=cast("Any", CACHE) if prompt.has_free_breakpoint else omit,
            output_config=output or omit,
            metadata={"user_id": request.user_key} if request.user_key else omit,
            thinking=cast("Any", _DROP_BLOCK) if drops_stale else omit,  # typed in the SDK's beta half only
            extra_headers={"anthropic-beta": _BINDING_CONTROLS} if drops_stale else None,
        )


# --- the API's types to ours ---------------------------------------------------------------------


def _finished(parts: Sequence[Message]) -> Finished:
    last = parts[-1]
    stop = _STOPS[last.stop_reason or ""]
    calls = tuple(_calls(last)) if stop is StopReason.TOOLS else ()  # elsewhere a call may be cut in half
    if stop is StopReason.TOOLS and not calls:
        stop = StopReason.END
    text = "".join(block.text for part in parts for block in part.content if block.type == "text")
    return Finished(
        stop=stop,
        text="" if stop is StopReason.REFUSED else text,
        calls=calls,
        usage=_usage(parts),
        model=last.model,
        raw=tuple(block for part in parts for block in _raw_blocks(part)) if calls else (),
    )


def _calls(message: Message) -> Iterable[ToolCall]:
    for block in message.content:
        if block.type == "tool_use":
            arguments = cast("object", block.input)  # the SDK does not validate what a stream held
            if not isinstance(arguments, dict):
                raise _BrokenStreamError("the input of a tool call is no object")
            yield ToolCall(block.id, block.name, cast("Json", arguments))


def _raw_blocks(message: Message) -> list[Json]:
    """The blocks with only the fields that the API sent; it refuses nulls and empty text that come back."""
    content = cast("list[Json]", message.to_dict(mode="json", warnings=False)["content"])
    return [block for block in content if block.get("type") != "text" or block["text"].strip()]


def _usage(parts: Sequence[Message]) -> Usage:
    return Usage(
        input=sum(part.usage.input_tokens for part in parts),
        output=sum(part.usage.output_tokens for part in parts),
        cache_read=sum(part.usage.cache_read_input_tokens or 0 for part in parts),
        cache_write=sum(part.usage.cache_creation_input_tokens or 0 for part in parts),
    )


def _number(info: object, name: str) -> int | None:
    value = getattr(info, name, None)  # the SDK does not validate: `info` may even be the text of a page
    return value if isinstance(value, int) else None


def _supports_effort(info: object) -> bool:
    """False only if the API says so: a gateway may leave out what the SDK calls required."""
    effort = getattr(getattr(info, "capabilities", None), "effort", None)
    return getattr(effort, "supported", True) is not False


# --- errors --------------------------------------------------------------------------------------


class _BrokenStreamError(Exception):
    """A stream that ended without an answer, which the SDK does not call an error."""


def _model_error(err: Exception) -> ModelError:
    """Say in our words what the SDK raised. Only the API's own texts are quoted: others may hold a prompt."""
    if isinstance(err, ModelError):
        return err
    if isinstance(err, anthropic.APIStatusError):
        return ModelError(_status_failure(err), _status_detail(err), retry_after=_retry_after(err))
    if isinstance(err, anthropic.APIConnectionError):
        return ModelError(Failure.UNREACHABLE, f"{type(err).__name__} ({type(err.__cause__).__name__})")
    if isinstance(err, UnicodeEncodeError):
        return ModelError(Failure.BAD_REQUEST, "the prompt holds a lone surrogate, which is not text")
    if isinstance(err, _BrokenStreamError):
        return ModelError(Failure.CUT, str(err))
    # raw httpx2 errors, bad JSON, the AssertionError of an empty stream and whatever a garbled one sets off
    return ModelError(Failure.CUT, f"the stream broke off with {type(err).__name__}")


def _status_failure(err: anthropic.APIStatusError) -> Failure:
    """`.type` before the status: an error event within a stream carries the status 200."""
    if isinstance(err, anthropic.EnforcedSpendLimitReachedError | anthropic.ContractSpendLimitReachedError):
        return Failure.SPEND
    if isinstance(err, anthropic.OrganizationOnHoldError):
        return Failure.AUTH
    said = _said(err)
    for text, failure in _BY_TEXT:
        if text in said:
            return failure
    if str(err.type) in _BY_TYPE:
        return _BY_TYPE[str(err.type)]
    if err.status_code in _BY_STATUS:
        return _BY_STATUS[err.status_code]
    return Failure.OVERLOADED if err.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR else Failure.BAD_REQUEST


def _status_detail(err: anthropic.APIStatusError) -> str:
    said = str(err.api_message or err.response.reason_phrase)[:200]
    return f"{err.status_code} {err.type or 'no type'}: {said} (request {err.request_id})"


def _retry_after(err: anthropic.APIStatusError) -> float | None:
    """Seconds, from the headers; a date or nonsense counts as none."""
    headers = err.response.headers
    for header, scale in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[header]) / scale)
        except (KeyError, ValueError):
            continue
    return None


def _stale_thinking(err: Exception) -> _Thinking | None:
    """What to do about thinking that was refused, None if it was not."""
    said = _said(err) if isinstance(err, anthropic.BadRequestError) else ""
    if _BOUND_ELSEWHERE in said:
        return _Thinking.DROPPED_WHERE_STALE
    return _Thinking.LEFT_OUT if _BAD_SIGNATURE in said else None


def _broke_off(err: Exception) -> bool:
    """Whether the stream failed after its headers, where the SDK never retries."""
    if isinstance(err, anthropic.APIStatusError):
        return err.status_code == _OK and str(err.type) in _PASSING
    return not isinstance(err, anthropic.AnthropicError | ModelError | UnicodeEncodeError)


def _said(err: anthropic.APIStatusError) -> str:
    return str(err.api_message or "").lower()
