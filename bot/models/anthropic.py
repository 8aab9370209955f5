"""Claude over the Messages API: the only module that knows the `anthropic` SDK, so import it only when there is a key.

One rule: nothing of the SDK leaves here, neither an object nor an exception.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, cast

import anthropic
import httpx2
import structlog
from anthropic.types import OutputConfigParam

from bot.models.anthropic_answer import STOPS, BrokenAnswerError, raw_blocks, read_answer
from bot.models.anthropic_prompt import LOOP_CACHE, Prompt, build_prompt
from bot.models.history import check_history
from memory.ports import (
    Compaction,
    Failure,
    Json,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelTraits,
    TextDelta,
    Tier,
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
COMPACT: Final = "compact-2026-09-04"
"""The beta under which a model condenses a conversation when asked to."""
COMPACT_AT_THRESHOLD: Final = "compact-2026-01-12"
"""The beta under which it does so by itself, at a size of the prompt."""
_LEAST_THRESHOLD: Final = 50_000
_COMPACTS: Final[Json] = {"type": "summarize", "instructions": "Keep names, dates, promises and open questions."}
_NEAR: Final = 0.5
"""Of the context: from here on a prompt is counted before it is sent; a guess may be wrong by half."""
_LEAST_ROOM: Final = 1024
"""Tokens that a prompt must leave for its answer."""
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
_OF_MODEL: Final = frozenset({"not_found_error", "permission_error"})
_PASSING: Final = frozenset({"overloaded_error", "api_error", "timeout_error"})
_OK: Final = 200
_COUNTED: Final = re.compile(r"(\d+) tokens > (\d+) maximum")


class _Thinking(Enum):
    """What becomes of the thinking in an open tool loop."""

    SENT = "sent"
    DROPPED_WHERE_STALE = "dropped where stale"
    """By the server: inside a loop it refuses calls whose thinking we took away."""
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class _How:
    """What of a request is sent: less, where more was refused."""

    thinking: _Thinking = _Thinking.SENT
    with_block: bool = True
    """A compaction goes back as the block that it is, not in words."""
    may_compact: bool = True
    """The server may condense the conversation by itself."""


class AnthropicModel:
    """`LanguageModel` over Claude. `models` names at least the default one, which serves the tiers left out.

    `timeout` is the seconds without a byte after which a request is given up. Of `compaction_models`, those that say
    they can condense conversations are asked to, under the first of `betas` that serves: `COMPACT_AT_THRESHOLD` (from
    prompts of `threshold` tokens on) before `COMPACT`. `diagnoses`: the API is asked why it missed its cache.
    """

    def __init__(  # noqa: PLR0913 - what a provider can be told
        self,
        *,
        api_key: str,
        base_url: str | None,
        models: Mapping[Tier, str],
        timeout: float = 600.0,
        compaction_models: Collection[str] = (),
        betas: Collection[str] = (COMPACT,),
        threshold: int = _LEAST_THRESHOLD,
        diagnoses: bool = False,
    ) -> None:
        """Raise ValueError when the key cannot be one."""
        key = api_key.strip()
        if not key or not (key.isascii() and key.isprintable()):
            raise ValueError("the Claude API key is blank or holds characters no key has: copy it again")
        self._models = {tier: models.get(tier) or models[Tier.DEFAULT] for tier in Tier}
        self._known: dict[str, ModelTraits] = {}
        self._without_effort: set[str] = set()
        self._compaction_models = frozenset(compaction_models)
        self._compaction_beta = next((beta for beta in (COMPACT_AT_THRESHOLD, COMPACT) if beta in betas), None)
        self._threshold = max(threshold, _LEAST_THRESHOLD)
        self._diagnoses = diagnoses
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
        beta = self._compaction_beta if name in self._compaction_models else None
        headers = {"anthropic-beta": beta} if beta else None
        try:
            client = self._client.with_options(max_retries=0, timeout=10.0)
            info = await client.models.retrieve(name, extra_headers=headers)
            traits = replace(traits, context_tokens=_number(info, "max_input_tokens") or _FALLBACK_CONTEXT)
            traits = replace(traits, compaction=_compaction(info, beta))
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

        Before the first delta a stream that broke is asked for once more, and so is a request of which something was
        refused that can be left out. Statuses are retried by the SDK.
        """
        check_history(request.messages, may_end_answered=request.compacts)
        may_retry, how = True, _How()
        while True:
            shown = False
            try:
                async with aclosing(self._answer(request, how)) as events:
                    async for event in events:
                        shown = True
                        yield event
            except Exception as err:
                error = _model_error(err)
                if shown:
                    raise error from err
                if remedy := _remedy(err, how):
                    how = remedy
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

    async def _answer(self, request: ModelRequest, how: _How) -> AsyncGenerator[ModelEvent, None]:
        """One attempt. A paused turn is sent back as it is and goes on in the same answer."""
        name = self._models[request.tier]
        can = self._known[name].compaction if name in self._known else Compaction.NONE
        if request.compacts and can is not Compaction.ON_DEMAND:
            raise ModelError(Failure.BAD_REQUEST, f"{name} does not condense conversations when asked to")
        prompt = build_prompt(
            request, model=name if how.with_block else "", with_thinking=how.thinking is not _Thinking.LEFT_OUT
        )
        await self._check_room(name, prompt)
        sent = self._parameters(request, prompt, name, how, compacts_itself=can is Compaction.AT_THRESHOLD)
        endpoint: Any = self._client.beta.messages if sent.get("betas") else self._client.messages
        parts: list[Json] = []
        while True:
            async with endpoint.stream(**sent) as stream:
                async for event in stream:
                    if event.type == "text" and event.text:
                        yield TextDelta(event.text)
                part = cast("Json", stream.current_message_snapshot.to_dict(mode="json", warnings=False))
                reason = part.get("stop_reason")
                log.debug("model_answered", model=part.get("model"), request_id=stream.request_id, stop=reason)
            if reason not in STOPS or (reason == "compaction") is not request.compacts:
                raise BrokenAnswerError(f"the stream ended with the stop reason {reason}")
            parts.append(part)
            if reason != "pause_turn" or len(parts) > _MOST_PAUSES:
                break
            prompt.messages.append({"role": "assistant", "content": raw_blocks(part)})
        finished = read_answer(parts, named=name)
        if request.compacts and finished.compacted is None:
            raise ModelError(Failure.BAD_REQUEST, "nothing came of the compaction")
        yield finished

    async def _check_room(self, name: str, prompt: Prompt) -> None:
        """Raise `ModelError(TOO_LONG)` for a prompt that does not fit, before it is paid for or refused.

        Far from the context nothing is asked; nor is it held up where counting fails.
        """
        window = self._known[name].context_tokens if name in self._known else _FALLBACK_CONTEXT
        if prompt.guess_tokens() < window * _NEAR:
            return
        sent: Json = {"model": name, "messages": prompt.messages, "system": prompt.system, "tools": prompt.tools}
        betas = _betas_of(prompt)
        headers = {"anthropic-beta": ",".join(betas)} if betas else None
        try:
            client = self._client.with_options(max_retries=0, timeout=10.0)
            counted = await client.messages.count_tokens(**_given(sent), extra_headers=headers)
        except (anthropic.APIConnectionError, anthropic.APIStatusError):
            return
        if counted.input_tokens + _LEAST_ROOM > window:
            raise _too_long(counted.input_tokens, window)

    def _parameters(
        self, request: ModelRequest, prompt: Prompt, name: str, how: _How, *, compacts_itself: bool
    ) -> Json:
        output: OutputConfigParam = {}
        if name not in self._without_effort:
            output["effort"] = "low" if request.tier is Tier.SMALL else "medium"
        if request.schema is not None:
            output["format"] = {"type": "json_schema", "schema": request.schema}
        sent: Json = {
            "model": name,
            "max_tokens": max(request.max_tokens, _LEAST_TOKENS),
            "messages": prompt.messages,
            "system": prompt.system,
            "tools": prompt.tools,
            "tool_choice": {"type": "none"} if request.must_answer and prompt.tools else None,
            "cache_control": LOOP_CACHE if prompt.caches_loop else None,
            "output_config": output,
            "metadata": {"user_id": request.user_key} if request.user_key else None,
            "diagnostics": {"previous_message_id": request.follows} if self._diagnoses and request.follows else None,
        }
        betas = _betas_of(prompt)
        if how.thinking is _Thinking.DROPPED_WHERE_STALE:
            sent["thinking"] = _DROP_BLOCK
            betas.append(_BINDING_CONTROLS)
        if request.compacts:
            sent["compaction"] = _COMPACTS
            betas.append(COMPACT)
        elif compacts_itself and how.may_compact and request.schema is None:
            trigger = {"type": "input_tokens", "value": self._threshold}
            sent["context_management"] = {"edits": [{"type": "compact_20260112", "trigger": trigger}]}
            betas.append(COMPACT_AT_THRESHOLD)
        sent["betas"] = list(dict.fromkeys(betas))
        return _given(sent)


