"""How Telegram's updates come in, by polling and by webhook, whatever happens to the line."""

import asyncio
import json
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from bot.transports.base import Key, Part, Presence
from bot.transports.telegram import contact, errors, webhook
from bot.transports.telegram.webhook import SECRET_HEADER, WebhookSettings
from handlers.types import Place, Press
from tests.contract.transports import Inbox, TelegramRig, heard
from tests.fakes.bot_api.faults import FaultKind
from tests.waiting import until

GROUP = -1001000000002
PRIVATE_SCOPE = {"type": "all_private_chats"}
GROUP_SCOPE = {"type": "all_group_chats"}


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "POLL_PAUSES", (0.02,))
    monkeypatch.setattr(errors, "REFUSED_PAUSE", 0.05)


@pytest.fixture
async def rig() -> AsyncIterator[TelegramRig]:
    async with TelegramRig() as made:
        yield made


# --- who is there --------------------------------------------------------------------------------------


async def test_joining_leaving_and_being_removed_are_told_in_groups(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    group = rig.api.group(-500, "Kitchen", [rig.ada])
    rig.api.join(group, rig.ada)
    rig.api.part(group, rig.ada)
    rig.api.set_bot_status(group, "kicked")
    await until(lambda: len(rig.inbox.rows) >= 3)
    told = [rig.transport.members(row) for row in rig.inbox.rows]
    chat, ada = str(group), frozenset({f"telegram:{rig.ada}"})
    assert [each for each in told if each] == [
        Presence(chat, came=ada, title="Kitchen"),
        Presence(chat, left=ada, title="Kitchen"),
        Presence(chat, is_over=True),
    ]
    assert [rig.transport.parse(row) for row in rig.inbox.rows] == [None] * len(told)


# --- polling -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["500", "502", "reset", "reset_after", "429", "blocked"])
async def test_polling_survives(rig: TelegramRig, kind: FaultKind) -> None:
    await rig.transport.start(rig.inbox.accept)
    rig.api.fail(kind, "getUpdates", times=3 if kind != "429" else 1)
    await rig.say("one")
    await rig.say("two")
    assert [incoming.text for incoming in await heard(rig, 2)] == ["one", "two"]
    await until(lambda: rig.transport.problem is None)


async def test_p40_a_refused_token_is_said_once_and_tried_again(rig: TelegramRig) -> None:
    """Servers have been wrong about a token for minutes; the library's own loop would end for good."""
    refused = rig.api.fail("custom", "get.*", times=None, code=401, text="Unauthorized")
    with capture_logs() as logs:
        await rig.transport.start(rig.inbox.accept)
        await until(lambda: refused.hits >= 6)
    assert [entry["problem"] for entry in logs if entry["event"] == "telegram.problem"] == [rig.transport.problem]
    assert "telegram.token" in (rig.transport.problem or "")
    assert rig.transport.last_contact() is None
    rig.api.heal()
    await rig.say("back again")
    await heard(rig)
    await until(lambda: rig.transport.problem is None)


async def test_a_single_404_costs_a_moment_and_no_minute(rig: TelegramRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "REFUSED_PAUSE", 60.0)
    await rig.transport.start(rig.inbox.accept)
    await until(lambda: rig.api.calls("getMe"))
    rig.api.fail("custom", "getUpdates", times=1, code=404, text="Not Found")
    await rig.say("one")
    await rig.say("two")
    assert [incoming.text for incoming in await heard(rig, 2)] == ["one", "two"]


async def test_a_proxy_s_error_page_is_one_line_and_no_traceback(
    rig: TelegramRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.api.fail("502", "getUpdates", times=2)
    await rig.transport.start(rig.inbox.accept)
    await rig.say("one")
    await heard(rig)
    assert [record.name for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_p40_the_last_contact_grows_old_while_polls_fail(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("hello")
    await heard(rig)
    broken = rig.api.fail("500", "getUpdates", times=None)
    await rig.say("wake the poll that waits")
    await until(lambda: broken.hits >= 3)
    before = rig.transport.last_contact() or 0.0
    await until(lambda: broken.hits >= 6)
    assert (rig.transport.last_contact() or 0.0) > before
    assert "cannot be reached" in (rig.transport.problem or "")


async def test_two_pollers_are_reported_and_neither_dies(rig: TelegramRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "CONFLICT_SECONDS", 0.3)
    monkeypatch.setattr(errors, "POLL_PAUSES", (0.1,))
    first = rig.transport
    await first.start(rig.inbox.accept)
    await until(lambda: rig.api.calls("getMe"))
    second, other = rig.connect(), Inbox()
    await second.start(other.accept)
    await until(lambda: first.problem)
    assert "another program polls" in (first.problem or "")
    await second.close()
    await rig.say("still there?")
    await until(lambda: rig.inbox.rows)
    for number in range(20):  # a poll that comes back with something is one that went well
        await rig.say(f"{number}")
        await asyncio.sleep(0.03)
    await until(lambda: first.problem is None)


async def test_a_webhook_of_an_earlier_configuration_is_taken_down_and_nothing_is_dropped(rig: TelegramRig) -> None:
    async with httpx.AsyncClient() as client:
        url = f"{rig.api.base_url}/bot{rig.api.token}/setWebhook"
        await client.post(url, json={"url": "https://old.example.org/hook"})
    await rig.say("waiting")
    await rig.transport.start(rig.inbox.accept)
    assert [incoming.text for incoming in await heard(rig)] == ["waiting"]
    (call,) = rig.api.calls("deleteWebhook")
    assert "drop_pending_updates" not in call.params


async def test_p31_pending_updates_are_never_dropped(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await until(lambda: rig.api.calls("getMe"))
    assert all("drop_pending_updates" not in call.params for call in rig.api.calls())


async def test_an_update_of_a_shape_nobody_knows_does_not_block_the_next(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library would ask for the same batch for ever."""

    def pass_anything(*_: object) -> None: ...  # the emulator would not say what today's server does not

    monkeypatch.setattr("tests.fakes.bot_api.emulator.Emulator.check_answer", pass_anything)
    strange = {"update_id": rig.api.world.feed.next_id, "message": {"message_id": 1, "new": {"of": "next year"}}}
    rig.api.world.feed.pending.append(strange)
    rig.api.world.feed.next_id += 1
    await rig.say("understood")
    await rig.transport.start(rig.inbox.accept)
    assert [incoming.text for incoming in await heard(rig, 2)] == ["understood"]
    await until(lambda: not rig.api.pending())


async def test_reactions_are_asked_for(rig: TelegramRig) -> None:
    """They never come unasked."""
    await rig.transport.start(rig.inbox.accept)
    await rig.say("hello")
    await heard(rig)
    await rig.transport.send(rig.place, Part("hi"), "1-0")
    rig.api.react(rig.ada, rig.api.last(rig.ada).id, "👍")
    await until(lambda: len(rig.inbox.rows) == 2)
    assert "message_reaction" in rig.inbox.rows[1].payload
    assert rig.transport.parse(rig.inbox.rows[1]) is None


async def test_p31_a_killed_process_loses_nothing(rig: TelegramRig) -> None:
    """`os._exit` in the middle of accepting: Telegram still has the message."""
    await rig.say("important")
    script = f"""
import asyncio, os
from bot.transports.telegram.transport import TelegramTransport
from memory.instants import SystemClock

async def accept(external_id, payload):
    os._exit(9)

async def main():
    transport = TelegramTransport({rig.api.token!r}, SystemClock(), lambda _: [], base_url={rig.api.base_url!r})
    await transport.start(accept)
    await asyncio.sleep(30)

asyncio.run(main())
"""
    process = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], cwd=Path(__file__).parents[2], timeout=60, check=False
    )
    assert process.returncode == 9
    assert len(rig.api.pending()) == 1
    await rig.transport.start(rig.inbox.accept)
    assert [incoming.text for incoming in await heard(rig)] == ["important"]


async def test_what_cannot_be_stored_is_not_acknowledged(rig: TelegramRig) -> None:
    rig.inbox.failures = 10**6
    with capture_logs() as logs:
        await rig.transport.start(rig.inbox.accept)
        await rig.say("important")
        await until(lambda: len(rig.inbox.calls) > 3)
    assert len(rig.api.pending()) == 1
    reasons = {entry["reason"] for entry in logs if entry["event"] == "telegram.not_taken"}
    assert reasons == {"disk full"}  # and not what follows, which may quote the message
    rig.inbox.failures = 0
    await heard(rig)
    await until(lambda: not rig.api.pending())


async def test_p41_a_press_in_a_group_is_by_who_pressed(rig: TelegramRig) -> None:
    """Not by whom the card was for."""
    rig.api.supergroup(GROUP, "Kitchen", [42, 43])
    await rig.transport.start(rig.inbox.accept)
    keys = ((Key("Yes", "token"),),)
    ref = await rig.transport.send(Place("telegram", str(GROUP)), Part("Ada, sure?", keys=keys), "1-0")
    rig.api.press(GROUP, int(ref), "Yes", user=43)
    (incoming,) = await heard(rig)
    assert incoming.sender.identity == "telegram:43"
    assert incoming.press == Press("token", ref)
    assert incoming.chat_kind == "user"


# --- starting ------------------------------------------------------------------------------------------


async def test_starting_waits_for_nobody(rig: TelegramRig) -> None:
    """Not even for Telegram: polling and getMe go side by side, and a message waits for both."""
    held = rig.api.fail("hold", "getMe")
    await rig.say("early")
    async with asyncio.timeout(10):
        await rig.transport.start(rig.inbox.accept)
    await until(lambda: rig.api.world.feed.polls)
    assert rig.inbox.calls == []
    held.release()
    assert [incoming.text for incoming in await heard(rig)] == ["early"]


async def test_a_start_without_a_network_is_made_up_for(rig: TelegramRig) -> None:
    rig.api.fail("reset", times=4)
    await rig.say("hello")
    await rig.transport.start(rig.inbox.accept)
    await heard(rig)
    assert rig.transport.profile is not None
    assert rig.transport.profile.username == "merk_test_bot"
    assert rig.transport.profile.has_topics


async def test_a_mention_is_understood_after_a_restart_before_telegram_answers(rig: TelegramRig) -> None:
    """A stored update says who the bot was: the rows of a crash are parsed before anything is connected."""
    rig.api.supergroup(GROUP, "Kitchen", [42])
    await rig.transport.start(rig.inbox.accept)
    rig.api.say(GROUP, "@merk_test_bot what is new?")
    await heard(rig)
    row = rig.inbox.rows[0]
    await rig.die()
    incoming = rig.transport.parse(row)
    assert incoming is not None
    assert (incoming.text, incoming.is_addressed) == ("what is new?", True)


async def test_commands_are_offered_in_every_language_and_only_when_they_changed(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await until(lambda: len(rig.api.calls("setMyCommands")) == 6)
    for language in ("", "de", "ru"):
        for scope in (PRIVATE_SCOPE, GROUP_SCOPE):
            assert rig.api.commands(scope=scope, language=language) == ["help", "memory"]
    await rig.die()
    asked = len(rig.api.calls("getMyCommands"))
    await rig.transport.start(rig.inbox.accept)
    await until(lambda: len(rig.api.calls("getMyCommands")) == asked + 6)
    await rig.transport.stop_receiving()
    assert len(rig.api.calls("setMyCommands")) == 6
    assert rig.api.violations == []


async def test_commands_that_cannot_be_set_stop_nothing(rig: TelegramRig) -> None:
    rig.api.fail("500", "setMyCommands", times=None)
    await rig.transport.start(rig.inbox.accept)
    await rig.say("hello")
    await heard(rig)


async def test_a_token_of_the_wrong_shape_is_refused_at_once(rig: TelegramRig) -> None:
    with pytest.raises(ValueError, match=r"telegram\.token"):
        rig.connect(token="nonsense")


async def test_a_wrong_token_is_a_problem(rig: TelegramRig) -> None:
    wrong = rig.connect(token="4242:wrong")
    await wrong.start(rig.inbox.accept)
    await until(lambda: wrong.problem)
    assert "telegram.token" in (wrong.problem or "")


async def test_p24_the_token_is_never_logged(rig: TelegramRig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with capture_logs() as logs:
        rig.api.fail("500", "getUpdates")
        await rig.transport.start(rig.inbox.accept)
        await rig.say("hello")
        await heard(rig)
    secret = rig.api.token.partition(":")[2]
    assert secret not in caplog.text + json.dumps(logs, default=str)


# --- webhook -------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
async def hook(rig: TelegramRig) -> WebhookSettings:
    """The rig's transport listens to a webhook."""
    port = free_port()
    settings = WebhookSettings(f"http://127.0.0.1:{port}/telegram", "s3cret_-", "127.0.0.1", port)
    await rig.connect(webhook=settings).start(rig.inbox.accept)
    await until(lambda: rig.api.calls("setWebhook"))
    return settings


async def test_a_webhook_delivers(rig: TelegramRig, hook: WebhookSettings) -> None:
    await rig.say("one")
    await rig.say("two")
    assert [incoming.text for incoming in await heard(rig, 2)] == ["one", "two"]
    await until(lambda: not rig.api.pending())
    (call,) = rig.api.calls("setWebhook")
    assert call.params["url"] == hook.url
    assert "message_reaction" in call.params["allowed_updates"]
    assert "drop_pending_updates" not in call.params
    assert rig.api.calls("getUpdates") == []
    assert rig.transport.last_contact() is not None


@pytest.mark.parametrize("headers", [{}, {SECRET_HEADER: "wrong"}, {SECRET_HEADER: ""}, {SECRET_HEADER: "s3cret_-x"}])
async def test_who_does_not_know_the_secret_is_refused(
    rig: TelegramRig, hook: WebhookSettings, headers: dict[str, str]
) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(hook.url, json={"update_id": 1, "message": {}}, headers=headers)
    assert answer.status_code == 403
    assert rig.inbox.calls == []


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"update_id": "1"}', b"\xff"])
async def test_what_is_no_update_is_refused(rig: TelegramRig, hook: WebhookSettings, body: bytes) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(hook.url, content=body, headers={SECRET_HEADER: hook.secret})
        assert answer.status_code == 400
        assert (await client.get(hook.url)).status_code == 405
    assert rig.inbox.calls == []


async def test_p31_a_webhook_call_is_answered_only_after_the_commit(rig: TelegramRig, hook: WebhookSettings) -> None:
    """Telegram repeats what was not answered with 200."""
    assert hook
    rig.inbox.failures = 2
    await rig.say("important")
    assert [incoming.text for incoming in await heard(rig)] == ["important"]
    assert len(rig.inbox.calls) == 3
    rig.inbox.gate.clear()
    await rig.say("more")
    await until(lambda: len(rig.inbox.calls) == 4)
    assert len(rig.api.pending()) == 1
    rig.inbox.gate.set()
    await until(lambda: not rig.api.pending())


async def test_a_webhook_call_that_still_waits_at_the_end_is_turned_away(
    rig: TelegramRig, hook: WebhookSettings
) -> None:
    assert hook
    await rig.transport.close()
    held = rig.api.fail("hold", "getMe")
    transport = rig.connect(webhook=hook)
    await transport.start(rig.inbox.accept)
    await rig.say("too late")
    await asyncio.sleep(0.1)
    await transport.close()
    held.release()
    assert rig.inbox.calls == []
    assert len(rig.api.pending()) == 1


async def test_a_webhook_that_was_taken_down_is_put_up_again(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch, hook: WebhookSettings
) -> None:
    assert hook
    await until(lambda: rig.transport.last_contact() is not None)
    await rig.transport.close()
    monkeypatch.setattr(webhook, "CHECK_SECONDS", 0.05)
    transport = rig.connect(webhook=hook)
    await transport.start(rig.inbox.accept)
    await until(lambda: len(rig.api.calls("setWebhook")) == 2)
    async with httpx.AsyncClient() as client:
        await client.post(f"{rig.api.base_url}/bot{rig.api.token}/deleteWebhook")
    with capture_logs() as logs:
        await until(lambda: len(rig.api.calls("setWebhook")) == 3)
    assert any("another program" in entry.get("problem", "") for entry in logs)
    await rig.say("hello")
    await heard(rig)
    await until(lambda: transport.problem is None)


async def test_a_webhook_that_telegram_cannot_reach_is_a_problem(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "CHECK_SECONDS", 0.5)
    port = free_port()
    elsewhere = WebhookSettings(f"http://127.0.0.1:{free_port()}/x", "s", "127.0.0.1", port)
    transport = rig.connect(webhook=elsewhere)
    await transport.start(rig.inbox.accept)
    await until(lambda: rig.api.calls("setWebhook"))
    await rig.say("hello")
    await until(lambda: transport.problem)
    assert "webhook_url" in (transport.problem or "")


async def test_an_address_that_is_taken_is_said_at_the_start(rig: TelegramRig, hook: WebhookSettings) -> None:
    second = rig.connect(webhook=hook)
    with pytest.raises(OSError, match="in use"):
        await second.start(rig.inbox.accept)
