"""From an update of the Bot API to what a person did. Pure; None for what asks for nothing.

Rule: who acted is `from`, never the author of the message acted upon (pitfall P41); a thread is one only where
`is_topic_message` says so, in private chats too (pitfall P38).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from telegram import (
    CallbackQuery,
    Chat,
    MaybeInaccessibleMessage,
    Message,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
    Update,
    User,
)

from bot.transports.base import Hold
from bot.transports.telegram.wording import Me, Wording, read, units
from handlers.types import Attachment, Incoming, Place, Press, Sender
from memory.types import Origin

NAME = "telegram"
STAMP = "merk"
"""The key under which a stored update says who the bot was and when it came: a later parse must not depend on now."""

GENERAL_TOPIC = 1
NEARLY_FULL = 3900
"""UTF-16 units of a message that may be the first piece of a split paste: clients cut at 4,096 or before."""
PASTE_SECONDS = 1.2
ALBUM_SECONDS = 1.0

_Origin = MessageOriginUser | MessageOriginHiddenUser | MessageOriginChat | MessageOriginChannel


@dataclass(frozen=True, slots=True)
class TelegramIncoming(Incoming):
    """What this transport needs to know again when it gathers pieces or answers a press."""

    album: str = ""
    units: int = 0
    """Length as it was sent, in UTF-16 code units."""
    query: str = ""
    """The id under which a press is acknowledged."""


_WORDS = frozenset({"text", "entities", "caption", "caption_entities", "reply_markup", "reply_to_message", "quote"})


def stamp(update: Mapping[str, Any], username: str, now: datetime) -> dict[str, Any]:
    """Return the update as it is stored: of the message that a pressed button hangs on, no words."""
    query = update.get("callback_query")
    if query and "message" in query:
        bare = {key: value for key, value in query["message"].items() if key not in _WORDS}
        update = {**update, "callback_query": {**query, "message": bare}}
    return {**update, STAMP: {"username": username, "at": now.timestamp()}}


def parse(payload: dict[str, Any], inbox_id: int, bot_id: int) -> TelegramIncoming | None:
    """Understand a stamped update. Raises for a shape that the Bot API does not describe."""
    username, at = payload[STAMP]["username"], payload[STAMP]["at"]
    update = Update.de_json({key: value for key, value in payload.items() if key != STAMP}, None)
    if update.callback_query:
        return _press(update.callback_query, inbox_id, datetime.fromtimestamp(at, UTC))
    message = update.message or update.edited_message
    if message is None:
        return None
    found = _message(message, inbox_id, Me(bot_id, username))
    if update.edited_message and found is not None:
        # without a date, or without words, nothing that was said has changed (pitfall P43)
        return replace(found, is_edit=True) if message.edit_date and found.text else None
    return found


def moved(payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """The old and the new id of a group that became a supergroup, from either chat's service message."""
    message: Mapping[str, Any] = payload.get("message") or {}
    chat = str(message.get("chat", {}).get("id", ""))
    if new := message.get("migrate_to_chat_id"):
        return chat, str(new)
    if old := message.get("migrate_from_chat_id"):
        return str(old), chat
    return None


def hold(incoming: Incoming) -> Hold | None:
    """Whether more may follow: items of an album, pieces of a split paste (pitfall P39)."""
    if not isinstance(incoming, TelegramIncoming) or incoming.press or incoming.is_edit:
        return None
    place, who = incoming.place.lane, incoming.sender.identity
    if incoming.album:
        return Hold(f"album:{place}:{who}:{incoming.album}", ALBUM_SECONDS)
    # words of another origin must not slip in under the first piece's, and a quote must not be lost
    key = f"paste:{place}:{who}:{incoming.origin}:{incoming.quote_author if incoming.origin != Origin.TYPED else ''}"
    if incoming.units >= NEARLY_FULL:
        return Hold(key, PASTE_SECONDS)
    is_rest = bool(incoming.text) and not (incoming.attachments or incoming.quote or incoming.text.startswith("/"))
    return Hold(key, 0.0) if is_rest else None


# --- messages ----------------------------------------------------------------------------------------


def _message(message: Message, inbox_id: int, me: Me) -> TelegramIncoming | None:
    sender = message.from_user
    if sender is None or sender.is_bot or message.sender_chat or message.chat.type == Chat.CHANNEL:
        return None  # a channel, an anonymous administrator or another bot: nobody we could know
    in_group = message.chat.type != Chat.PRIVATE
    attachments = _attachments(message)
    raw = message.text or message.caption or ""
    if not raw and not attachments:
        return None  # a service message
    wording = read(raw, message.entities or message.caption_entities, me, in_group=in_group)
    if wording.is_for_another:
        return None
    origin, author = _forwarded(message)
    quote, quoted = _quoted(message)
    replied = _replied(message)
    return TelegramIncoming(
        inbox_ids=(inbox_id,),
        place=_place(message),
        sender=_sender(sender),
        sent_at=message.edit_date or message.date,
        chat_kind="user" if in_group else "ai",
        chat_title=message.chat.title or "",
        text=wording.text,
        origin=origin,
        quote=quote,
        quote_author=author or quoted,
        attachments=attachments,
        ref=str(message.message_id),
        reply_to=str(replied.message_id) if replied else "",
        is_addressed=not in_group or _is_addressed(message, wording, me),
        album=message.media_group_id or "",
        units=units(raw),
    )


