"""Who is in a group, as updates tell: service messages, and what an administrator is told of its members. Pure.

Rule: whoever may still read is present, whatever their rights; bots are nobody. What is not certain counts as gone.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bot.transports.base import Presence
from bot.transports.telegram.parse import NAME

_GROUPS = frozenset(("group", "supergroup"))
_PRESENT = frozenset(("creator", "administrator", "member"))


def presence(payload: Mapping[str, Any], bot_id: int) -> Presence | None:
    """Who came and went. None where an update says nothing of it, or is of no group."""
    if own := payload.get("my_chat_member"):
        is_over = not is_present(own["new_chat_member"])
        return Presence(str(own["chat"]["id"]), is_over=True) if is_over and _is_group(own["chat"]) else None
    if change := payload.get("chat_member"):
        return _changed(change)
    return _told(payload.get("message") or {}, bot_id)


def _changed(change: Mapping[str, Any]) -> Presence | None:
    chat, new = change["chat"], change["new_chat_member"]
    who = _people([new["user"]])
    if not _is_group(chat) or not who:
        return None
    here = is_present(new)
    return _presence(chat, came=who if here else frozenset(), left=frozenset() if here else who)


def _told(message: Mapping[str, Any], bot_id: int) -> Presence | None:
    """A service message: everybody in the group gets it."""
    chat = message.get("chat", {})
    gone: Any = message.get("left_chat_member")
    came, left = _people(message.get("new_chat_members", ())), _people([gone] if gone else ())
    if not _is_group(chat):
        return None
    if gone and gone["id"] == bot_id:
        return Presence(str(chat["id"]), is_over=True)
    return _presence(chat, came=came, left=left) if came or left else None


def _presence(chat: Mapping[str, Any], came: frozenset[str], left: frozenset[str]) -> Presence:
    return Presence(str(chat["id"]), came, left, title=str(chat.get("title", "")))


def _people(users: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(f"{NAME}:{user['id']}" for user in users if not user.get("is_bot"))


def is_present(member: Mapping[str, Any]) -> bool:
    """Somebody restricted may be in the group or not, and then it says so."""
    return member["status"] in _PRESENT or bool(member["status"] == "restricted" and member.get("is_member"))


def _is_group(chat: Mapping[str, Any]) -> bool:
    return chat.get("type") in _GROUPS
