"""Merk's own time in a turn: everything but the model, from the update's commit to the answer's send.

The stores are real (SQLite in a file, embedded Chroma, the built-in embedder); the model answers at once and the
transport takes a message at once. Start-up and memory are those of a real `merk run` beside the emulator.
"""

import asyncio
import gc
import json
import platform
import random
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.fill import HOW, fill
from bench.stage import started_process
from bot.app import App, make_memory, open_database
from bot.config import Access, Budget, MemorySection, Settings, Tenant
from bot.embedders.builtin import UseEmbedder
from bot.providers import Chosen
from bot.transports.base import Pace, Part
from handlers.types import Place
from memory.instants import SystemClock
from memory.ports import Finished, ModelEvent, ModelRequest, ModelTraits, StopReason, TextDelta, Tier
from tests.fakes.transport import RecordingTransport

WARM_UP = 20
TURNS = 300
HALF, TENTH = 2, 10
"""One in so many sessions is the asker's: one of ten people who talk as much as all the others, or like them."""
QUESTIONS = [
    "When did we plan to repair the bicycle?",
    "What did I say about the violin and the letter?",
    "Wann wollten wir den Garten streichen?",
    "Что мы решили насчёт паспорта?",
    "Which invoice is still open?",
]


class InstantModel:
    """Answers at once, so that what is left is Merk's own time."""

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        del tier
        return ModelTraits("instant", can_call_tools=True, can_follow_schema=False, context_tokens=200_000)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        del request
        text = "That was in spring, and it is done."
        yield TextDelta(text)
        yield Finished(StopReason.END, text, model="instant")

    async def close(self) -> None:
        return


class _Instant(RecordingTransport):
    """Says when a message has been handed over."""

    def __init__(self, *, pace: Pace) -> None:
        super().__init__(pace=pace)
        self.arrived = asyncio.Event()

    async def send(self, place: Place, part: Part, key: str) -> str:
        ref = await super().send(place, part, key)
        self.arrived.set()
        return ref


@dataclass(frozen=True)
class Figures:
    """Milliseconds a turn; `cpu_ms` is the mean processor time of all threads, which a busy machine does not blur."""

    messages: int
    of_asker: int
    """So many of them are those of the person who asks: their own are what recall looks through."""
    turns: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    cpu_ms: float


async def measure(sizes: Sequence[int], *, seed: int = 1) -> dict[str, object]:
    """Time turns over stores of each size, the last one with two shares of the asker's, then a real start."""
    *smaller, largest = sizes
    stores = [*((size, HALF) for size in smaller), (largest, TENTH), (largest, HALF)]
    found = [await _at_size(size, every, random.Random(seed)) for size, every in stores]
    start = await started_process()
    return {
        "benchmark": "turn",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "store": HOW,
        "turn": [asdict(figures) for figures in found],
        "start_to_first_poll_s": start.seconds,
        "resident_mb": start.resident_mb,
    }


async def _at_size(size: int, every: int, chance: random.Random) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            tenant=Tenant(data_dir=Path(folder)),
            access=Access(admit="open"),
            budget=Budget(messages_per_minute=1000),  # nobody writes as fast as this asks
            memory=MemorySection(),
        )
        clock = SystemClock()
        database = await open_database(settings, clock)
        embedder = UseEmbedder()
        await fill(database, settings.tenant.data_dir / "chroma", embedder, size, chance, every)
        chosen = Chosen(InstantModel(), "", "none")
        memory = make_memory(settings, clock, database, chosen, embedder)
        await memory.open()
        transport = _Instant(pace=Pace(0.0001, 100, 60))
        app = App(settings, database, memory, chosen, [transport], clock)
        await app.start()
        gc.freeze()  # as `merk run` does when it is loaded
        assert transport.accept is not None
        times: list[float] = []
        cpu = 0.0
        for number in range(WARM_UP + TURNS):
            transport.arrived.clear()
            began, cpu_before = time.perf_counter(), time.process_time()
            await transport.accept(f"q{number}", {"text": chance.choice(QUESTIONS)})
            await transport.arrived.wait()
            times.append((time.perf_counter() - began) * 1000)
            cpu += time.process_time() - cpu_before
            await asyncio.sleep(0.02)  # people do not answer at once
        await app.stop()
        await memory.close()
        await database.close()
    return _figures(size, size // every, times[WARM_UP:], cpu * 1000 / len(times))


def _figures(size: int, of_asker: int, times: list[float], cpu: float) -> Figures:
    cuts = statistics.quantiles(times, n=100)
    return Figures(
        size, of_asker, len(times), *(round(value, 2) for value in (cuts[49], cuts[89], cuts[98], max(times), cpu))
    )


def table(result: dict[str, object]) -> str:
    """The figures for people."""
    lines = ["messages   asker's   p50 ms   p90 ms   p99 ms   max ms   cpu ms"]
    turns = result["turn"]
    assert isinstance(turns, list)
    lines += [
        f"{row['messages']:>8} {row['of_asker']:>9} {row['p50_ms']:>8} {row['p90_ms']:>8} {row['p99_ms']:>8} "
        f"{row['max_ms']:>8} {row['cpu_ms']:>8}"
        for row in json.loads(json.dumps(turns))
    ]
    lines.append(f"start to first poll {result['start_to_first_poll_s']} s, resident {result['resident_mb']} MB")
    return "\n".join(lines)
