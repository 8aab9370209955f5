"""What a homeserver refuses, and the one device that Merk is there."""

from typing import Any

import pytest

from bot.transports.base import Fault, Part, SendError
from bot.transports.matrix.errors import AccountError
from tests.contract.matrix_room import last, listening
from tests.contract.transports import MatrixRig
from tests.fakes.homeserver.server import BOT
from tests.fakes.homeserver.world import RefusalError
from tests.waiting import until

# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "fault", "seconds"),
    [
        (RefusalError(429, "M_LIMIT_EXCEEDED", "Too Many Requests", retry_after_ms=4523), Fault.LATER, 4.523),
        (RefusalError(429, "M_LIMIT_EXCEEDED", "Too Many Requests"), Fault.LATER, 5.0),
        (RefusalError(413, "M_TOO_LARGE", "event too large"), Fault.FORMAT, 0.0),
        (RefusalError(403, "M_FORBIDDEN", f"User {BOT} not in room !r"), Fault.NO_CHAT, 0.0),
        (RefusalError(403, "M_FORBIDDEN", "You don't have permission to post"), Fault.REFUSED, 0.0),
        (RefusalError(502, "M_UNKNOWN", "Bad Gateway"), Fault.UNKNOWN, 0.0),
        (RefusalError(400, "M_UNKNOWN", "?"), Fault.REFUSED, 0.0),
    ],
    ids=str,
)
async def test_p51_what_a_homeserver_refuses_is_told_as_what_to_do(
    rig: MatrixRig, refusal: RefusalError, fault: Fault, seconds: float
) -> None:
    rig.server.faults.append(refusal)
    with pytest.raises(SendError) as caught:
        await rig.transport.send(rig.place, Part("hello"), "1-1-0")
    assert (caught.value.fault, caught.value.retry_after) == (fault, seconds)


async def test_p32_a_send_whose_answer_was_lost_is_there_once_after_a_repeat(rig: MatrixRig) -> None:
    rig.server.lost_answers = 1
    with pytest.raises(SendError) as caught:
        await rig.transport.send(rig.place, Part("hello"), "1-1-0")
    assert caught.value.fault is Fault.UNKNOWN
    await rig.transport.send(rig.place, Part("hello"), "1-1-0")
    assert rig.shown() == ["hello"]


async def test_a_homeserver_that_is_away_has_certainly_got_nothing(rig: MatrixRig) -> None:
    transport = rig.connect(homeserver="http://127.0.0.1:9")
    with pytest.raises(SendError) as caught:
        await transport.send(rig.place, Part("hello"), "1-1-0")
    assert caught.value.fault is Fault.UNSENT
    await transport.start(rig.inbox.accept)
    await until(lambda: transport.problem)
    assert "cannot be reached" in str(transport.problem)


# --- the account -----------------------------------------------------------------------------------------


async def test_p49_a_token_that_expired_is_replaced_and_the_device_stays(
    rig: MatrixRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.transports.matrix.errors.PAUSES", (0.01,))
    await listening(rig)
    (device,) = rig.server.tokens.values()
    rig.server.tokens.clear()
    await rig.say("still there?")
    assert (await last(rig)).text == "still there?"
    await until(lambda: list(rig.server.tokens.values()) == [device])
    await rig.say("and now?")
    assert (await last(rig, 2)).text == "and now?"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"user_id": "@other:example.org"}, "belongs to @merk:example.org"),
        ({"device_id": "ANOTHER"}, "holds the keys of device DEVICE1"),
    ],
)
async def test_p47_a_folder_of_another_account_or_device_is_refused(
    rig: MatrixRig, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(AccountError, match=said):
        rig.connect(**settings)


async def test_p47_a_token_of_another_device_is_refused_aloud(rig: MatrixRig) -> None:
    rig.server.tokens = {"foreign": "ANOTHER"}
    transport = rig.connect(access_token="foreign", password=None)
    await transport.start(rig.inbox.accept)
    await until(lambda: transport.problem)
    assert "belongs to device ANOTHER" in str(transport.problem)
    assert rig.inbox.calls == []


async def test_the_bots_name_is_set_where_it_differs(rig: MatrixRig) -> None:
    rig.connect(display_name="Merk of the house")
    await listening(rig)
    assert rig.server.world.names[BOT] == "Merk of the house"
    puts = [path for method, path, _ in rig.server.requests if method == "PUT" and "displayname" in path]
    await rig.transport.close()
    rig.connect(display_name="Merk of the house")
    await listening(rig)
    assert [path for method, path, _ in rig.server.requests if method == "PUT" and "displayname" in path] == puts
