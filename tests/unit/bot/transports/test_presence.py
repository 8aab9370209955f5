"""Who comes to a group and who leaves it is noted at once, past everything that waits."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.transports.intake import Intake
from handlers.types import Handled, Incoming, Reply
from memory.scope import Audience, group_key
from memory.storage import inbox, members, people, sessions
from memory.storage.database import Database
from memory.types import Role
from tests.fakes.clock import FrozenClock
from tests.fakes.house import House, house
from tests.fakes.transport import RecordingTransport

GROUP: dict[str, Any] = {"chat": "-100", "group": True}


async def tell(opened: House, key: str, **payload: Any) -> None:
    assert opened.transport.accept is not None
    await opened.transport.accept(key, {"chat": "-100", **payload})
    await opened.settle()


async def there(database: Database) -> list[str]:
    async with database.read() as connection:
        chat = await sessions.chat_id(connection, "fake", "-100")
        return [] if chat is None else await members.in_group(connection, chat)


async def sees(opened: House, user_id: int) -> Sequence[str]:
    """What of the group's memory somebody finds in their private chat."""
    found = await opened.memory.observations.search(Audience(user_id, 0, is_private=True), "oven repaired")
    return [each.title for each in found.observations]


async def test_whoever_leaves_or_is_removed_loses_sight_of_the_group_at_once(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await opened.say("hello", **GROUP, **{"from": "42"})
        await opened.say("hi there", **GROUP, **{"from": "43"})
        async with database.read() as connection:
            ada, bob = [await people.find(connection, f"fake:{who}") for who in (42, 43)]
            chat = await sessions.chat_id(connection, "fake", "-100")
        assert ada is not None
        assert bob is not None
        assert chat is not None
        await opened.memory.observations.note_event(
            group_key(chat), hook="test", event_id="1", title="The oven was repaired"
        )
        assert await sees(opened, ada.id) == await sees(opened, bob.id) == ["The oven was repaired"]
        await tell(opened, "gone", left=["43"])
        assert (await sees(opened, ada.id), await sees(opened, bob.id)) == (["The oven was repaired"], [])
        await tell(opened, "back", came=["43"])
        assert await sees(opened, bob.id) == ["The oven was repaired"]
        await tell(opened, "over", over=True)
        assert await sees(opened, ada.id) == await sees(opened, bob.id) == []


async def test_newcomers_are_known_before_they_write_and_in_a_group_that_is_new(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        await tell(opened, "nobody", left=["1"])
        assert await there(database) == []
        await tell(opened, "come", came=["1", "2"])
        await tell(opened, "come", came=["3"])  # the same update again
        assert await there(database) == ["fake:1", "fake:2"]


class Slow:
    """Answers when it is let, after noting that somebody spoke, as the dispatcher does."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.gate = asyncio.Event()

    async def handle(self, incoming: Incoming, _attempt: int) -> Handled:
        await self.gate.wait()
        async with self.database.write() as connection:
            chat = await sessions.ensure_chat(connection, "fake", "-100", kind="user", title="", now=0)
            await members.note(connection, chat, incoming.sender.identity, 1)
        return Handled(self._nothing())

    async def _nothing(self) -> Reply:
        return
        yield


async def test_what_somebody_said_before_they_were_removed_does_not_bring_them_back(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path) as opened:
        slow, transport = Slow(database), RecordingTransport()
        intake = Intake(
            database,
            FrozenClock(),
            transport,
            opened.app.delivery,
            handle=slow.handle,
            is_urgent=lambda _incoming: False,
            finished=lambda: None,
        )
        await intake.accept("a", {"text": "first", **GROUP, "from": "42"})
        await intake.accept("b", {"text": "second", **GROUP, "from": "43"})
        await intake.accept("c", {"chat": "-100", "came": ["44"]})
        await intake.accept("d", {"chat": "-100", "left": ["43"]})
        slow.gate.set()
        async with asyncio.timeout(5):
            while not intake.is_idle():  # noqa: ASYNC110 - a lane that ends sets no event
                await asyncio.sleep(0.01)
        assert await there(database) == ["fake:42", "fake:44"]
        await intake.accept("e", {"text": "I am back", **GROUP, "from": "43"})
        async with asyncio.timeout(5):
            while not intake.is_idle():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
        assert await there(database) == ["fake:42", "fake:43", "fake:44"]
        await intake.close()


async def test_a_leaving_that_cannot_be_stored_is_taken_up_again(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(database, tmp_path) as opened:
        await tell(opened, "come", came=["1", "2"])

        async def fails(*_args: object) -> None:
            raise OSError("disk full")

        with monkeypatch.context() as broken:
            broken.setattr(members, "left", fails)
            await tell(opened, "go", left=["2"])
        assert await there(database) == ["fake:1", "fake:2"]
        async with database.read() as connection:
            assert [row.external_id for row in await inbox.open_rows(connection, "fake")] == ["go"]
    async with house(database, tmp_path):
        assert await there(database) == ["fake:1"]


async def test_a_person_who_left_keeps_what_is_their_own(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        async with database.write() as connection:
            bob = await people.admit(connection, "fake:43", "Bob", Role.MEMBER, "en", 0)
        await opened.memory.observations.note_event(f"u{bob.id}", hook="test", event_id="1", title="My oven repaired")
        await tell(opened, "come", came=["43"])
        await tell(opened, "gone", left=["43"])
        assert await sees(opened, bob.id) == ["My oven repaired"]
