"""The strict person itself, against a second one: it reads what it should, and refuses what it should."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from tests.e2e.e2ee_client import StrictClientError, StrictPerson, strict_person
from tests.e2e.synapse import Synapse

pytestmark = pytest.mark.external


class Pair(NamedTuple):
    ada: StrictPerson
    bob: StrictPerson
    room: str


@asynccontextmanager
async def encrypted_pair(synapse: Synapse, *, bob_signs: bool = True) -> AsyncGenerator[Pair]:
    """Ada, strict and signed, and Bob in an encrypted room of hers."""
    async with (
        strict_person(synapse, "ada") as ada,
        strict_person(synapse, "bob", signs=bob_signs, isolates=bob_signs) as bob,
    ):
        room = await ada.create_room(invite=[bob.user_id], encrypted=True)
        await bob.join(room)
        for person in (ada, bob):
            await person.wait_for(room, lambda view: view.membership(bob.user_id) == "join")
            await person.wait_for(room, lambda view: ("m.room.encryption", "") in view.state)
        yield Pair(ada, bob, room)


async def test_signed_devices_read_each_other_with_edits_threads_reactions_and_redactions(synapse: Synapse) -> None:
    async with encrypted_pair(synapse) as (ada, bob, room):
        question = await ada.send(room, "Where is it?")
        await bob.wait_for(room, lambda view: view.message(question).body == "Where is it?")
        answer = await bob.send(room, "Hree", thread=question)
        await ada.wait_for(room, lambda view: view.message(answer).body == "Hree")
        await bob.edit(room, answer, "Here")
        view = await ada.wait_for(room, lambda view: view.message(answer).body == "Here")
        assert (view.message(answer).thread, view.message(answer).versions) == (question, ["Hree", "Here"])
        assert all(message.is_encrypted for message in view.messages)
        await ada.react(room, answer, "👍")
        await bob.wait_for(room, lambda view: view.message(answer).reactions == {"👍": [ada.user_id]})
        await bob.redact(room, answer)
        await ada.wait_for(room, lambda view: view.message(answer).is_redacted)
        assert await ada.signed_devices(bob.user_id) == {bob.device_id: True}
        assert not ada.decryption_failures | bob.decryption_failures


async def test_an_unsigned_device_gets_no_key_and_is_not_believed(synapse: Synapse) -> None:
    async with encrypted_pair(synapse, bob_signs=False) as (ada, bob, room):
        question = await ada.send(room, "Where is it?")
        await bob.wait_for(room, lambda view: view.message(question) in view.unreadable())
        answer = await bob.send(room, "Here")
        await ada.wait_for(room, lambda view: view.message(answer) in view.unreadable())
        assert await ada.signed_devices(bob.user_id) == {bob.device_id: False}
        assert (list(ada.decryption_failures), list(bob.decryption_failures)) == ([answer], [question])


async def test_what_was_sent_in_clear_is_told_from_what_was_encrypted(synapse: Synapse) -> None:
    async with encrypted_pair(synapse) as (ada, bob, room):
        leak = await send_in_clear(bob, room)
        view = await ada.wait_for(room, lambda view: view.message(leak).body == "careless")
        assert not view.message(leak).is_encrypted


async def test_keys_outlive_a_restart_and_a_new_megolm_session(synapse: Synapse) -> None:
    async with encrypted_pair(synapse) as (ada, bob, room):
        early = await bob.send(room, "early")
        await ada.wait_for(room, lambda view: view.message(early).body == "early")
        await ada.go_offline()
        await bob.rotate(room)
        late = await bob.send(room, "late")
        await ada.come_back()
        view = await ada.wait_for(room, lambda view: view.message(late).body == "late")
        assert view.message(early).body == "early"
        sessions = {event["session_id"] for event in await raw_contents(ada, room) if "session_id" in event}
        assert len(sessions) == 2
        reply = await ada.send(room, "back again")
        await bob.wait_for(room, lambda view: view.message(reply).body == "back again")
        assert not ada.decryption_failures


async def test_a_refusal_of_the_server_is_an_error_with_its_words(synapse: Synapse) -> None:
    async with strict_person(synapse, "ada") as ada:
        with pytest.raises(StrictClientError, match="M_UNKNOWN"):
            await ada.join("!nowhere:localhost")


async def send_in_clear(person: StrictPerson, room: str) -> str:
    """What a client that forgot to encrypt would do."""
    body = {"msgtype": "m.text", "body": "careless"}
    return (await person.call("PUT", f"/rooms/{room}/send/m.room.message/1", body))["event_id"]


async def raw_contents(person: StrictPerson, room: str) -> list[dict[str, str]]:
    """The contents as the server has them."""
    page = await person.call("GET", f"/rooms/{room}/messages", dir="b", limit=100)
    return [event["content"] for event in page["chunk"]]


async def test_a_client_that_died_is_told_at_once_with_its_last_words(synapse: Synapse) -> None:
    async with strict_person(synapse, "ada") as ada:
        ada.process.kill()
        with pytest.raises(StrictClientError, match="has ended"):
            await ada.wait_for("!any:localhost", lambda view: view.messages)
