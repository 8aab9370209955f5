"""The pulse of every transport, noted in the database so that `merk doctor` can feel it from another process.

Rule: health is the age of the last contact, not a living process (pitfall P40).
"""

from collections.abc import Iterable
from typing import Any

from bot.transports.base import Transport
from memory import telemetry
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import kept
from memory.storage.database import Database

SECONDS = 30
"""How often it is noted."""


def key_of(transport: str) -> str:
    """kept_values: {"at": epoch seconds of this process's last contact or null, "problem": words for the operator or
    null, "ever": epoch seconds of the last contact of any process or null}.
    """
    return f"{transport}.last_contact"


async def note_pulse(database: Database, clock: Clock, transports: Iterable[Transport]) -> None:
    """Note when each transport was last in contact, and what is in its way."""
    now = to_ms(clock.now())
    async with database.write() as connection:
        for transport in transports:
            age = transport.last_contact()
            before: dict[str, Any] = await kept.load(connection, key_of(transport.name)) or {}
            if transport.problem and not before.get("problem"):
                fault = telemetry.TransportFault(transport=telemetry.code(transport.name), fault="not_receiving")
                await telemetry.record(connection, fault, now)
            at = None if age is None else now / 1000 - age
            value = {"at": at, "problem": transport.problem, "ever": at or before.get("ever")}
            await kept.put(connection, key_of(transport.name), value, now)
