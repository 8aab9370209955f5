"""Every call of a model goes through here: the budget is asked before it, and it is charged when it ends.

Rule: charged before anything is made of the answer, in a transaction of its own: a reply that is lost in a crash, and
asked for again, is on the bill twice, as it is with the provider.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import structlog

from bot.models.prices import Prices
from memory.budget import Budget
from memory.ports import (
    Billed,
    Failure,
    Finished,
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelTraits,
    TextBlock,
    TextDelta,
    Tier,
    ToolResult,
    Usage,
)
from memory.storage.spend import Charge

log = structlog.get_logger(__name__)

_BYTES_A_TOKEN = 3
"""Low on purpose: what broke off is rather billed too high."""


class MeteredModel:
    """`LanguageModel` around another one."""

    def __init__(self, model: LanguageModel, prices: Prices, budget: Budget) -> None:
        self._model = model
        self._prices = prices
        self._budget = budget

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        return await self._model.traits(tier)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel`. Raises `ModelError` with `Failure.BUDGET` where nothing may be spent any more today."""
        if not await self._budget.may_spend(request.account):
            until = self._budget.until_midnight()
            raise ModelError(Failure.BUDGET, f"the budget of today for {request.account.purpose}", retry_after=until)
        shown, is_billed = 0, False
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        shown += len(event.text.encode(errors="replace"))
                        yield event
                    else:
                        is_billed = True
                        yield await self._charge(request, event)
        except ModelError:
            is_billed = is_billed or not shown  # what fails before it begins costs nothing
            raise
        finally:
            if not is_billed:  # it broke off, or somebody stopped it: that is on the provider's bill all the same
                await self._charge_guess(request, shown)

    async def close(self) -> None:
        await self._model.close()

    async def _charge(self, request: ModelRequest, finished: Finished) -> Finished:
        lines = finished.billed or (Billed(finished.model or "unnamed", finished.usage),)
        charges = [Charge(request.account, line, self._prices.cost(line)) for line in lines]
        await self._budget.charge(charges)
        costs = [charge.nano_usd for charge in charges if charge.nano_usd is not None]
        return replace(finished, nano_usd=sum(costs) if costs else None)

    async def _charge_guess(self, request: ModelRequest, shown: int) -> None:
        """Without its end a call has no bill: count bytes."""
        try:
            name = (await self._model.traits(request.tier)).name
        except ModelError:
            name = "unnamed"
        line = Billed(name, Usage(input=_size(request) // _BYTES_A_TOKEN, output=shown // _BYTES_A_TOKEN))
        await self._budget.charge([Charge(request.account, line, self._prices.cost(line), is_estimate=True)])
        log.info("metered.guessed", model=name, purpose=request.account.purpose)


def _size(request: ModelRequest) -> int:
    """Bytes of a prompt."""
    blocks = [*request.system, *(block for message in request.messages for block in message.blocks)]
    texts = [block.text if isinstance(block, TextBlock | ToolResult) else str(block.input) for block in blocks]
    texts += [f"{spec.description}{spec.schema}" for spec in request.tools]
    return sum(len(text.encode(errors="replace")) for text in texts)
