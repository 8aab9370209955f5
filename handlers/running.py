"""The answers that are being made right now: one a place, and /stop can end it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from handlers.types import Place


@dataclass(slots=True)
class _Lane:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    stop: asyncio.Event | None = None
    users: int = 0


class Running:
    """Keeps answers of one place one after the other, also when a button asks for one."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}

    @asynccontextmanager
    async def turn(self, place: Place) -> AsyncGenerator[asyncio.Event, None]:
        """Wait for the place; the event is set when the answer should end."""
        lane = self._lanes.setdefault(place.lane, _Lane())
        lane.users += 1
        try:
            async with lane.lock:
                lane.stop = asyncio.Event()
                yield lane.stop
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[place.lane]

    def stop(self, place: Place) -> bool:
        """End the answer of a place; False when there is none."""
        lane = self._lanes.get(place.lane)
        if lane is None or lane.stop is None or lane.stop.is_set():
            return False
        lane.stop.set()
        return True
