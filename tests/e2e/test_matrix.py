"""Merk on Matrix against Synapse: the story of the mission, and what must hold when processes and limits bite."""

import asyncio
from pathlib import Path

import pytest

from handlers.locales import phrases
from tests.e2e.e2ee_client import strict_person
from tests.e2e.matrix_stage import MatrixMerk, answer, device, echoes, enter, matrix_deployment
from tests.e2e.matrix_stage import press as press_on
from tests.e2e.synapse import Synapse
from tests.e2e.synapse_participant import Participant
from tests.e2e.synapse_view import Message, RoomView
from tests.fakes.messages_api import Request, texts

pytestmark = pytest.mark.external

FACT = "My dog is called Bruno"
PLAIN = phrases("en")("matrix-unencrypted")


def card(view: RoomView, merk: MatrixMerk, label: str) -> Message:
    return next(message for message in reversed(view.said_by(merk.user_id)) if label in message.body)


async def press(merk: MatrixMerk, person: Participant, room: str, label: str) -> Message:
    """React to the newest card that shows this label, with the mark in front of it."""
    view = await person.wait_for(room, lambda view: any(label in each.body for each in view.said_by(merk.user_id)))
    shown = card(view, merk, label)
    await press_on(person, room, shown, label)
    return shown


async def test_the_story_with_threads_and_reactions(synapse: Synapse, tmp_path: Path) -> None:
    async with synapse.person("ada") as ada, matrix_deployment(tmp_path, synapse, ada.user_id) as merk:
        merk.model.on(user="(?i)remember", has_tool="remember_fact").reply(tool=("remember_fact", {"fact": f"{FACT}."}))
        merk.model.on(user="(?i)forget", has_tool="forget_fact").reply(tool=("forget_fact", {"query": FACT}))
        await merk.start()
        room = await enter(merk, ada)

        await answer(merk, ada, room, f"Remember that {FACT.lower()}.")
        await ada.wait_for(room, lambda view: any("Saved" in each.body for each in view.said_by(merk.user_id)))
        assert merk.rows("SELECT text FROM facts") == [(FACT,)]

        # /newchat opens a thread under the person's own message, and the fact is known there
        root = await ada.send(room, "/newchat")
        await ada.wait_for(room, lambda view: view.said_by(merk.user_id, thread=root))
        before = len(merk.answers())
        await answer(merk, ada, room, "What is my dog called?", thread=root)
        assert "Bruno" in texts(merk.answers()[before])
        assert merk.rows("SELECT thread FROM sessions ORDER BY id") == [("",), (root,)]

        # a second chat forgets it by a reaction on the card
        await ada.send(room, "Forget that my dog is called Bruno.", thread=root)
        await press(merk, ada, room, "Yes, forget")
        await merk.until(lambda: not merk.rows("SELECT 1 FROM facts"))
        await merk.until(lambda: not merk.files_with("Bruno"), 60)
        assert "Bruno" not in texts(await asked(merk, ada, room, "What is my dog called?"))
        assert merk.model.violations == []
        assert await merk.stop() == 0


async def asked(merk: MatrixMerk, person: Participant, room: str, text: str) -> Request:
    before = len(merk.answers())
    await answer(merk, person, room, text)
    return merk.answers()[before]


async def test_p51_on_a_stock_server_a_long_answer_arrives_whole_in_spite_of_429(
    stock_synapse: Synapse, tmp_path: Path
) -> None:
    async with (
        stock_synapse.person("ada") as ada,
        matrix_deployment(tmp_path, stock_synapse, ada.user_id) as merk,
    ):
        await merk.start()
        room = await enter(merk, ada)
        for number in range(4):
            await ada.send(room, f"q{number}")
        view = await ada.wait_for(room, lambda view: len(echoes(view, merk)) >= 4, 110)
        assert echoes(view, merk) == [f"q{number}" for number in range(4)]


# --- encryption ----------------------------------------------------------------------------------------


