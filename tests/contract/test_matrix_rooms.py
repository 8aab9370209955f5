"""Rooms on Matrix: invitations, upgrades, leaving, and what a room is told in passing."""

import pytest

from bot.transports.base import Part, Presence, SendError
from tests.contract.matrix_room import last, listening
from tests.contract.transports import MatrixRig, heard
from tests.fakes.homeserver.server import BOT
from tests.waiting import until


async def test_an_invitation_is_accepted_from_admitted_people_only(rig: MatrixRig) -> None:
    eve = rig.server.person("eve")
    hers, adas = rig.server.world.create(eve), rig.server.world.create(rig.ada)
    await rig.server.invite(hers, eve)
    await listening(rig)
    await rig.server.invite(adas, rig.ada)
    await until(lambda: adas.membership(BOT) == "join")
    assert hers.membership(BOT) == "invite"


async def test_a_strangers_invitation_waits_over_restarts_until_they_are_admitted(rig: MatrixRig) -> None:
    eve = rig.server.person("eve")
    room = rig.server.world.create(eve)
    await listening(rig)
    await rig.server.invite(room, eve)
    await rig.say("something that moves the token on")
    await heard(rig)
    await rig.transport.close()
    rig.admitted.add(f"matrix:{eve}")
    rig.connect()
    await listening(rig)
    await until(lambda: room.membership(BOT) == "join")


async def test_p52_what_cannot_be_decrypted_is_told_once_a_thread(
    rig: MatrixRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.transports.matrix.reading.KEY_SECONDS", 0.0)
    await listening(rig)
    sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA", "session_id": "s", "sender_key": "k"}
    thread = {"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}}
    for content in (sealed, sealed, sealed | thread, sealed):
        rig.server.world.add(rig.room, rig.ada, "m.room.encrypted", content)
        await rig.say("a word between")
    found = [each for each in await heard(rig, 6) if each.attachments]
    assert [(each.attachments[0].kind, each.place.thread) for each in found] == [
        ("encrypted", ""),
        ("encrypted", "$root"),
    ]


async def test_an_invitation_that_waited_is_accepted_and_what_was_said_since_is_answered(rig: MatrixRig) -> None:
    room = rig.server.world.create(rig.ada)
    await rig.server.say(room, rig.ada, "to myself")
    await rig.server.invite(room, rig.ada)
    await rig.server.say(room, rig.ada, "are you there?")
    await listening(rig)
    assert (await last(rig)).text == "are you there?"
    assert len(rig.inbox.calls) == 1


async def test_an_upgraded_room_is_followed(rig: MatrixRig) -> None:
    await listening(rig)
    new = rig.server.world.create(rig.ada)
    await rig.server.invite(new, rig.server.person("eve"))
    await rig.server.invite(new, rig.ada)
    await until(lambda: new.membership(BOT) == "join")
    rig.server.world.add(rig.room, rig.ada, "m.room.tombstone", {"replacement_room": new.id}, state_key="")
    await rig.server.happen()
    # eve's invitation is told as well, where a sync came between the two
    row = await until(lambda: next((each for each in rig.inbox.rows if "moved" in each.payload), None))
    assert row is not None
    assert rig.transport.moved(row) == (rig.room.id, new.id)
    assert rig.transport.parse(row) is None


async def test_merk_leaves_a_room_that_everybody_has_left(rig: MatrixRig) -> None:
    await listening(rig)
    rig.server.world.add(rig.room, rig.ada, "m.room.member", {"membership": "leave"}, state_key=rig.ada)
    await rig.server.happen()
    await until(lambda: rig.room.id not in rig.server.world.rooms)


async def test_what_was_read_is_receipted_and_typing_ends_with_the_answer(rig: MatrixRig) -> None:
    await listening(rig)
    await rig.say("hello")
    incoming = await last(rig)
    await until(lambda: (rig.room.id, "main", incoming.ref) in rig.server.receipts)
    await rig.transport.show_typing(rig.place)
    await rig.transport.send(rig.place, Part("hi"), "1-1-0")
    assert [is_typing for _, is_typing in rig.server.typing] == [True, False]


async def test_a_strangers_invitation_is_told_once_and_followed_when_something_is_said_there(rig: MatrixRig) -> None:
    eve = rig.server.person("eve", "Eve")
    room = rig.server.world.create(eve)
    await listening(rig)
    await rig.server.invite(room, eve)
    incoming = await last(rig)
    assert (incoming.is_invitation, incoming.is_addressed, incoming.text) == (True, False, "")
    assert (incoming.sender.identity, incoming.sender.name) == (f"matrix:{eve}", "Eve")
    with pytest.raises(SendError):
        await rig.transport.send(incoming.place, Part("hello"), "1-1-0")
    assert room.membership(BOT) == "invite"
    rig.admitted.add(f"matrix:{eve}")
    await rig.transport.send(incoming.place, Part("welcome"), "1-2-0")
    assert rig.server.shown(room) == ["welcome"]
    assert len(rig.inbox.calls) == 1


async def test_who_comes_to_a_room_and_who_leaves_is_told_and_a_pair_is_no_group(rig: MatrixRig) -> None:
    bob, world = rig.server.person("bob", "Bob"), rig.server.world
    await listening(rig)
    world.join(rig.room, bob)
    world.add(rig.room, bob, "m.room.member", {"membership": "leave"}, state_key=bob)
    world.join(rig.room, rig.ada)  # a new name, in a room of two
    await rig.say("a word after")
    rows = await until(lambda: rig.inbox.rows if len(rig.inbox.rows) >= 3 else [])
    told = [rig.transport.members(row) for row in rows]
    who = frozenset({f"matrix:{bob}"})
    assert [each for each in told if each] == [
        Presence(rig.room.id, came=who, title=""),
        Presence(rig.room.id, left=who, title=""),
    ]
    assert [each.text for each in await heard(rig)] == ["a word after"]


async def test_where_merk_is_removed_nobody_is_known_to_be_there(rig: MatrixRig) -> None:
    await listening(rig)
    rig.server.world.add(rig.room, rig.ada, "m.room.member", {"membership": "leave"}, state_key=BOT)
    await rig.server.happen()
    rows = await until(lambda: rig.inbox.rows)
    assert [rig.transport.members(row) for row in rows] == [Presence(rig.room.id, is_over=True)]
    assert rig.transport.parse(rows[0]) is None
