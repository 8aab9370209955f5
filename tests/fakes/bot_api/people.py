"""What people do in chats: write, edit, send files, press buttons, react.

One rule: a person can do only what Telegram's clients let them do; anything else is a ValueError for the test's author.
"""

import base64
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .entities import find_entities, utf16_length
from .errors import Json
from .files import content_of, keep_file
from .limits import CAPTION_CHARACTERS, MESSAGE_CHARACTERS
from .places import Places
from .placing import find_thread, place, quote_of
from .spec import Upload
from .world import Chat, Message, Press

_TINY_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
_SAMPLES = {
    "photo": ("", "image/png", _TINY_PNG),
    "document": ("notes.txt", "text/plain", b"A few notes.\n"),
    "voice": ("", "audio/ogg", b"OggS\x00\x02"),
    "audio": ("song.mp3", "audio/mpeg", b"ID3\x04\x00"),
    "video": ("clip.mp4", "video/mp4", b"\x00\x00\x00\x18ftypmp42"),
    "sticker": ("", "image/webp", b"RIFF\x00\x00\x00\x00WEBP"),
}


@dataclass(frozen=True)
class _Manner:
    """Who writes a message, and where it stands."""

    user: int | None
    thread: int | None
    reply_to: int | None
    quote: str | None
    forward_from: int | str | None