async def test_p48_an_encrypted_room_with_a_client_that_trusts_signed_devices_only(
    synapse: Synapse, tmp_path: Path
) -> None:
    """Both directions, in a thread, by a reaction, after a rotation and after both have restarted."""
    async with (
        strict_person(synapse, "ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        merk.model.on(user="(?i)remember", has_tool="remember_fact").reply(tool=("remember_fact", {"fact": f"{FACT}."}))
        await merk.start()
        room = await ada.create_room(invite=[merk.user_id], encrypted=True, direct=True)
        await ada.wait_for(room, lambda view: view.membership(merk.user_id) == "join")
        assert await ada.signed_devices(merk.user_id) == {device(merk): True}

        await answer(merk, ada, room, f"Remember that {FACT.lower()}.")
        shown = await press(merk, ada, room, "Undo")
        await merk.until(lambda: not merk.rows("SELECT 1 FROM facts WHERE valid_to IS NULL"))
        assert shown.is_encrypted

        secret = "The vet of Zwirbelwitz called."
        assert (await answer(merk, ada, room, secret)).body == f"Echo: {secret}"
        await ada.redact(room, (await ada.view(room)).said_by(ada.user_id)[-1].event_id)
        await merk.until(lambda: not merk.rows("SELECT 1 FROM messages WHERE text LIKE '%Zwirbelwitz%'"))

        await merk.kill()
        await ada.go_offline()
        await merk.start()
        await ada.come_back()
        await ada.rotate(room)
        root = await ada.send(room, "/newchat")
        view = await ada.wait_for(room, lambda view: view.said_by(merk.user_id, thread=root))
        assert view.message(root).is_encrypted
        await ada.send(room, "after all that", thread=root)
        view = await ada.wait_for(room, lambda view: view.said_by(merk.user_id)[-1].body == "Echo: after all that")
        said = view.said_by(merk.user_id)[-1]
        assert (said.is_encrypted, said.thread) == (True, root)
        assert not ada.decryption_failures
        assert "undecryptable" not in merk.log()


async def test_p47_another_device_than_the_one_with_the_keys_is_refused_aloud(synapse: Synapse, tmp_path: Path) -> None:
    async with (
        synapse.person("ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        await merk.start()
        await merk.stop()
        async with synapse.login(merk.account) as other:
            merk.more = {"MERK_MATRIX__ACCESS_TOKEN": other.access_token, "MERK_MATRIX__DEVICE_ID": other.device_id}
            await merk.start(wait=False)
            assert merk.process is not None
            assert await asyncio.wait_for(merk.process.wait(), 60) == 2
            assert "move that folder away to begin anew" in merk.log()
        merk.more = {}
        for name in ("crypto.db", "cross_signing.json"):
            (merk.data_dir / "matrix" / name).unlink()
        await merk.start(wait=False)
        await merk.until(lambda: "the homeserver has other keys of device" in merk.log())


async def test_encryption_required_says_once_why_a_plain_room_is_not_read(synapse: Synapse, tmp_path: Path) -> None:
    async with (
        synapse.person("ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        await merk.start()
        room = await enter(merk, ada)
        for number in range(3):
            await ada.send(room, f"hello {number}")
        await ada.wait_for(room, lambda view: view.said_by(merk.user_id))
        await merk.until(lambda: merk.log().count("matrix.synced") == 1)
        await asyncio.sleep(2)
        assert [each.body for each in (await ada.view(room)).said_by(merk.user_id)] == [PLAIN]
        assert merk.rows("SELECT 1 FROM inbox") == []


# --- rooms ---------------------------------------------------------------------------------------------


async def test_rooms_are_entered_followed_and_left(synapse: Synapse, tmp_path: Path) -> None:
    async with (
        synapse.person("ada") as ada,
        synapse.person("eve") as eve,
        matrix_deployment(tmp_path, synapse, ada.user_id) as merk,
    ):
        # invited while it was away, and by somebody whom nobody let in
        room = await ada.create_room(invite=[merk.user_id], direct=True)
        waiting = await eve.create_room(invite=[merk.user_id], direct=True)
        await merk.start()
        await ada.wait_for(room, lambda view: view.membership(merk.user_id) == "join")
        await ada.send(room, "hello")
        await ada.wait_for(room, lambda view: "hello" in echoes(view, merk))

        new = await ada.upgrade(room)
        await ada.invite(new, merk.user_id)
        await ada.wait_for(new, lambda view: view.membership(merk.user_id) == "join")
        await ada.send(new, "here now")
        await ada.wait_for(new, lambda view: "here now" in echoes(view, merk))
        assert merk.rows("SELECT external_id FROM chats") == [(new,)]
        assert merk.rows("SELECT count(*) FROM sessions") == [(1,)]

        await ada.leave(new)
        await merk.until(lambda: "matrix.left" in merk.log())
        assert (await eve.view(waiting)).membership(merk.user_id) == "invite"


async def test_a_stranger_who_invites_merk_is_let_in_by_the_owner(synapse: Synapse, tmp_path: Path) -> None:
    async with (
        synapse.person("ada") as ada,
        synapse.person("eve") as eve,
        matrix_deployment(tmp_path, synapse, ada.user_id) as merk,
    ):
        await merk.start()
        room = await enter(merk, ada)
        await answer(merk, ada, room, "hello")
        waiting = await eve.create_room(invite=[merk.user_id], direct=True)
        await press(merk, ada, room, "Let in")
        await eve.wait_for(waiting, lambda view: view.said_by(merk.user_id))
        await eve.send(waiting, "hello")
        await eve.wait_for(waiting, lambda view: "hello" in echoes(view, merk))


async def test_p52_what_nobody_can_decrypt_is_told_once(synapse: Synapse, tmp_path: Path) -> None:
    async with (
        synapse.person("ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        await merk.start()
        room = await ada.create_room(invite=[merk.user_id], encrypted=True)
        await ada.wait_for(room, lambda view: view.membership(merk.user_id) == "join")
        for number in range(3):
            sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA", "device_id": "D", "sender_key": "k"}
            await ada.send_event(room, "m.room.encrypted", sealed | {"session_id": f"s{number}"})
        await merk.until(lambda: merk.log().count("matrix.undecryptable") == 3)
        await merk.until(lambda: merk.rows("SELECT 1 FROM outbox WHERE status = 'sent'"), 60)
        await asyncio.sleep(1)
        assert len(merk.rows("SELECT 1 FROM inbox")) == 1
        assert len(merk.rows("SELECT 1 FROM outbox")) == 1
        assert merk.answers() == []


async def test_one_process_serves_telegram_and_matrix(synapse: Synapse, tmp_path: Path) -> None:
    async with (
        synapse.person("ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, also_telegram=True) as merk,
    ):
        merk.telegram.private_chat(42, "Ada")
        await merk.start()
        room = await enter(merk, ada)
        await answer(merk, ada, room, "on Matrix")
        merk.telegram.say(42, "on Telegram")
        await merk.telegram.wait_text(42, "Echo: on Telegram", timeout=30)
        code, shown = await merk.run("matrix", "verify")
        assert code == 0
        assert merk.user_id in shown
        _, shown = await merk.run("doctor")
        assert f"ok    matrix: {merk.user_id}, device {device(merk)}, " in shown


async def test_an_identity_of_somebody_else_is_left_alone_and_told(synapse: Synapse, tmp_path: Path) -> None:
    """Whoever lost the folder begins anew as a device that the account's former identity has not signed."""
    async with (
        synapse.person("ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        await merk.start()
        await merk.stop()
        code, shown = await merk.run("matrix", "verify")
        assert code == 0
        assert "Cross-signed: yes" in shown
        (merk.data_dir / "matrix").rename(tmp_path / "moved")
        await merk.start()
        assert "another client owns this account's cross-signing identity" in merk.log()
        _, shown = await merk.run("matrix", "verify")
        assert "Cross-signed: no: another client owns" in shown
        code, shown = await merk.run("doctor")
        assert code == 1
        assert "is not signed: strict clients send it no keys" in shown
