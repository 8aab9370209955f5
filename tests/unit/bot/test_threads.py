"""A thread for a new session: opened at the pace of its chat, and done without where that fails."""

import asyncio
from collections import deque

import pytest

from bot.app import _Threads  # pyright: ignore[reportPrivateUsage] - the composition root shows nothing but App
from bot.transports.base import Fault, Pace, SendError
from bot.transports.limiter import Limiter
from handlers.types import Place
from tests.fakes.transport import RecordingTransport

HOME = Place("fake", "42")


class Threaded(RecordingTransport):
    """Fails to open threads as it is told."""

    def __init__(self, *faults: SendError, pace: Pace | None = None) -> None:
        super().__init__(threads=True, pace=pace)
        self.thread_faults = deque(faults)
        self.tries = 0

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        self.tries += 1
        if self.thread_faults:
            raise self.thread_faults.popleft()
        return await super().open_thread(place, title, root)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.app.THREAD_PAUSE_SECONDS", 0.0)


async def _open(transport: Threaded, limiter: Limiter | None = None) -> str | None:
    return await _Threads({"fake": transport}, limiter or Limiter()).open_thread(HOME, "Trip")


@pytest.mark.parametrize("fault", [Fault.LATER, Fault.UNSENT])
async def test_what_was_certainly_not_opened_is_tried_again(fault: Fault) -> None:
    transport = Threaded(SendError(fault, "not now", retry_after=0.01))
    assert await _open(transport) == "1"


@pytest.mark.parametrize("fault", [Fault.LATER, Fault.UNSENT])
async def test_patience_ends(fault: Fault) -> None:
    transport = Threaded(*(SendError(fault, "not now", retry_after=0.01) for _ in range(99)))
    assert await _open(transport) is None
    assert transport.tries == 3


@pytest.mark.parametrize("fault", [each for each in Fault if each not in (Fault.LATER, Fault.UNSENT)])
async def test_whatever_else_fails_there_is_no_thread_and_no_second_try(fault: Fault) -> None:
    """After UNKNOWN an empty thread may stay behind: better than a second one."""
    transport = Threaded(SendError(fault, "no"))
    assert await _open(transport) is None
    assert transport.tries == 1


async def test_p33_a_429_holds_up_everything_that_goes_to_the_chat() -> None:
    limiter = Limiter()
    transport = Threaded(SendError(Fault.LATER, "429", retry_after=60))
    assert await _open(transport, limiter) is None
    assert not limiter.try_now("42", Pace(1, 5, 1))


async def test_p33_opening_a_thread_waits_for_its_turn() -> None:
    limiter = Limiter()
    transport = Threaded(pace=Pace(60, 1, 1))
    await limiter.wait("42", Pace(60, 1, 1))
    waiting = asyncio.create_task(_open(transport, limiter))
    await asyncio.sleep(0.02)
    assert transport.tries == 0
    waiting.cancel()
