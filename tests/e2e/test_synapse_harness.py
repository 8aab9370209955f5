"""The homeserver fixture itself: it serves, it limits as a stock server does, and it shows what a person sees."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.e2e.synapse import Synapse
from tests.e2e.synapse_person import Person

pytestmark = pytest.mark.external


class Pair(NamedTuple):
    ada: Person
    bob: Person
    room: str


@pytest.fixture
async def pair(synapse: Synapse) -> AsyncGenerator[Pair]:
    """Ada and Bob in a plain room of theirs."""
    async with synapse.person("ada") as ada, synapse.person("bob") as bob:
        room = await ada.create_room(invite=[bob.user_id], name="Test")
        await bob.join(room)
        yield Pair(ada, bob, room)


async def test_an_edit_replaces_the_text_and_leaves_its_versions(pair: Pair) -> None:
    sent = await pair.bob.send(pair.room, "draft")
    await pair.bob.edit(pair.room, sent, "final")
    view = await pair.ada.wait_for(pair.room, lambda view: view.message(sent).body == "final")
    assert view.message(sent).versions == ["draft", "final"]
    assert [message.event_id for message in view.messages] == [sent]


async def test_an_edit_by_another_person_changes_nothing(pair: Pair) -> None:
    sent = await pair.bob.send(pair.room, "mine")
    await pair.ada.edit(pair.room, sent, "yours")
    assert (await pair.ada.view(pair.room)).message(sent).body == "mine"


async def test_a_redacted_edit_brings_the_version_before_back(pair: Pair) -> None:
    sent = await pair.bob.send(pair.room, "one")
    edited = await pair.bob.edit(pair.room, sent, "two")
    await pair.ada.wait_for(pair.room, lambda view: view.message(sent).body == "two")
    await pair.bob.redact(pair.room, edited)
    await pair.ada.wait_for(pair.room, lambda view: view.message(sent).body == "one")


async def test_reactions_count_by_person_until_they_are_redacted(pair: Pair) -> None:
    sent = await pair.bob.send(pair.room, "Yes or no?")
    thumb = await pair.ada.react(pair.room, sent, "👍")
    await pair.bob.react(pair.room, sent, "👍")
    view = await pair.ada.view(pair.room)
    assert view.message(sent).reactions == {"👍": [pair.ada.user_id, pair.bob.user_id]}
    await pair.ada.redact(pair.room, thumb)
    assert (await pair.ada.view(pair.room)).message(sent).reactions == {"👍": [pair.bob.user_id]}


async def test_a_redacted_message_is_gone_for_those_who_saw_it_and_those_who_come_later(
    synapse: Synapse, pair: Pair
) -> None:
    sent = await pair.bob.send(pair.room, "secret")
    assert (await pair.ada.view(pair.room)).message(sent).body == "secret"
    await pair.bob.redact(pair.room, sent)
    async with synapse.person("cleo") as cleo:
        await pair.ada.invite(pair.room, cleo.user_id)
        await cleo.join(pair.room)
        for person in (pair.ada, cleo):
            message = (await person.view(pair.room)).message(sent)
            assert (message.is_redacted, message.body) == (True, "")


async def test_threads_are_apart_from_the_main_line_and_from_replies(pair: Pair) -> None:
    root = await pair.ada.send(pair.room, "root")
    inside = await pair.bob.send(pair.room, "inside", thread=root)
    beside = await pair.bob.send(pair.room, "beside", reply_to=root, mention=[pair.ada.user_id])
    view = await pair.ada.view(pair.room)
    assert [message.event_id for message in view.main_line()] == [root, beside]
    assert [message.event_id for message in view.in_thread(root)] == [inside]
    assert view.threads() == [root]
    assert (view.message(inside).reply_to, view.message(beside).reply_to) == (None, root)
    assert view.message(beside).mentions == [pair.ada.user_id]


async def test_everything_said_while_away_is_there_in_order(pair: Pair) -> None:
    await pair.ada.view(pair.room)
    for number in range(130):  # more than one page of a timeline
        await pair.bob.send(pair.room, str(number))
    assert [message.body for message in (await pair.ada.view(pair.room)).messages] == [str(n) for n in range(130)]


async def test_invitations_membership_and_names_are_seen(synapse: Synapse, pair: Pair) -> None:
    async with synapse.person("cleo") as cleo:
        await pair.ada.invite(pair.room, cleo.user_id)
        await cleo.sync()
        assert pair.room in cleo.invitations
        await cleo.join(pair.room)
        view = await pair.ada.wait_for(pair.room, lambda view: view.membership(cleo.user_id) == "join")
        assert view.state["m.room.name", ""] == {"name": "Test"}
        assert view.state["m.room.member", cleo.user_id]["displayname"] == "Cleo"
        await pair.ada.kick(pair.room, cleo.user_id)
        await cleo.wait_for(pair.room, lambda view: view.membership(cleo.user_id) == "leave")


async def test_typing_and_read_marks_are_seen(pair: Pair) -> None:
    sent = await pair.ada.send(pair.room, "Hello")
    await pair.bob.call("PUT", f"/rooms/{pair.room}/typing/{pair.bob.user_id}", {"typing": True, "timeout": 20_000})
    await pair.bob.call("POST", f"/rooms/{pair.room}/receipt/m.read/{sent}", {})
    await pair.ada.wait_for(pair.room, lambda view: view.typing == [pair.bob.user_id])
    await pair.ada.wait_for(pair.room, lambda view: view.read_up_to[pair.bob.user_id] == sent)


async def test_an_upgraded_room_names_its_successor(pair: Pair) -> None:
    successor = await pair.ada.upgrade(pair.room)
    view = await pair.bob.view(pair.room)
    assert view.state["m.room.tombstone", ""]["replacement_room"] == successor


async def test_waiting_in_vain_ends_with_the_transcript(pair: Pair) -> None:
    await pair.bob.send(pair.room, "hello")
    with pytest.raises(TimeoutError, match="hello"):
        await pair.ada.wait_for(pair.room, lambda view: view.message("$never"), within=0.5)


async def test_a_deactivated_user_is_shut_out(synapse: Synapse) -> None:
    async with synapse.person("dora") as dora:
        await synapse.deactivate(dora.user_id)
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            await dora.sync()


async def test_a_stock_server_limits_messages_until_the_administrator_lifts_it(stock_synapse: Synapse) -> None:
    async with stock_synapse.person("ada") as ada:
        room = await ada.create_room()
        assert await _refusals(stock_synapse, ada, room, 15) > 0
        await stock_synapse.lift_limits(ada.user_id)
        assert await _refusals(stock_synapse, ada, room, 15) == 0


async def test_a_killed_server_comes_back_with_what_it_had(tmp_path: Path) -> None:
    with Synapse.running(tmp_path) as server:
        async with server.person("ada") as ada:
            room = await ada.create_room()
            sent = await ada.send(room, "before")
            server.kill()
            with pytest.raises(httpx.TransportError):
                await ada.sync()
            await asyncio.to_thread(server.start)
            assert (await ada.view(room)).message(sent).body == "before"


async def _refusals(server: Synapse, person: Person, room: str, times: int) -> int:
    """How many of so many messages in a row the server refuses."""
    headers = {"Authorization": f"Bearer {person.access_token}"}
    refused = 0
    async with httpx.AsyncClient(base_url=server.url, headers=headers, verify=False) as client:
        for number in range(times):
            path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/{person.device_id}{refused}-{number}"
            reply = await client.put(path, json={"msgtype": "m.text", "body": str(number)})
            refused += reply.status_code == 429
    return refused
