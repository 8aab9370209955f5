"""Several providers in an order: the first that is not out of order answers. A provider that failed rests for a while.

Rule: after the first word nobody takes over; what was begun is finished or said to be broken.
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog

from memory.ports import (
    ChatMessage,
    Failure,
    Finished,
    Json,
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelTraits,
    Tier,
)

log = structlog.get_logger(__name__)

REST_SECONDS = 60.0
"""An outage seldom ends sooner; a person waits for nobody meanwhile."""
LONG_REST_SECONDS = 600.0
"""For what a person has to mend: a key, a bill, a model that is gone."""
_OUTAGES = frozenset((Failure.OVERLOADED, Failure.UNREACHABLE, Failure.RATE, Failure.CUT))
_STANDING = frozenset((Failure.AUTH, Failure.SPEND, Failure.NO_MODEL))
_MAKER, _RAW = "merk.provider", "raw"


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    """As in the settings: "anthropic"."""
    said: str
    """As people know it: "Claude"."""
    model: LanguageModel


class FallbackModel:
    """`LanguageModel` over several; the first of `providers` is the one that should answer."""

    def __init__(self, providers: Sequence[Provider], clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._providers = tuple(providers)
        self._clock = clock
        self._rests_until = dict.fromkeys((provider.name for provider in providers), 0.0)

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        """Those of the provider that would answer now, so that a prompt is made for it."""
        error = ModelError(Failure.NO_MODEL, "there is no provider")
        for provider in self._awake():
            try:
                return await provider.model.traits(tier)
            except ModelError as failed:
                error = failed
        raise error

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel`. Raises the error of the last provider that was asked."""
        error = ModelError(Failure.NO_MODEL, "there is no provider")
        for provider in self._awake():
            has_begun = False
            try:
                async with aclosing(provider.model.stream(self._for(provider, request))) as events:
                    async for event in events:
                        has_begun = True
                        yield self._signed(provider, event) if isinstance(event, Finished) else event
            except ModelError as failed:
                if not self._rest(provider, failed) or has_begun:
                    raise
                error = failed
            else:
                self._rests_until[provider.name] = 0.0
                return
        raise error

    async def close(self) -> None:
        for provider in self._providers:
            await provider.model.close()

    def _awake(self) -> tuple[Provider, ...]:
        """Who may be asked, in order. Where all rest, the first is asked: somebody has to say what is wrong."""
        now = self._clock()
        awake = tuple(provider for provider in self._providers if self._rests_until[provider.name] <= now)
        return awake or self._providers[:1]

    def _rest(self, provider: Provider, error: ModelError) -> bool:
        """Ask others for a while, where it is the provider that fails and not the request."""
        if error.failure in _OUTAGES:
            seconds = max(REST_SECONDS, error.retry_after or 0.0)
        elif error.failure in _STANDING:
            seconds = LONG_REST_SECONDS
        else:
            return False
        log.warning("fallback.rests", provider=provider.name, failure=error.failure, seconds=round(seconds))
        self._rests_until[provider.name] = self._clock() + seconds
        return True

    def _signed(self, provider: Provider, finished: Finished) -> Finished:
        """Say who answered for another; and whose blocks these are, for no other provider can read them."""
        raw: tuple[Json, ...] = ({_MAKER: provider.name, _RAW: finished.raw},) if finished.raw else ()
        if provider is self._providers[0]:
            return replace(finished, raw=raw)
        return replace(finished, raw=raw, stand_in=f"{provider.said} ({finished.model})")

    def _for(self, provider: Provider, request: ModelRequest) -> ModelRequest:
        is_first = provider is self._providers[0]
        messages = tuple(_with_own_blocks(message, provider.name, is_first=is_first) for message in request.messages)
        return replace(request, messages=messages)


def _with_own_blocks(message: ChatMessage, name: str, *, is_first: bool) -> ChatMessage:
    """A provider gets back what it made itself; unsigned blocks are the first one's."""
    if not message.raw:
        return message
    if _MAKER not in message.raw[0]:
        return message if is_first else replace(message, raw=())
    [signed] = message.raw
    return replace(message, raw=tuple(signed[_RAW]) if signed[_MAKER] == name else ())
