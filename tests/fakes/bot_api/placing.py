"""Where a message goes: topics, reply threads, replies and quotes, with the traps of the real thing.

One rule: people's messages and the bot's are placed by the same code.
"""

from .entities import quote_position
from .errors import Json, refuse
from .limits import GENERAL_TOPIC
from .world import Chat, Message, World

_LEFT_OUT_OF_A_REPLY = ("reply_to_message", "external_reply", "quote")


def find_thread(world: World, chat: Chat, thread: int | None, *, takes_general: bool = False) -> int | None:
    """Check a `message_thread_id` and return the one that counts, None for the main lane.

    Raises `message thread not found` for the General topic (1), an unknown, deleted or foreign id, and where topics
    are off; `TOPIC_CLOSED` for a closed one. A topic deleted with `slips` falls silently into the main lane.
    """
    if not thread or thread in chat.slipping:
        return None
    if chat.topics_on:
        if takes_general and thread == GENERAL_TOPIC and chat.is_forum:
            return None
        topic = chat.topics.get(thread)
        if topic is None:
            raise refuse("message thread not found")
        if topic.is_closed:
            raise refuse("TOPIC_CLOSED")
        return thread
    root = world.messages.get((chat.id, thread))
    if chat.type == "supergroup" and root is not None and root.raw.get("message_thread_id", thread) == thread:
        return thread
    raise refuse("message thread not found")


def place(world: World, chat: Chat, thread: int | None, reply: Message | None, quote: Json | None = None) -> Json:
    """The fields that say where a message stands. `thread` has been through `find_thread`.

    - A topic message carries its thread id and `is_topic_message`, and replies to the topic's service message where
      it replies to nothing else.
    - Without a thread, a reply follows the topic of the message replied to.
    - A reply in a plain supergroup carries the id of its thread's root, and no `is_topic_message`.
    - A reply to another topic or chat becomes an `external_reply`.
    """
    if thread is None and reply is not None and reply.chat_id == chat.id and chat.topics_on:
        thread = reply.thread
    placed: Json = {}
    if chat.topics_on and thread is not None:
        placed = {"message_thread_id": thread, "is_topic_message": True}
    elif chat.type == "supergroup" and not chat.topics_on:
        root = reply.raw.get("message_thread_id", reply.id) if reply and reply.chat_id == chat.id else None
        placed = {"message_thread_id": thread or root} if thread or root else {}
    if reply is None:
        opening = world.messages.get((chat.id, thread)) if thread is not None and chat.topics_on else None
        return placed | ({"reply_to_message": _quoted(opening)} if opening else {})
    if reply.chat_id == chat.id and (reply.thread == thread or not chat.topics_on):
        placed["reply_to_message"] = _quoted(reply)
    else:
        placed["external_reply"] = {"origin": origin_of(reply), "chat": reply.raw["chat"], "message_id": reply.id}
    return placed | ({"quote": quote} if quote else {})


def find_reply(world: World, chat: Chat, reply: Json | None) -> tuple[Message | None, Json | None]:
    """The message and the quote that `reply_parameters` name; raises where either is not there."""
    if not reply:
        return None, None
    other = world.chat(reply["chat_id"]) if "chat_id" in reply else chat
    message = world.messages.get((other.id, reply["message_id"]))
    if message is None:
        if reply.get("allow_sending_without_reply"):
            return None, None
        raise refuse("message to be replied not found")
    return message, quote_of(message, reply.get("quote"), reply.get("quote_position", 0))


def quote_of(message: Message, quote: str | None, position: int = 0) -> Json | None:
    """The API's TextQuote; raises unless the quote is an exact part of the message."""
    if not quote:
        return None
    found = quote_position(message.text, quote, position)
    if found is None:
        raise refuse("QUOTE_TEXT_INVALID")
    return {"text": quote, "position": found, "is_manual": True}


def origin_of(message: Message) -> Json:
    """The API's MessageOrigin of a message that is forwarded or quoted elsewhere."""
    known: Json | None = message.raw.get("forward_origin")
    return known or {"type": "user", "date": message.raw["date"], "sender_user": message.raw["from"]}


def _quoted(message: Message) -> Json:
    return {name: value for name, value in message.raw.items() if name not in _LEFT_OUT_OF_A_REPLY}
