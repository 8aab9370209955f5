"""One provider some of whose models are not to be had: the next lesser one answers, and each person is told once.

Rule: what a key may not use today it may not use in a minute either: it is asked for again after an hour.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Final

import structlog

from memory.ports import Finished, LanguageModel, ModelError, ModelEvent, ModelRequest, ModelTraits, Purpose, Tier

log = structlog.get_logger(__name__)

REST_SECONDS: Final = 3600.0
_LESSER: Final = {Tier.SMART: Tier.DEFAULT, Tier.DEFAULT: Tier.SMALL}
"""Never a dearer one. Background work has no lesser model, and advice by whoever asks for it is none."""


class LesserModel:
    """`LanguageModel` around one whose tiers are these `models`, by name."""

    def __init__(
        self, model: LanguageModel, models: Mapping[Tier, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` gives seconds."""
        self._model = model
        self._models = models
        self._clock = clock
        self._missing_until: dict[str, float] = {}
        self._told: set[tuple[str, int | None]] = set()
        """Which models are missing, and who knows."""

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        """Those of whoever would answer now. Raises `ModelError`."""
        tier, marked = self._usable(tier), list[str]()
        while True:
            try:
                return await self._model.traits(tier)
            except ModelError as error:
                tier = self._step_down(tier, error, marked)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel`. Raises the error of the least model that was asked."""
        tier, marked = self._usable(request.tier), list[str]()
        while True:
            has_begun = False
            try:
                async with aclosing(self._model.stream(replace(request, tier=tier))) as events:
                    async for event in events:
                        has_begun = True
                        yield self._signed(request, tier, event) if isinstance(event, Finished) else event
            except ModelError as error:
                if has_begun:
                    raise
                tier = self._step_down(tier, error, marked)
            else:
                return

    async def close(self) -> None:
        await self._model.close()

    def _usable(self, tier: Tier) -> Tier:
        """The tier to ask: the wanted one where all are missing, for somebody has to say what is wrong."""
        step: Tier | None = tier
        while step is not None and self._is_missing(step):
            step = _LESSER.get(step)
        return tier if step is None else step

    def _step_down(self, tier: Tier, error: ModelError, marked: list[str]) -> Tier:
        """The next lesser tier with a model of its own. Raises the error where it is not about this model alone."""
        lesser = _LESSER.get(tier)
        while lesser is not None and (self._models[lesser] == self._models[tier] or self._is_missing(lesser)):
            lesser = _LESSER.get(lesser)
        if lesser is None or not error.is_of_model:
            for name in marked:  # no model is to be had: that is not about any of them
                del self._missing_until[name]
            raise error
        name = self._models[tier]
        log.warning("lesser.model_missing", model=name, instead=self._models[lesser], detail=error.detail)
        self._missing_until[name] = self._clock() + REST_SECONDS
        marked.append(name)
        return lesser

    def _is_missing(self, tier: Tier) -> bool:
        return self._missing_until.get(self._models[tier], 0.0) > self._clock()

    def _signed(self, request: ModelRequest, tier: Tier, finished: Finished) -> Finished:
        """Say which model is missing, to each person once."""
        wanted, account = self._models[request.tier], request.account
        key = (wanted, account.user_id)
        if self._models[tier] == wanted or account.purpose is not Purpose.CHAT or request.compacts or key in self._told:
            return finished
        self._told.add(key)
        return replace(finished, missing=wanted)
