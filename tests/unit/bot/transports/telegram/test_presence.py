"""Who is in a group, as Telegram's updates tell it."""

from typing import Any

import pytest

from bot.transports.base import Presence
from bot.transports.telegram.polling import ALLOWED_UPDATES
from bot.transports.telegram.presence import presence

ME = 999
GROUP = {"id": -100, "type": "supergroup", "title": "Kitchen"}
ADA = {"id": 42, "is_bot": False, "first_name": "Ada"}
BOB = {"id": 77, "is_bot": False, "first_name": "Bob"}
BOT = {"id": 5, "is_bot": True, "first_name": "Other"}


def changed(status: str, who: dict[str, Any] = BOB, chat: dict[str, Any] = GROUP, **more: Any) -> dict[str, Any]:
    member = {"user": who, "status": status, **more}
    return {"chat_member": {"chat": chat, "from": ADA, "date": 1, "new_chat_member": member}}


def told(chat: dict[str, Any] = GROUP, **what: Any) -> dict[str, Any]:
    return {"message": {"message_id": 1, "date": 1, "chat": chat, "from": ADA, **what}}


def came(*who: str) -> Presence:
    return Presence("-100", came=frozenset(who), title="Kitchen")


def left(*who: str) -> Presence:
    return Presence("-100", left=frozenset(who), title="Kitchen")


@pytest.mark.parametrize("status", ["creator", "administrator", "member"])
def test_who_becomes_a_member_has_come(status: str) -> None:
    assert presence(changed(status), ME) == came("telegram:77")


@pytest.mark.parametrize("status", ["left", "kicked", "something new"])
def test_who_is_no_member_any_more_has_left(status: str) -> None:
    assert presence(changed(status), ME) == left("telegram:77")


def test_who_is_restricted_is_there_only_where_it_says_so() -> None:
    assert presence(changed("restricted", is_member=True), ME) == came("telegram:77")
    assert presence(changed("restricted", is_member=False), ME) == left("telegram:77")
    assert presence(changed("restricted"), ME) == left("telegram:77")


def test_service_messages_tell_of_newcomers_and_of_who_left() -> None:
    assert presence(told(new_chat_members=[ADA, BOB, BOT]), ME) == came("telegram:42", "telegram:77")
    assert presence(told(left_chat_member=BOB), ME) == left("telegram:77")


@pytest.mark.parametrize("status", ["left", "kicked", "restricted"])
def test_where_merk_is_removed_nobody_is_known_to_be_there(status: str) -> None:
    member = {"user": {"id": ME, "is_bot": True}, "status": status}
    update = {"my_chat_member": {"chat": GROUP, "from": ADA, "date": 1, "new_chat_member": member}}
    assert presence(update, ME) == Presence("-100", is_over=True)
    assert presence(told(left_chat_member={"id": ME, "is_bot": True}), ME) == Presence("-100", is_over=True)


@pytest.mark.parametrize(
    "update",
    [
        told(text="hello"),
        told(new_chat_members=[BOT]),
        told(left_chat_member=BOT),
        told({"id": 42, "type": "private"}, left_chat_member=BOB),
        changed("kicked", BOT),
        changed("left", chat={"id": -9, "type": "channel"}),
        {"my_chat_member": {"chat": {"id": 42, "type": "private"}, "new_chat_member": {"status": "kicked"}}},
        {"my_chat_member": {"chat": GROUP, "new_chat_member": {"status": "administrator"}}},
        {"callback_query": {}},
        {},
    ],
)
def test_everything_else_tells_nothing_of_who_is_there(update: dict[str, Any]) -> None:
    assert presence(update, ME) is None


def test_what_tells_of_members_is_asked_for() -> None:
    assert {"message", "my_chat_member", "chat_member"} <= set(ALLOWED_UPDATES)
