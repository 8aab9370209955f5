"""Chats and their members."""

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.errors import Json, refuse
from tests.fakes.bot_api.world import Chat, World

_ADMINISTRATOR_FLAGS = (
    "can_be_edited",
    "is_anonymous",
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
)
_GIFTS = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")


def chat_member(world: World, chat: Chat, user_id: int) -> Json:
    """The API's ChatMember; raises `user not found` for somebody nobody knows."""
    user = world.bot_user if user_id == world.bot["id"] else world.users.get(user_id)
    if user is None:
        raise refuse("user not found")
    status = chat.members.get(user_id, "left")
    member: Json = {"status": status, "user": user}
    if status == "creator":
        member["is_anonymous"] = False
    elif status == "administrator":
        rights = chat.bot_rights if user_id == world.bot["id"] else set(_ADMINISTRATOR_FLAGS[2:])
        member |= {flag: flag in rights for flag in _ADMINISTRATOR_FLAGS}
        member |= dict.fromkeys(rights, True)
        member["can_manage_chat"] = True
    elif status == "kicked":
        member["until_date"] = 0
    return member


def describe_chat(emulator: Emulator, params: Json) -> Json:
    world = emulator.world
    chat = world.open_chat(params["chat_id"], reads=True)
    described = chat.public()
    if chat.pinned:
        described["pinned_message"] = world.messages[chat.id, chat.pinned[-1]].raw
    gifts = dict.fromkeys(_GIFTS, False)
    return {**described, "accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts}


def describe_member(emulator: Emulator, params: Json) -> Json:
    return chat_member(emulator.world, emulator.world.open_chat(params["chat_id"], reads=True), params["user_id"])


def count_members(emulator: Emulator, params: Json) -> int:
    chat = emulator.world.open_chat(params["chat_id"], reads=True)
    return sum(status not in ("left", "kicked") for status in chat.members.values())


def list_administrators(emulator: Emulator, params: Json) -> list[Json]:
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    if chat.type == "private":
        raise refuse("there are no administrators in the private chat")
    ranked = [user_id for user_id, status in chat.members.items() if status in ("creator", "administrator")]
    members = [chat_member(world, chat, user_id) for user_id in ranked]
    own = world.bot["id"]
    return [m for m in members if params.get("return_bots") or not m["user"]["is_bot"] or m["user"]["id"] == own]


def leave(emulator: Emulator, params: Json) -> bool:
    chat = emulator.world.open_chat(params["chat_id"])
    if chat.type == "private":
        raise refuse("chat_id of a private chat can't be left")
    chat.members[emulator.world.bot["id"]] = "left"
    return True


def pin(emulator: Emulator, params: Json) -> bool:
    world = emulator.world
    chat = _pinnable(world, params)
    message = world.message(chat, params["message_id"], "message to pin")
    chat.pinned = [*(other for other in chat.pinned if other != message.id), message.id]
    return True


def unpin(emulator: Emulator, params: Json) -> bool:
    chat = _pinnable(emulator.world, params)
    target = params.get("message_id", chat.pinned[-1] if chat.pinned else None)
    if target not in chat.pinned:
        raise refuse("message to unpin not found")
    chat.pinned.remove(target)
    return True


def unpin_all(emulator: Emulator, params: Json) -> bool:
    _pinnable(emulator.world, params).pinned.clear()
    return True


def _pinnable(world: World, params: Json) -> Chat:
    chat = world.open_chat(params["chat_id"])
    if not world.bot_has(chat, "can_pin_messages"):
        raise refuse("not enough rights to manage pinned messages in the chat")
    return chat


def list_photos(emulator: Emulator, params: Json) -> Json:
    """Nobody here has a profile photo."""
    if params["user_id"] not in emulator.world.users:
        raise refuse("user not found")
    return {"total_count": 0, "photos": []}