def _given(sent: Json) -> Json:
    """Without what is empty: the API takes no nulls."""
    return {key: value for key, value in sent.items() if value}


def _betas_of(prompt: Prompt) -> list[str]:
    """What the API wants to be told about a compaction that comes back."""
    kinds: list[Json] = [prompt.compacted] if prompt.compacted is not None else []
    kinds += [block for message in prompt.messages for block in message["content"] if block["type"] == "compaction"]
    return [COMPACT_AT_THRESHOLD if "encrypted_content" in block else COMPACT for block in kinds]


def _number(info: object, name: str) -> int | None:
    value = getattr(info, name, None)  # the SDK does not validate: `info` may even be the text of a page
    return value if isinstance(value, int) else None


def _supports_effort(info: object) -> bool:
    """False only if the API says so: a gateway may leave out what the SDK calls required."""
    effort = getattr(getattr(info, "capabilities", None), "effort", None)
    return getattr(effort, "supported", True) is not False


def _compaction(info: object, beta: str | None) -> Compaction:
    """What the API says of a model under a beta: no, where it says nothing."""
    can = getattr(info, "capabilities", None)
    if beta == COMPACT and _is_supported(can, "compaction"):
        return Compaction.ON_DEMAND
    if beta == COMPACT_AT_THRESHOLD and _is_supported(getattr(can, "context_management", None), "compact_20260112"):
        return Compaction.AT_THRESHOLD
    return Compaction.NONE


