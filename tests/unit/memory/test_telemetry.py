"""Telemetry holds ids and figures only."""

import pytest

from memory import telemetry
from tests.unit.memory.world import World


async def test_an_event_is_appended_with_its_figures(world: World) -> None:
    async with world.database.write() as connection:
        await telemetry.note(connection, "memory.learned", {"messages": 3, "by": "model"}, now=5, session_id=None)
    (row,) = await world.rows("telemetry_events")
    assert (row["name"], row["data"], row["created_at"]) == ("memory.learned", {"messages": 3, "by": "model"}, 5)


async def test_words_are_refused(world: World) -> None:
    async with world.database.write() as connection:
        with pytest.raises(ValueError, match="no text"):
            await telemetry.note(connection, "x", {"what": "my dog is called Bruno"}, now=5)
