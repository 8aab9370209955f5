"""No model at all: chat opens, commands work, and every answer says what to do."""

from collections.abc import AsyncGenerator

from memory.ports import Failure, ModelError, ModelEvent, ModelRequest, ModelTraits, Tier


class NoModel:
    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        del tier
        return ModelTraits("none", can_call_tools=False, can_follow_schema=False, context_tokens=4096)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        del request
        raise ModelError(Failure.NO_MODEL, self._reason)
        yield  # makes this a generator

    async def close(self) -> None:
        return
