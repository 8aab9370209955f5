"""Making and removing topics, for the bot's methods and for people alike.

One rule: a topic's id is the id of the service message that opened it.
"""

from .errors import Json
from .limits import TOPIC_COLOURS
from .world import Chat, Message, Topic, World


def open_topic(
    world: World, chat: Chat, user: Json, name: str, *, icon_color: int | None = None, is_name_implicit: bool = False
) -> Message:
    """Make a topic and return its opening service message."""
    topic = Topic(0, name, icon_color or min(TOPIC_COLOURS), is_name_implicit=is_name_implicit)
    opening = world.new_message(chat, user, {"forum_topic_created": forum_topic(topic), "is_topic_message": True})
    topic.id = opening.raw["message_thread_id"] = opening.id
    chat.topics[topic.id] = topic
    return opening


def forum_topic(topic: Topic) -> Json:
    """The fields that ForumTopic and ForumTopicCreated share."""
    described: Json = {"name": topic.name, "icon_color": topic.icon_color}
    if topic.icon_custom_emoji_id:
        described["icon_custom_emoji_id"] = topic.icon_custom_emoji_id
    if topic.is_name_implicit:
        described["is_name_implicit"] = True
    return described


def remove_topic(world: World, chat: Chat, topic: Topic, by: str) -> None:
    """Delete a topic and all that was said in it."""
    del chat.topics[topic.id]
    inside = [
        message for message in world.messages.values() if (message.chat_id, message.thread) == (chat.id, topic.id)
    ]
    for message in inside:
        world.remove(message, by)