class People(Places):
    def say(
        self,
        chat: int,
        text: str,
        *,
        user: int | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        quote: str | None = None,
        forward_from: int | str | None = None,
    ) -> Message:
        """Write a message, as the chat's first human unless `user` is named.

        `forward_from`: the id of the person it was forwarded from, or the name of one who hides their account.
        """
        if utf16_length(text) > MESSAGE_CHARACTERS:
            raise ValueError(f"{utf16_length(text)} units do not fit one message: use paste()")
        content: Json = {"text": text.strip(), "entities": find_entities(text.strip()) or None}
        if not content["text"]:
            raise ValueError("nobody can send an empty message")
        return self._post(chat, content, _Manner(user, thread, reply_to, quote, forward_from))

    def paste(self, chat: int, text: str, *, user: int | None = None, thread: int | None = None) -> list[Message]:
        """Write a long text the way clients do: several full messages in a row."""
        parts = [text[start : start + MESSAGE_CHARACTERS] for start in range(0, len(text), MESSAGE_CHARACTERS)]
        return [self.say(chat, part, user=user, thread=thread) for part in parts]

    def send_media(
        self,
        chat: int,
        kind: str,
        caption: str = "",
        *,
        data: bytes | str | None = None,
        name: str | None = None,
        mime: str | None = None,
        user: int | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        forward_from: int | str | None = None,
        album: str | None = None,
    ) -> Message:
        """Send a `document`, `photo`, `voice`, `audio`, `video` or `sticker`; without data, a small sample."""
        if kind not in _SAMPLES:
            raise ValueError(f"nobody can send a {kind!r}: choose one of {', '.join(_SAMPLES)}")
        if len(caption) > CAPTION_CHARACTERS:
            raise ValueError(f"a caption has at most {CAPTION_CHARACTERS} characters")
        sample_name, sample_mime, sample = _SAMPLES[kind]
        content = data.encode() if isinstance(data, str) else data
        upload = Upload(name or sample_name, mime or sample_mime, sample if content is None else content)
        fields = {
            **content_of(keep_file(self.world, kind, upload)),
            "caption": caption or None,
            "caption_entities": find_entities(caption) or None,
            "media_group_id": album,
        }
        return self._post(chat, fields, _Manner(user, thread, reply_to, None, forward_from))

    def album(
        self,
        chat: int,
        kinds: Sequence[str] = ("photo", "photo"),
        caption: str = "",
        *,
        user: int | None = None,
        thread: int | None = None,
    ) -> list[Message]:
        """Send 2 to 10 files as one album: single messages that share a media_group_id, the first with the caption."""
        if not 2 <= len(kinds) <= 10:
            raise ValueError("an album has 2 to 10 items")
        group = str(10**16 + self.world.feed.next_id)
        return [
            self.send_media(chat, kind, caption if index == 0 else "", user=user, thread=thread, album=group)
            for index, kind in enumerate(kinds)
        ]

    def _post(self, chat: int, content: Json, manner: _Manner) -> Message:
        where = self._chat(chat)
        if where.is_blocked:
            raise ValueError(f"the user of chat {chat} has blocked the bot: block({chat}, on=False) first")
        sender = self._person(where, manner.user)
        reply = self._message(chat, manner.reply_to) if manner.reply_to is not None else None
        quote = quote_of(reply, manner.quote) if reply is not None else None
        placed = place(self.world, where, find_thread(self.world, where, manner.thread), reply, quote)
        source = manner.forward_from
        forward = {} if source is None else {"forward_origin": self._origin(source)}
        return self._announce(where, sender, {**placed, **content, **forward})

    def _origin(self, source: int | str) -> Json:
        date = int(time.time()) - 3600
        if isinstance(source, str):
            return {"type": "hidden_user", "date": date, "sender_user_name": source}
        if source not in self.world.users:
            self.add_user(source, f"User {source}")
        return {"type": "user", "date": date, "sender_user": self.world.users[source]}

    def edit(self, chat: int, message_id: int, text: str | None = None) -> Message:
        """Edit a person's message; without a text only its metadata changes, which bots are told about as well."""
        message = self._message(chat, message_id)
        if message.by_bot:
            raise ValueError("people cannot edit the bot's messages")
        if text is not None:
            field = "text" if "text" in message.raw else "caption"
            entities = "entities" if field == "text" else "caption_entities"
            message.raw |= {field: text, entities: find_entities(text)}
        message.raw["edit_date"] = int(time.time())
        message.keep_version()
        self._emulator.updates.push("edited_message", message.raw)
        return message

    def erase(self, chat: int, message_id: int) -> None:
        """Let a person delete a message; bots are not told."""
        self.world.remove(self._message(chat, message_id), "user")

    def press(self, chat: int, message_id: int, button: str, *, user: int | None = None, stale: bool = False) -> Press:
        """Press a button, found by its callback data, its label, or a regular expression on the label.

        `stale`: send `button` as data although the message does not show it (any more), as an old client can.
        """
        where = self._chat(chat)
        message = self.world.messages.get((chat, message_id))
        data = button if stale else _find_button(self._message(chat, message_id), button)
        person = self._person(where, user)
        press = Press(str(len(self.world.presses) + 7000), chat, message_id, person["id"], data, time.time())
        self.world.presses[press.id] = press
        query = {"id": press.id, "from": person, "chat_instance": f"instance-{chat}", "data": data}
        self._emulator.updates.push("callback_query", {**query, "message": _of_callback(where, message, message_id)})
        return press

    def react(self, chat: int, message_id: int, emoji: str | None, *, user: int | None = None) -> None:
        """Set or, with None, take back a reaction. In groups only a bot that is an administrator hears of it."""
        where, message = self._chat(chat), self._message(chat, message_id)
        person = self._person(where, user)
        old = message.reactions.get(person["id"], [])
        new: list[Json] = [{"type": "emoji", "emoji": emoji}] if emoji else []
        message.reactions[person["id"]] = new
        if where.type == "private" or where.members[self.world.bot["id"]] == "administrator":
            change = {"chat": where.public(), "message_id": message_id, "user": person, "date": int(time.time())}
            self._emulator.updates.push("message_reaction", {**change, "old_reaction": old, "new_reaction": new})

    def age(self, chat: int, message_id: int, seconds: float) -> None:
        """Make a message older than it is."""
        self._message(chat, message_id).raw["date"] -= int(seconds)

    def age_press(self, press_id: str, seconds: float) -> None:
        """Make a press older than it is, so that its answer comes too late."""
        self.world.presses[press_id].at -= seconds

    def age_drafts(self, seconds: float) -> None:
        """Make all drafts older than they are."""
        for draft in self.world.drafts:
            draft.at -= seconds


def _find_button(message: Message, wanted: str) -> str:
    pressable = [button for row in message.buttons for button in row if "callback_data" in button]
    exact = [button for button in pressable if wanted in (button["callback_data"], button["text"])]
    for button in exact or pressable:
        if exact or re.search(wanted, button["text"], re.IGNORECASE):
            return button["callback_data"]
    raise ValueError(f"message {message.id} has no button {wanted!r}; it has {message.labels}")


def _of_callback(chat: Chat, message: Message | None, message_id: int) -> Json:
    """The message in a callback: its chat lacks `is_forum`, and a deleted one is inaccessible."""
    described = {name: value for name, value in chat.public().items() if name != "is_forum"}
    if message is None:
        return {"chat": described, "message_id": message_id, "date": 0}
    return {**message.raw, "chat": described}
