"""Sending, streaming, editing and deleting text."""

import time

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.entities import Formatted, format_text
from tests.fakes.bot_api.errors import NOT_MODIFIED, Json, refuse
from tests.fakes.bot_api.limits import BUTTONS, CAPTION_CHARACTERS, CHAT_ACTIONS, DELETABLE_SECONDS, MESSAGE_CHARACTERS
from tests.fakes.bot_api.placing import find_reply, find_thread, place
from tests.fakes.bot_api.world import Action, Chat, Draft, Message, World

_BUTTON_DECORATION = {"text", "icon_custom_emoji_id", "style"}


def message_text(params: Json) -> Json:
    """`text` and `entities` as stored; raises for a text that is empty or too long after parsing."""
    if not params.get("text"):
        raise refuse("message text is empty")
    formatted = format_text(params["text"], params.get("parse_mode"), params.get("entities"))
    if not formatted.text:
        raise refuse("text must be non-empty")
    if len(formatted.text) > MESSAGE_CHARACTERS:
        raise refuse("message is too long")
    return {"text": formatted.text, "entities": formatted.entities or None}


def caption_text(params: Json) -> Json:
    formatted = format_text(params.get("caption", ""), params.get("parse_mode"), params.get("caption_entities"))
    if len(formatted.text) > CAPTION_CHARACTERS:
        raise refuse("message caption is too long")
    return {"caption": formatted.text or None, "caption_entities": formatted.entities or None}


def inline_keyboard(params: Json) -> Json | None:
    """The inline keyboard as shown, without empty rows; other kinds of markup are not part of a message."""
    markup: Json = params.get("reply_markup") or {}
    rows: list[list[Json]] = [row for row in markup.get("inline_keyboard", []) if row]
    for button in (button for row in rows for button in row):
        if not button["text"]:
            raise refuse("inline keyboard button text must be non-empty")
        actions = [name for name in button if name not in _BUTTON_DECORATION]
        if not actions:
            raise refuse("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
        if len(actions) > 1:
            raise refuse(f"emulator: a button must have exactly one action, this has {', '.join(actions)}")
    if sum(map(len, rows)) > BUTTONS:
        raise refuse("reply markup is too long")
    return {"inline_keyboard": rows} if rows else None


def deliver(emulator: Emulator, params: Json, content: Json) -> Message:
    """Put a message of the bot into its chat: keyboard, chat, reply and thread are checked in this order."""
    world = emulator.world
    markup = inline_keyboard(params)
    chat = world.open_chat(params["chat_id"])
    reply, quote = find_reply(world, chat, params.get("reply_parameters"))
    thread = find_thread(world, chat, params.get("message_thread_id"))
    placed = place(world, chat, thread, reply, quote)
    protected = {"has_protected_content": True} if params.get("protect_content") else {}
    message = world.new_message(chat, world.bot_user, {**placed, **content, **protected, "reply_markup": markup})
    for draft in world.drafts:
        if (draft.chat_id, draft.thread) == (chat.id, message.thread):
            draft.ended = True
    return message


def send_message(emulator: Emulator, params: Json) -> Json:
    content = message_text(params)
    content["link_preview_options"] = params.get("link_preview_options")
    return deliver(emulator, params, content).raw


def send_draft(emulator: Emulator, params: Json) -> bool:
    """Show a preview for 30 s; empty text is the "Thinking..." placeholder, blank text is refused."""
    formatted = Formatted("", [])
    if params.get("text"):
        formatted = format_text(params["text"], params.get("parse_mode"), params.get("entities"))
        if not formatted.text:
            raise refuse("text must be non-empty")
        if len(formatted.text) > MESSAGE_CHARACTERS:
            raise refuse("message is too long")
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    if chat.type != "private":
        raise refuse("method is available only for private chats")
    if params["draft_id"] == 0:
        raise refuse("draft identifier must be non-zero")
    thread = find_thread(world, chat, params.get("message_thread_id"))
    for draft in world.drafts:
        if (draft.chat_id, draft.thread, draft.draft_id) == (chat.id, thread, params["draft_id"]):
            draft.ended = True
    world.drafts.append(Draft(time.time(), chat.id, thread, params["draft_id"], formatted.text, formatted.entities))
    return True


def send_action(emulator: Emulator, params: Json) -> bool:
    if params["action"].lower() not in CHAT_ACTIONS:
        raise refuse("wrong parameter action in request")
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    thread = find_thread(world, chat, params.get("message_thread_id"), takes_general=True)
    world.actions.append(Action(time.time(), chat.id, thread, params["action"].lower()))
    return True


def edit_text(emulator: Emulator, params: Json) -> Json:
    content = message_text(params)
    message = _editable(emulator.world, params)
    if "text" not in message.raw:
        raise refuse("there is no text in the message to edit")
    return _change(message, {**content, "reply_markup": inline_keyboard(params)})


def edit_caption(emulator: Emulator, params: Json) -> Json:
    content = caption_text(params)
    message = _editable(emulator.world, params)
    if "text" in message.raw:
        raise refuse("there is no caption in the message to edit")
    return _change(message, {**content, "reply_markup": inline_keyboard(params)})


def edit_markup(emulator: Emulator, params: Json) -> Json:
    message = _editable(emulator.world, params)
    return _change(message, {"reply_markup": inline_keyboard(params)})


def _editable(world: World, params: Json) -> Message:
    if "chat_id" not in params or "message_id" not in params:
        raise refuse("message identifier is not specified")
    chat = world.open_chat(params["chat_id"])
    message = world.message(chat, params["message_id"], "message to edit")
    if not message.by_bot or message.is_service or "forward_origin" in message.raw:
        raise refuse("message can't be edited")
    return message


def _change(message: Message, content: Json) -> Json:
    if all(message.raw.get(name) == value for name, value in content.items()):
        raise refuse(NOT_MODIFIED)
    for name, value in content.items():
        if value is None:
            message.raw.pop(name, None)
        else:
            message.raw[name] = value
    message.raw["edit_date"] = int(time.time())
    message.keep_version()
    return message.raw


def delete_message(emulator: Emulator, params: Json) -> bool:
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    message = world.message(chat, params["message_id"], "message to delete")
    if not _is_deletable(world, chat, message):
        raise _undeletable(chat)
    world.remove(message, "bot")
    return True


def delete_messages(emulator: Emulator, params: Json) -> bool:
    """Delete what is there. In a private chat or basic group one undeletable message fails the whole call and
    nothing is deleted; in a supergroup such messages are skipped and the answer is True all the same.
    """
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    found = [world.messages.get((chat.id, message_id)) for message_id in dict.fromkeys(params["message_ids"])]
    known = [message for message in found if message is not None]
    deletable = [message for message in known if _is_deletable(world, chat, message)]
    if len(deletable) < len(known) and chat.type != "supergroup":
        raise _undeletable(chat)
    for message in deletable:
        world.remove(message, "bot")
    return True


def _undeletable(chat: Chat) -> Exception:
    everyone = "" if chat.type == "supergroup" else " for everyone"
    return refuse(f"message can't be deleted{everyone}")


def _is_deletable(world: World, chat: Chat, message: Message) -> bool:
    if time.time() - message.raw["date"] > DELETABLE_SECONDS:
        return False
    if chat.type == "supergroup" and "forum_topic_created" in message.raw:
        return False
    return message.by_bot or world.bot_has(chat, "can_delete_messages")