def _is_supported(holder: object, name: str) -> bool:
    """Whether the API says so: fields that the SDK does not know come as plain JSON."""
    told = getattr(holder, name, None)
    if isinstance(told, dict):
        return cast("Json", told).get("supported") is True
    return getattr(told, "supported", False) is True


# --- errors --------------------------------------------------------------------------------------


def _model_error(err: Exception) -> ModelError:
    """Say in our words what the SDK raised. Only the API's own texts are quoted: others may hold a prompt."""
    if isinstance(err, ModelError):
        return err
    if isinstance(err, anthropic.APIStatusError):
        return _status_error(err)
    if isinstance(err, anthropic.APIConnectionError):
        return ModelError(Failure.UNREACHABLE, f"{type(err).__name__} ({type(err.__cause__).__name__})")
    if isinstance(err, UnicodeEncodeError):
        return ModelError(Failure.BAD_REQUEST, "the prompt holds a lone surrogate, which is not text")
    if isinstance(err, BrokenAnswerError):
        return ModelError(Failure.CUT, str(err))
    # raw httpx2 errors, bad JSON, the AssertionError of an empty stream and whatever a garbled one sets off
    return ModelError(Failure.CUT, f"the stream broke off with {type(err).__name__}")


def _status_error(err: anthropic.APIStatusError) -> ModelError:
    failure = _status_failure(err)
    if failure is Failure.TOO_LONG and (counted := _COUNTED.search(_said(err))):
        return _too_long(int(counted[1]), int(counted[2]))
    is_of_model = str(err.type) in _OF_MODEL and failure in (Failure.NO_MODEL, Failure.AUTH)
    return ModelError(failure, _status_detail(err), retry_after=_retry_after(err), is_of_model=is_of_model)


def _too_long(tokens: int, most: int) -> ModelError:
    return ModelError(Failure.TOO_LONG, f"{tokens} tokens, of {most} that fit", excess=(tokens + _LEAST_ROOM) / most)


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


def _remedy(err: Exception, how: _How) -> _How | None:
    """What to leave out of a request of which that was refused; None where leaving out does not help."""
    if isinstance(err, anthropic.APIStatusError) and err.error_code == "compaction_unavailable":
        return replace(how, may_compact=False) if how.may_compact else None
    if not isinstance(err, anthropic.BadRequestError):
        return None
    said = _said(err)
    if how.with_block and (str(err.error_code or "").startswith("compaction") or "`compaction` block" in said):
        return replace(how, with_block=False)
    if how.thinking is not _Thinking.SENT:
        return None
    if _BOUND_ELSEWHERE in said:
        return replace(how, thinking=_Thinking.DROPPED_WHERE_STALE)
    return replace(how, thinking=_Thinking.LEFT_OUT) if _BAD_SIGNATURE in said else None


def _broke_off(err: Exception) -> bool:
    """Whether the stream failed after its headers, where the SDK never retries."""
    if isinstance(err, anthropic.APIStatusError):
        return err.status_code == _OK and str(err.type) in _PASSING
    return not isinstance(err, anthropic.AnthropicError | ModelError | UnicodeEncodeError)


def _said(err: anthropic.APIStatusError) -> str:
    return str(err.api_message or "").lower()
