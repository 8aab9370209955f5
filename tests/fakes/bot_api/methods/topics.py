"""Forum topics, in supergroups and in private chats."""

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.errors import Json, refuse
from tests.fakes.bot_api.limits import TOPIC_COLOURS
from tests.fakes.bot_api.topics import forum_topic, open_topic, remove_topic
from tests.fakes.bot_api.world import Chat, Topic


def create(emulator: Emulator, params: Json) -> Json:
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    if not chat.topics_on:
        raise refuse("the chat is not a forum")
    if not world.bot_has(chat, "can_manage_topics"):
        raise refuse("not enough rights to create a topic")
    colour = params.get("icon_color")
    if colour is not None and colour not in TOPIC_COLOURS:
        raise refuse("invalid icon color specified")
    opening = open_topic(world, chat, world.bot_user, params["name"], icon_color=colour)
    topic = chat.topics[opening.id]
    topic.icon_custom_emoji_id = params.get("icon_custom_emoji_id")
    return {"message_thread_id": topic.id, **forum_topic(topic)}


def edit(emulator: Emulator, params: Json) -> bool:
    chat, topic = _manage(emulator, params, "edit")
    name = params.get("name") or topic.name
    icon = params.get("icon_custom_emoji_id", topic.icon_custom_emoji_id) or None
    if (name, icon) == (topic.name, topic.icon_custom_emoji_id):
        raise refuse("TOPIC_NOT_MODIFIED")
    topic.name, topic.icon_custom_emoji_id, topic.is_name_implicit = name, icon, False
    _note(emulator, chat, topic, {"forum_topic_edited": {"name": name}})
    return True


def close(emulator: Emulator, params: Json) -> bool:
    return _set_closed(emulator, params, closed=True)


def reopen(emulator: Emulator, params: Json) -> bool:
    return _set_closed(emulator, params, closed=False)


def delete(emulator: Emulator, params: Json) -> bool:
    chat, topic = _manage(emulator, params, "delete", right="can_delete_messages")
    remove_topic(emulator.world, chat, topic, "bot")
    return True


def _set_closed(emulator: Emulator, params: Json, *, closed: bool) -> bool:
    if emulator.world.open_chat(params["chat_id"]).type == "private":
        raise refuse("the chat is not a supergroup forum")
    chat, topic = _manage(emulator, params, "close or open")
    if topic.is_closed == closed:
        raise refuse("TOPIC_NOT_MODIFIED")
    topic.is_closed = closed
    _note(emulator, chat, topic, {"forum_topic_closed" if closed else "forum_topic_reopened": {}})
    return True


def _manage(emulator: Emulator, params: Json, verb: str, *, right: str = "can_manage_topics") -> tuple[Chat, Topic]:
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    if not chat.topics_on:
        raise refuse("the chat is not a forum")
    topic = chat.topics.get(params["message_thread_id"])
    if topic is None:
        raise refuse("message thread not found")
    if not world.bot_has(chat, right):
        raise refuse(f"not enough rights to {verb} the topic")
    return chat, topic


def _note(emulator: Emulator, chat: Chat, topic: Topic, service: Json) -> None:
    world = emulator.world
    where = {"message_thread_id": topic.id, "is_topic_message": True}
    world.new_message(chat, world.bot_user, {**where, **service})
