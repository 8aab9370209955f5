"""A million events: how long the dashboard's questions take, and whether a cleanup is in a turn's way.

The store is real (SQLite in a file), the events are those of 90 days. For the cleanup half of them are made too old,
while an event a turn is written every few milliseconds: how long that write waits is what a turn would be late.
"""

import asyncio
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, cast

from bot.app import make_memory, open_database
from bot.config import Settings, Tenant
from bot.models.none import NoModel
from bot.providers import Chosen
from bot.web.inside import Inside
from bot.web.reports import Granularity, Metric, Period, Reports
from memory import telemetry
from memory.instants import SystemClock, to_ms
from memory.memory import Memory
from memory.retention import Ages
from memory.storage import telemetry as events
from memory.storage.database import Database
from memory.storage.tables import telemetry_events
from tests.fakes.embedder import WordEmbedder

DAYS = 90
PEOPLE = 20
ASKED = 25
TOOLS = ("remember_fact", "search_memory", "draft", "forget_fact", "reminders")
WRITE_EVERY_SECONDS = 0.02


@dataclass(frozen=True)
class Question:
    name: str
    p50_ms: float
    p95_ms: float
    cpu_ms: float
    """Mean processor time of all threads, which a busy machine does not blur."""


async def measure(count: int, *, seed: int = 1) -> dict[str, object]:
    """Fill a store, ask every question, clean half of it up."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(tenant=Tenant(data_dir=Path(folder)))
        clock = SystemClock()
        database = await open_database(settings, clock)
        await _fill(database, count, random.Random(seed), to_ms(clock.now()))
        folded = await _fold(database)
        memory = make_memory(settings, clock, database, Chosen(NoModel("not needed"), "", "none"), WordEmbedder())
        questions = await _ask(Reports(Inside(settings, database, clock, memory, {})))
        cleanup = await _clean_up(database, memory)
        await memory.close()
        await database.close()
    return {
        "benchmark": "telemetry",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "events": count,
        "folding": folded,
        "questions": [asdict(each) for each in questions],
        "cleanup": cleanup,
    }


async def _fill(database: Database, count: int, chance: random.Random, now: int) -> None:
    rows = _rows(count, chance, now)
    while batch := list(islice(rows, 10_000)):
        async with database.write() as connection:
            await connection.execute(telemetry_events.insert(), batch)


def _rows(count: int, chance: random.Random, now: int) -> Iterator[dict[str, Any]]:
    span = DAYS * 24 * 3600 * 1000
    for number in range(count):
        event = _event(chance, number)
        yield {
            "name": event.name,
            "user_id": event.user_id,
            "session_id": event.session_id,
            "data": event.data(),
            "created_at": now - span + span * number // count,
        }


def _event(chance: random.Random, number: int) -> telemetry.Event:
    user_id, session_id = chance.randint(1, PEOPLE), chance.randint(1, 1000)
    draw = chance.random()
    if draw < 0.5:
        return telemetry.TurnCompleted(
            user_id=user_id,
            session_id=session_id,
            model="claude-sonnet-5-5",
            outcome="answered",
            tokens_in=chance.randint(20, 3000),
            tokens_out=chance.randint(5, 900),
            tokens_cache_read=chance.randint(0, 9000),
            tokens_cache_write=chance.randint(0, 900),
            cost_nano_usd=chance.randint(10**5, 10**8),
            duration_ms=chance.randint(300, 9000),
            first_token_ms=chance.randint(100, 2000),
            recall_hits=chance.randint(0, 3),
            tool_calls=1,
            inbox_id=number,
        )
    if draw < 0.8:
        return telemetry.ToolUsed(
            user_id=user_id,
            session_id=session_id,
            tool_name=chance.choice(TOOLS),
            duration_ms=chance.randint(1, 900),
            success=chance.random() < 0.95,
        )
    if draw < 0.95:
        return telemetry.Summarised(session_id=session_id, by="model", messages=chance.randint(2, 40))
    return telemetry.TurnFailed(user_id=user_id, session_id=session_id, failure=chance.choice(("rate", "cut", "bug")))


async def _fold(database: Database) -> dict[str, float]:
    """What the program does every minute with what is new."""
    began, steps = time.perf_counter(), list[float]()
    is_more = True
    while is_more:
        step = time.perf_counter()
        async with database.write() as connection:
            is_more = await events.fold(connection, database, 0)
        steps.append((time.perf_counter() - step) * 1000)
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "step_p50_ms": round(statistics.median(steps), 2),
        "step_p99_ms": round(statistics.quantiles(steps, n=100)[98], 2),
    }


async def _ask(reports: Reports) -> list[Question]:
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        f"overview {period}": lambda period=period: reports.overview(period) for period in Period
    }
    for metric in (Metric.COST, Metric.CACHED_SHARE, Metric.ERRORS):
        for granularity in Granularity:
            asked[f"timeseries {metric} 30d {granularity}"] = lambda metric=metric, granularity=granularity: (
                reports.timeseries(metric, Period.MONTH, granularity)
            )
    asked["timeseries cost 24h hour"] = lambda: reports.timeseries(Metric.COST, Period.DAY, Granularity.HOUR)
    asked["top-tools 30d"] = lambda: reports.top_tools(Period.MONTH, 10)
    asked["top-users 30d"] = lambda: reports.top_people(Period.MONTH, 10)
    asked["events 30d, page 1"] = lambda: reports.events(Period.MONTH, 1, 50)
    asked["events 30d, page 1000"] = lambda: reports.events(Period.MONTH, 1000, 50)
    return [await _time(name, ask) for name, ask in asked.items()]


async def _time(name: str, ask: Callable[[], Awaitable[object]]) -> Question:
    times: list[float] = []
    cpu_before = time.process_time()
    for _ in range(ASKED):
        began = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - began) * 1000)
    cpu = (time.process_time() - cpu_before) * 1000 / ASKED
    p95 = statistics.quantiles(times, n=20)[18]
    return Question(name, round(statistics.median(times), 1), round(p95, 1), round(cpu, 1))


async def _clean_up(database: Database, memory: Memory) -> dict[str, float]:
    """Half of the events go while turns go on writing; the same writes without a cleanup tell what is its own part."""
    alone = await _writes(database, asyncio.sleep(3))
    began = time.perf_counter()
    retention = memory.retention(Ages(telemetry=DAYS // 2))
    gone = asyncio.ensure_future(retention.run("UTC"))
    late = await _writes(database, gone)
    return {
        "deleted": gone.result().telemetry,
        "seconds": round(time.perf_counter() - began, 1),
        "writes": len(late),
        "write_p50_ms": round(statistics.median(late), 2),
        "write_p99_ms": round(statistics.quantiles(late, n=100)[98], 2),
        "write_max_ms": round(max(late), 2),
        "write_alone_p50_ms": round(statistics.median(alone), 2),
        "write_alone_max_ms": round(max(alone), 2),
    }


async def _writes(database: Database, until: Awaitable[object]) -> list[float]:
    """Milliseconds of each write, from the wish to the commit."""
    times: list[float] = []
    waiting = asyncio.ensure_future(until)
    event = telemetry.TurnFailed(failure="bug")
    while not waiting.done():
        began = time.perf_counter()
        async with database.write() as connection:
            await telemetry.record(connection, event, to_ms(datetime.now(UTC)))
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(WRITE_EVERY_SECONDS)
    await waiting
    return times


def table(result: dict[str, object]) -> str:
    """The figures for people."""
    lines = [f"{result['events']} events", "p50 ms   p95 ms   cpu ms   question"]
    questions = cast("list[dict[str, Any]]", result["questions"])
    lines += [f"{row['p50_ms']:>6} {row['p95_ms']:>8} {row['cpu_ms']:>8}   {row['name']}" for row in questions]
    cleanup = cast("dict[str, Any]", result["cleanup"])
    folding = cast("dict[str, Any]", result["folding"])
    lines.append(f"folding all: {folding['seconds']} s, a step {folding['step_p50_ms']} ms")
    lines.append(
        f"cleanup of {cleanup['deleted']} in {cleanup['seconds']} s; a write meanwhile p50 {cleanup['write_p50_ms']}, "
        f"p99 {cleanup['write_p99_ms']}, max {cleanup['write_max_ms']} ms "
        f"(alone p50 {cleanup['write_alone_p50_ms']}, max {cleanup['write_alone_max_ms']} ms)"
    )
    return "\n".join(lines)
