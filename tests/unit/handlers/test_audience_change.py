"""A room in which others came to read along: what was said in private stays out of it."""

from pathlib import Path

from memory.storage.database import Database
from tests.fakes.house import house


async def test_a_private_chat_does_not_go_on_in_front_of_others(database: Database, tmp_path: Path) -> None:
    """On Matrix a room of two becomes a room of three by one invitation."""
    async with house(database, tmp_path) as opened:
        await opened.say("my secret is Rosebud")
        await opened.say("what did I say?", group=True)
        assert "Rosebud" not in str(opened.model.requests[-1])
        await opened.say("and what did I say before that?")
        assert "what did I say?" not in str(opened.model.requests[-1])
