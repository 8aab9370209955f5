"""How long keys serve in a room, and which events wait for theirs."""

from pathlib import Path
from typing import Any

import pytest

from bot.transports.matrix.rooms import Room, Rotation
from bot.transports.matrix.state import MOST_UNDECRYPTED, SyncState

RECOMMENDED = Rotation(messages=100, seconds=7 * 86_400)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({}, RECOMMENDED),
        ({"rotation_period_msgs": 7, "rotation_period_ms": 86_400_000}, Rotation(7, 86_400)),
        ({"rotation_period_msgs": 10_000, "rotation_period_ms": 10**12}, RECOMMENDED),
        ({"rotation_period_msgs": 0, "rotation_period_ms": -5}, Rotation(1, 3600)),
        ({"rotation_period_msgs": "7", "rotation_period_ms": None}, RECOMMENDED),
    ],
)
def test_a_room_may_ask_for_new_keys_sooner_and_never_later(asked: dict[str, Any], given: Rotation) -> None:
    room = Room("!room")
    room.apply({"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1", **asked}})
    assert (room.is_encrypted, room.rotation) == (True, given)


def test_an_event_waits_for_its_key_until_people_were_told_and_many_came_after_it(tmp_path: Path) -> None:
    state = SyncState(tmp_path)
    for number in range(MOST_UNDECRYPTED + 50):
        state.wait_for_key("!room", {"event_id": f"${number}"})
    assert len(state.undecrypted) == MOST_UNDECRYPTED + 50
    for waiting in state.undecrypted:
        waiting["is_told"] = True
    state.wait_for_key("!room", {"event_id": "$new"})
    left = [waiting["event"]["event_id"] for waiting in state.undecrypted]
    assert left == [f"${number}" for number in range(50, MOST_UNDECRYPTED + 50)] + ["$new"]
