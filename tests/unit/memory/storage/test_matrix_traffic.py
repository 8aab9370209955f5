"""What waits of a Matrix room is found by a forget: by its sender in private, by its room among others."""

from typing import Any

from memory.scope import Audience
from memory.storage import erasure, inbox, people, sessions
from memory.storage.database import Database
from memory.types import Role


def payload(room: str, people_there: int) -> dict[str, Any]:
    return {
        "event": {
            "type": "m.room.message",
            "sender": "@ada:example.org",
            "event_id": "$1",
            "origin_server_ts": 1,
            "room_id": room,
            "content": {"msgtype": "m.text", "body": "My dog is called Bruno"},
        },
        "room": {"room_id": room, "name": "Kitchen", "people": people_there, "sender_name": "Ada"},
        "me": "@merk:example.org",
        "my_name": "Merk",
        "quote": {"text": "Bruno?", "author": "Bob", "ref": "$0", "is_mine": False},
    }


async def test_a_forgotten_word_goes_from_what_was_received_and_not_worked_on(database: Database) -> None:
    async with database.write() as connection:
        ada = await people.admit(connection, "matrix:@ada:example.org", "Ada", Role.MEMBER, "en", 0)
        bob = await people.admit(connection, "matrix:@bob:example.org", "Bob", Role.MEMBER, "en", 0)
        group = await sessions.ensure_chat(connection, "matrix", "!group", kind="user", title="", now=0)
        for number, (room, count) in enumerate((("!private", 2), ("!group", 3))):
            await inbox.add(connection, "matrix", f"${number}", payload(room, count), 0)

        def rewrite(text: str, _is_told: bool) -> str:
            return text.replace("Bruno", "…")

        nobody = Audience(bob.id, 0, is_private=True)
        assert await erasure.rewrite_traffic(connection, nobody, (), rewrite) == 0
        assert await erasure.rewrite_traffic(connection, Audience(ada.id, group, is_private=False), (), rewrite) == 1
        assert await erasure.rewrite_traffic(connection, Audience(ada.id, 0, is_private=True), (), rewrite) == 1
        rows = await inbox.open_rows(connection, "matrix")
    assert "Bruno" not in str([row.payload for row in rows])
    assert [row.payload["event"]["sender"] for row in rows] == ["@ada:example.org"] * 2
