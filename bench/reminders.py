"""What reminders that wait cost: the start of an application with none and with many, and one look for what is due.

The database is a file; the transport and the model are fakes, so that what is left is Merk's own time.
"""

import asyncio
import platform
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from bot.app import App, open_database
from bot.config import Access, Settings, Tenant
from bot.providers import Chosen
from memory.instants import SystemClock, to_ms
from memory.memory import Memory
from memory.storage import people
from memory.storage.database import Database
from memory.storage.tables import reminders
from memory.types import MemorySettings, Role
from tests.fakes.embedder import WordEmbedder
from tests.fakes.index import ExactIndex
from tests.fakes.model import ScriptedModel
from tests.fakes.transport import RecordingTransport

STARTS = 15


async def measure(count: int) -> dict[str, object]:
    """Start so often with none, then with `count` that are due within a year."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(tenant=Tenant(data_dir=Path(folder)), access=Access(admit="open"))
        database = await open_database(settings, SystemClock())
        await _start(settings, database)  # what is imported and compiled once is nobody's cost
        without = [await _start(settings, database) for _ in range(STARTS)]
        await _fill(database, count)
        filled = [await _start(settings, database) for _ in range(STARTS)]
        await database.close()
    return {
        "benchmark": "reminders",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "starts": STARTS,
        "rows": [_figures(0, without), _figures(count, filled)],
    }


async def _start(settings: Settings, database: Database) -> tuple[float, float]:
    """Milliseconds from the parts to a running application, and of one look for what is due."""
    clock = SystemClock()
    model = ScriptedModel(always="Very well.")
    memory = Memory(
        database, clock, vectors=ExactIndex(), embedder=WordEmbedder(), model=model, settings=MemorySettings()
    )
    began = time.perf_counter()
    app = App(settings, database, memory, Chosen(model, "", "none"), [RecordingTransport()], clock)
    await app.start()
    started = time.perf_counter()
    await app.ringing.ring()
    looked = time.perf_counter()
    await asyncio.sleep(0.05)  # what runs at the start has begun, and is not cut off
    await app.stop()
    await memory.close()
    return (started - began) * 1000, (looked - started) * 1000


async def _fill(database: Database, count: int) -> None:
    now = datetime.now(UTC)
    async with database.write() as connection:
        user = await people.admit(connection, "fake:42", "Ada", Role.MEMBER, "en", 0)
        rows = [
            {
                "user_id": user.id,
                "owner": f"u{user.id}",
                "place": {"transport": "fake", "chat": "42", "thread": ""},
                "text": f"water plant {number}",
                "starts": "2026-01-01T09:00",
                "timezone": "Europe/Berlin",
                "rule": "FREQ=DAILY" if number % 2 else None,
                "due_at": to_ms(now + timedelta(days=1, minutes=number * 50)),
                "created_at": 0,
            }
            for number in range(count)
        ]
        await connection.execute(sa.insert(reminders), rows)


def _figures(pending: int, times: list[tuple[float, float]]) -> dict[str, object]:
    starts, looks = zip(*times, strict=True)
    return {
        "pending": pending,
        "start_ms": round(statistics.median(starts), 2),
        "start_max_ms": round(max(starts), 2),
        "look_ms": round(statistics.median(looks), 2),
    }


def table(result: dict[str, object]) -> str:
    """The figures for people."""
    rows = result["rows"]
    assert isinstance(rows, list)
    lines = [" pending   start ms (median)   slowest   look ms"]
    lines += [
        f"{row['pending']:>8} {row['start_ms']:>19} {row['start_max_ms']:>9} {row['look_ms']:>9}"
        for row in rows  # pyright: ignore[reportUnknownVariableType] - what `measure` made
    ]
    return "\n".join(lines)