def _place(message: MaybeInaccessibleMessage) -> Place:
    thread = ""
    if isinstance(message, Message) and message.is_topic_message and message.message_thread_id:
        is_general = message.chat.type != Chat.PRIVATE and message.message_thread_id == GENERAL_TOPIC
        thread = "" if is_general else str(message.message_thread_id)
    return Place(NAME, str(message.chat.id), thread)


def _sender(user: User) -> Sender:
    return Sender(f"{NAME}:{user.id}", user.full_name, user.language_code or "")


def _is_addressed(message: Message, wording: Wording, me: Me) -> bool:
    reply = _replied(message)
    is_reply_to_me = reply is not None and reply.from_user is not None and reply.from_user.id == me.id
    return wording.is_mention or wording.is_command or is_reply_to_me


def _replied(message: Message) -> Message | None:
    """The message replied to; not the opening of the topic, to which everything in it replies."""
    reply = message.reply_to_message
    return None if reply is None or reply.forum_topic_created else reply


def _quoted(message: Message) -> tuple[str, str]:
    """The words replied to, and whose they are."""
    reply, external = _replied(message), message.external_reply
    words = message.quote.text if message.quote else (reply.text or reply.caption or "") if reply else ""
    if reply:
        author = reply.sender_chat.title or "" if reply.sender_chat else ""
        return words, author or (reply.from_user.full_name if reply.from_user else "")
    return words, _author(external.origin) if external else ""


def _forwarded(message: Message) -> tuple[Origin, str]:
    if message.forward_origin:
        return Origin.FORWARDED, _author(message.forward_origin)
    if message.via_bot:  # written by another bot, sent under the person's name
        return Origin.FORWARDED, message.via_bot.full_name
    return Origin.TYPED, ""


def _author(origin: object) -> str:
    match origin:
        case MessageOriginUser():
            return origin.sender_user.full_name
        case MessageOriginHiddenUser():
            return origin.sender_user_name
        case MessageOriginChat():
            return origin.sender_chat.title or ""
        case MessageOriginChannel():
            return origin.chat.title or ""
        case _:
            return ""


def _attachments(message: Message) -> tuple[Attachment, ...]:
    """What the message carries beside its words; the library's own order would call a venue a location."""
    found = next((field for field in _CONTENT if message[field]), None)
    if found is None:
        return ()
    kind, name = _CONTENT[found]
    return (Attachment(kind, name(message[found])),)


def _no_name(_content: Any) -> str:
    return ""


def _file_name(file: Any) -> str:
    return file.file_name or ""


def _contact_name(contact: Any) -> str:
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    return f"{name}, {contact.phone_number}"


_CONTENT: dict[str, tuple[str, Callable[[Any], str]]] = {
    "photo": ("photo", _no_name),
    "live_photo": ("photo", _no_name),
    "voice": ("voice", _no_name),
    "audio": ("audio", lambda audio: audio.title or audio.file_name or ""),
    "animation": ("video", _file_name),  # before document, which an animation also is
    "video": ("video", _file_name),
    "video_note": ("video", _no_name),
    "document": ("document", _file_name),
    "sticker": ("sticker", lambda sticker: sticker.emoji or ""),
    "venue": ("location", lambda venue: f"{venue.title}, {venue.address}"),
    "location": ("location", lambda location: f"{location.latitude:.5f}, {location.longitude:.5f}"),
    "contact": ("contact", _contact_name),
    "poll": ("other", lambda poll: poll.question),
    "dice": ("other", lambda dice: dice.emoji),
    **dict.fromkeys(("game", "story", "paid_media", "checklist", "invoice", "giveaway"), ("other", _no_name)),
}


# --- presses -----------------------------------------------------------------------------------------


def _press(query: CallbackQuery, inbox_id: int, at: datetime) -> TelegramIncoming | None:
    message = query.message
    if message is None or not query.data:
        return None  # of an inline message or of a game, which we never send
    card = str(message.message_id)
    return TelegramIncoming(
        inbox_ids=(inbox_id,),
        place=_place(message),
        sender=_sender(query.from_user),
        sent_at=at,
        chat_kind="ai" if message.chat.type == Chat.PRIVATE else "user",
        chat_title=message.chat.title or "",
        ref=card,
        press=Press(query.data, card),
        query=query.id,
    )
