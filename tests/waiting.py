"""Waits for what has no event of its own: it is looked at until it is there."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def until(look: Callable[[], T], seconds: float = 20.0) -> T:
    """Wait until there is something to see, and return it. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not (found := look()):  # noqa: ASYNC110 - what is looked at has no event
            await asyncio.sleep(0.005)
    return found
