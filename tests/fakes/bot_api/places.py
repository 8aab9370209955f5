"""The test's hand on chats: make them, change who is in them, and what becomes of their topics.

One rule: ids are plain numbers, as on the wire; a private chat has the id of its user.
"""

import time
from collections.abc import Mapping, Sequence

from .emulator import Emulator
from .errors import Json
from .methods.chats import chat_member
from .topics import open_topic, remove_topic
from .world import ADMIN_RIGHTS, Chat, Message, Topic

_SUPERGROUP_BASE = -1_000_000_000_000


class Places:
    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.world = emulator.world

    def add_user(
        self, user_id: int, first_name: str, *, username: str | None = None, language: str = "en", is_bot: bool = False
    ) -> int:
        """Make a person, or another bot, known; again with the same id changes them."""
        self.world.users[user_id] = {
            "id": user_id,
            "is_bot": is_bot,
            "first_name": first_name,
            **({"username": username} if username else {}),
            "language_code": language,
        }
        return user_id

    def private_chat(
        self,
        user_id: int,
        first_name: str = "Ada",
        *,
        username: str | None = None,
        language: str = "en",
        topics: bool = False,
    ) -> int:
        """Open a private chat with a person; `topics` means they switched topics on."""
        self.add_user(user_id, first_name, username=username, language=language)
        names = {"first_name": first_name, **({"username": username} if username else {})}
        members = {user_id: "member", self.world.bot["id"]: "member"}
        self.world.chats[user_id] = Chat(user_id, "private", names, members, topics_on=topics)
        return user_id

    def group(
        self, chat_id: int, title: str, members: Sequence[int] | Mapping[int, str] = (), *, bot: str = "member"
    ) -> int:
        """Make a basic group. `members`: ids, or ids with a status (`creator`, `administrator`, `member`)."""
        return self._add_group(Chat(chat_id, "group", {"title": title}), members, bot)

    def supergroup(
        self,
        chat_id: int,
        title: str,
        members: Sequence[int] | Mapping[int, str] = (),
        *,
        bot: str = "member",
        username: str | None = None,
    ) -> int:
        names = {"title": title, **({"username": username} if username else {})}
        return self._add_group(Chat(chat_id, "supergroup", names), members, bot)

    def forum(
        self,
        chat_id: int,
        title: str,
        members: Sequence[int] | Mapping[int, str] = (),
        *,
        bot: str = "administrator",
    ) -> int:
        """Make a supergroup with topics, where the bot has an administrator's rights unless told otherwise."""
        return self._add_group(Chat(chat_id, "supergroup", {"title": title}, topics_on=True), members, bot)

    def _add_group(self, chat: Chat, members: Sequence[int] | Mapping[int, str], bot: str) -> int:
        if chat.id >= 0:
            raise ValueError(f"a group's id is negative, got {chat.id}")
        chat.members = dict(members) if isinstance(members, Mapping) else dict.fromkeys(members, "member")
        for user_id in chat.members:
            if user_id not in self.world.users:
                self.add_user(user_id, f"User {user_id}")
        chat.members[self.world.bot["id"]] = bot
        chat.bot_rights = set(ADMIN_RIGHTS) if bot == "administrator" else set()
        self.world.chats[chat.id] = chat
        return chat.id

    def topic(self, chat: int, name: str, *, user: int | None = None, implicit: bool = False) -> int:
        """Let a person open a topic; the bot hears of it. `implicit`: they gave no name, the bot may rename it."""
        place = self._topical(chat)
        opening = open_topic(self.world, place, self._person(place, user), name, is_name_implicit=implicit)
        self._emulator.updates.push("message", opening.raw)
        return opening.id

    def rename_topic(self, chat: int, thread: int, name: str, *, user: int | None = None) -> None:
        place, topic = self._topic(chat, thread)
        topic.name, topic.is_name_implicit = name, False
        self._note_topic(place, topic, user, {"forum_topic_edited": {"name": name}})

    def close_topic(self, chat: int, thread: int, *, user: int | None = None) -> None:
        place, topic = self._topic(chat, thread)
        topic.is_closed = True
        self._note_topic(place, topic, user, {"forum_topic_closed": {}})

    def reopen_topic(self, chat: int, thread: int, *, user: int | None = None) -> None:
        place, topic = self._topic(chat, thread)
        topic.is_closed = False
        self._note_topic(place, topic, user, {"forum_topic_reopened": {}})

    def delete_topic(self, chat: int, thread: int, *, slips: bool = False) -> None:
        """Delete a topic with its messages; the bot is not told.

        `slips`: later sends to it fall silently into the main chat, as private chats did until June 2026.
        """
        place, topic = self._topic(chat, thread)
        remove_topic(self.world, place, topic, "user")
        if slips:
            place.slipping.add(thread)

    def switch_topics(self, chat: int, *, on: bool) -> None:
        """Let the user of a private chat switch topics; while they are off, every thread id is refused."""
        self._chat(chat).topics_on = on

    def block(self, chat: int, *, on: bool = True) -> None:
        """Let the user of a private chat block the bot, or come back."""
        self._chat(chat).is_blocked = on
        self._set_bot_status(chat, "kicked" if on else "member", by=chat)

    def set_bot_status(self, chat: int, status: str, rights: Sequence[str] = (), *, by: int | None = None) -> None:
        """Promote, demote, remove (`left`, `kicked`) or add the bot in a group. Rights: see ADMIN_RIGHTS."""
        self._chat(chat).bot_rights = set(rights)
        self._set_bot_status(chat, status, by=by)

    def _set_bot_status(self, chat: int, status: str, *, by: int | None) -> None:
        place, bot = self._chat(chat), self.world.bot["id"]
        user = self._person(place, by)
        old = chat_member(self.world, place, bot)
        place.members[bot] = status
        new = chat_member(self.world, place, bot)
        change = {"chat": place.public(), "from": user, "date": int(time.time())}
        self._emulator.updates.push("my_chat_member", {**change, "old_chat_member": old, "new_chat_member": new})

    def join(self, chat: int, user: int) -> Message:
        """Let a person join a group."""
        place, person = self._chat(chat), self._known(user)
        place.members[user] = "member"
        return self._announce(place, person, {"new_chat_members": [person]})

    def part(self, chat: int, user: int) -> Message:
        """Let a person leave a group."""
        place, person = self._chat(chat), self._known(user)
        place.members[user] = "left"
        return self._announce(place, person, {"left_chat_member": person})

    def migrate(self, chat: int) -> int:
        """Turn a basic group into a supergroup; return its new id. Sends to the old one name the new one."""
        old = self._chat(chat)
        if old.type != "group":
            raise ValueError(f"chat {chat} is a {old.type}: only a basic group can migrate")
        new_id = _SUPERGROUP_BASE + chat
        new = Chat(new_id, "supergroup", dict(old.names), dict(old.members), set(old.bot_rights))
        self.world.chats[new_id] = new
        person = self._person(old, None)
        self._announce(old, person, {"migrate_to_chat_id": new_id})
        self._announce(new, person, {"migrate_from_chat_id": chat})
        old.migrated_to = new_id
        return new_id

    def _chat(self, chat: int) -> Chat:
        if chat not in self.world.chats:
            raise ValueError(f"there is no chat {chat}: make it first; there are {sorted(self.world.chats)}")
        return self.world.chats[chat]

    def _message(self, chat: int, message_id: int) -> Message:
        message = self.world.messages.get((self._chat(chat).id, message_id))
        if message is None:
            raise ValueError(f"chat {chat} shows no message {message_id}")
        return message

    def _known(self, user: int) -> Json:
        if user not in self.world.users:
            raise ValueError(f"nobody knows user {user}: add_user() first")
        return self.world.users[user]

    def _announce(self, chat: Chat, user: Json, service: Json) -> Message:
        message = self.world.new_message(chat, user, service)
        if chat.members[self.world.bot["id"]] not in ("left", "kicked"):
            self._emulator.updates.push("message", message.raw)
        return message

    def _note_topic(self, chat: Chat, topic: Topic, user: int | None, service: Json) -> None:
        where = {"message_thread_id": topic.id, "is_topic_message": True}
        self._announce(chat, self._person(chat, user), {**where, **service})

    def _topical(self, chat: int) -> Chat:
        place = self._chat(chat)
        if not place.topics_on:
            raise ValueError(f"chat {chat} has no topics: make it with forum() or private_chat(…, topics=True)")
        return place

    def _topic(self, chat: int, thread: int) -> tuple[Chat, Topic]:
        place = self._topical(chat)
        if thread not in place.topics:
            raise ValueError(f"chat {chat} has no topic {thread}; it has {sorted(place.topics)}")
        return place, place.topics[thread]

    def _person(self, chat: Chat, user: int | None) -> Json:
        """The named person, else the chat's first human."""
        if user is not None:
            return self._known(user)
        people = (self.world.users[member] for member in chat.members if member in self.world.users)
        found = next((person for person in people if not person["is_bot"]), None)
        if found is None:
            raise ValueError(f"nobody is in chat {chat.id}: name a user")
        return found
