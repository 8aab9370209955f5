"""Encryption on Matrix with a client that trusts signed devices only: rotated keys, long absences, restarts, files."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.e2ee_client import StrictPerson, strict_person
from tests.e2e.matrix_stage import MatrixMerk, answer, echoes, enter, matrix_deployment, press
from tests.e2e.synapse import Synapse
from tests.e2e.synapse_participant import Participant
from tests.e2e.synapse_view import Event, Message, RoomView

pytestmark = pytest.mark.external

OFFLINE_EVENTS = int(os.environ.get("MERK_TEST_OFFLINE_EVENTS", "110"))
"""Over five rooms. The acceptance figure is 500, which takes minutes: MERK_TEST_OFFLINE_EVENTS=500."""


def rotating(messages: int) -> Event:
    """The state of a room whose keys serve for so many messages."""
    content = {"algorithm": "m.megolm.v1.aes-sha2", "rotation_period_msgs": messages}
    return {"type": "m.room.encryption", "state_key": "", "content": content}


async def test_keys_are_rotated_as_the_room_asks_also_over_restarts_of_both(synapse: Synapse, tmp_path: Path) -> None:
    async with (
        strict_person(synapse, "ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        await merk.start()
        room = await enter(merk, ada, state=[rotating(2)])
        for number in range(4):
            if number == 3:
                await merk.stop()
                await ada.go_offline()
                await merk.start()
                await ada.come_back()
            said = await answer(merk, ada, room, f"m{number}")
            assert (said.body, said.is_encrypted) == (f"Echo: m{number}", True)
        sent = [event for event in await timeline(ada, room) if event["type"] == "m.room.encrypted"]
        sessions = Counter((event["sender"], event["content"]["session_id"]) for event in sent)
        assert max(sessions.values()) <= 2
        assert Counter(sender for sender, _ in sessions)[merk.user_id] >= 3
        check_read(merk, ada)


@pytest.mark.timeout(120 + 2 * OFFLINE_EVENTS)
async def test_p46_events_over_5_rooms_while_offline_are_answered_once_and_in_order(
    synapse: Synapse, tmp_path: Path
) -> None:
    """Each with a key of its own: more keys than a homeserver hands out at once."""
    async with (
        strict_person(synapse, "ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        await merk.start()
        rooms = await asyncio.gather(*(enter(merk, ada, state=[rotating(1)]) for _ in range(5)))
        await asyncio.sleep(1)
        await merk.stop()
        said = [[f"r{place}n{number}" for number in range(OFFLINE_EVENTS // 5)] for place in range(5)]
        await asyncio.gather(*(say(ada, room, texts) for room, texts in zip(rooms, said, strict=True)))
        await merk.start(wait=False)
        await merk.until(lambda: logged(merk) == OFFLINE_EVENTS, 60 + OFFLINE_EVENTS)
        await merk.settle(60 + OFFLINE_EVENTS)
        for room, texts in zip(rooms, said, strict=True):
            await ada.scroll_up(room)
            view = await ada.wait_for(room, lambda view: len(echoes(view, merk)) >= OFFLINE_EVENTS // 5, 60)
            order = [event["event_id"] for event in await timeline(ada, room)]
            view.messages.sort(key=lambda message: order.index(message.event_id))
            assert echoes(view, merk) == texts
            assert all(message.is_encrypted for message in view.messages)
        check_read(merk, ada)


async def test_a_kept_draft_too_long_for_a_message_is_a_file_that_only_the_room_can_read(
    synapse: Synapse, tmp_path: Path
) -> None:
    async with (
        strict_person(synapse, "ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        text = "\n\n".join(f"Dear Ms Krause, the heating in room {number} is cold." for number in range(80))
        draft = {"title": "Mail to the landlord", "text": text}
        merk.model.on(user="write a mail", has_tool="write_draft").reply(tool=("write_draft", draft))
        merk.model.on(after_tool="is shown").reply("Here it is.")
        await merk.start()
        room = await enter(merk, ada, encrypted=True)
        await ada.send(room, "Write a mail to my landlord.")
        await press(ada, room, await newest(merk, ada, room, "Discard"), "Keep")
        kept = await newest(merk, ada, room, "mail-to-the-landlord.md")
        assert (kept.kind, kept.is_encrypted) == ("m.file", True)
        stored, read = await ada.read_file(kept)
        assert read == text
        assert "Krause" not in stored
        assert "url" not in kept.content


async def say(person: Participant, room: str, texts: list[str]) -> None:
    for text in texts:
        await person.send(room, text)


async def newest(merk: MatrixMerk, person: Participant, room: str, words: str) -> Message:
    """Wait for a message of Merk's with these words."""

    def found(view: RoomView) -> list[Message]:
        return [each for each in view.said_by(merk.user_id) if words in each.body]

    return found(await person.wait_for(room, found))[-1]


async def timeline(person: Participant, room: str) -> list[Event]:
    """The events of a room as the homeserver has them, in its order."""
    found: list[Event] = []
    query: dict[str, Any] = {"dir": "b", "limit": 100}
    while True:
        page = await person.call("GET", f"/rooms/{quote(room)}/messages", **query)
        found += page["chunk"]
        if not page.get("end"):
            return found[::-1]
        query["from"] = page["end"]


def logged(merk: MatrixMerk) -> int:
    return int(merk.rows("SELECT count(*) FROM messages WHERE role = 'user'")[0][0])


def check_read(merk: MatrixMerk, person: StrictPerson) -> None:
    """Both could read everything."""
    assert not person.decryption_failures
    assert "matrix.undecryptable" not in merk.log()
