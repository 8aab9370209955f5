"""Everything the emulator remembers: people, chats, topics, messages, files, and what was seen of the bot.

One rule: the world is plain data with lookups in Telegram's words; it sends nothing and decides nothing else.
"""

import re
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from .entities import utf16_slice
from .errors import BotApiError, Json, refuse
from .limits import CALLBACK_SECONDS, DRAFT_SECONDS

ChatType = Literal["private", "group", "supergroup"]
ViolationKind = Literal["schema", "limit", "flood", "unknown-method", "not-implemented", "answer", "webhook"]
SERVICE_FIELDS = ("forum_topic_", "migrate_", "new_chat_members", "left_chat_member")  # how their names begin
ADMIN_RIGHTS = ("can_manage_topics", "can_delete_messages", "can_pin_messages")
_STATUS_OUT = {"left": "is not a member of", "kicked": "was kicked from"}


@dataclass
class Topic:
    id: int
    name: str
    icon_color: int
    icon_custom_emoji_id: str | None = None
    is_closed: bool = False
    is_name_implicit: bool = False


@dataclass
class Chat:
    """`topics_on` says whether threads exist here: a forum, or a private chat whose user switched topics on."""

    id: int
    type: ChatType
    names: Json  # title, or first_name and username, as in the API's Chat
    members: dict[int, str] = field(default_factory=dict[int, str])  # user id -> ChatMember status
    bot_rights: set[str] = field(default_factory=set[str])
    topics_on: bool = False
    topics: dict[int, Topic] = field(default_factory=dict[int, Topic])
    slipping: set[int] = field(default_factory=set[int])  # deleted topics whose sends fall into the main chat
    pinned: list[int] = field(default_factory=list[int])
    is_blocked: bool = False
    migrated_to: int | None = None
    menu_button: Json | None = None

    @property
    def is_forum(self) -> bool:
        return self.type == "supergroup" and self.topics_on

    def public(self) -> Json:
        """The API's Chat. A private chat with topics carries no `is_forum`."""
        return {"id": self.id, "type": self.type, **self.names, **({"is_forum": True} if self.is_forum else {})}


@dataclass(frozen=True)
class Version:
    """What a message said at one time."""

    at: float
    text: str
    entities: list[Json]
    buttons: list[list[Json]]


@dataclass
class Message:
    """One message as stored: `raw` is the API's Message; text, thread and buttons are read from it."""

    raw: Json
    by_bot: bool
    versions: list[Version] = field(default_factory=list[Version])
    reactions: dict[int, list[Json]] = field(default_factory=dict[int, list[Json]])
    deleted_by: str | None = None

    @property
    def id(self) -> int:
        return self.raw["message_id"]

    @property
    def chat_id(self) -> int:
        return self.raw["chat"]["id"]

    @property
    def text(self) -> str:
        return self.raw.get("text") or self.raw.get("caption") or ""

    @property
    def entities(self) -> list[Json]:
        return self.raw.get("entities") or self.raw.get("caption_entities") or []

    @property
    def thread(self) -> int | None:
        """The topic; None in the main lane. A plain supergroup's reply thread is no topic."""
        return self.raw.get("message_thread_id") if self.raw.get("is_topic_message") else None

    @property
    def buttons(self) -> list[list[Json]]:
        return self.raw.get("reply_markup", {}).get("inline_keyboard", [])

    @property
    def labels(self) -> list[str]:
        return [button["text"] for row in self.buttons for button in row]

    @property
    def is_service(self) -> bool:
        return any(name.startswith(SERVICE_FIELDS) for name in self.raw)

    def marked(self, kind: str) -> list[str]:
        """The stretches of text under an entity of this kind, e.g. `bold`."""
        found = [entity for entity in self.entities if entity["type"] == kind]
        return [utf16_slice(self.text, entity["offset"], entity["length"]) for entity in found]

    def keep_version(self) -> None:
        self.versions.append(Version(time.time(), self.text, self.entities, self.buttons))


@dataclass(frozen=True)
class StoredFile:
    id: str
    kind: str
    name: str
    mime: str
    data: bytes
    path: str


@dataclass
class Draft:
    at: float
    chat_id: int
    thread: int | None
    draft_id: int
    text: str
    entities: list[Json]
    ended: bool = False  # a real message took its place

    def is_visible(self) -> bool:
        return not self.ended and time.time() - self.at < DRAFT_SECONDS


@dataclass(frozen=True)
class Action:
    at: float
    chat_id: int
    thread: int | None
    action: str


@dataclass
class Press:
    """A pressed button and what the bot answered."""

    id: str
    chat_id: int
    message_id: int
    user_id: int
    data: str
    at: float
    answers: list[Json] = field(default_factory=list[Json])

    def is_open(self) -> bool:
        return not self.answers and time.time() - self.at < CALLBACK_SECONDS


@dataclass(frozen=True)
class Call:
    """One request of the bot: parameters as understood, the HTTP status, and the error text or the result."""

    at: float
    method: str
    params: Json
    status: int
    description: str
    result: Any
    fault: str | None


@dataclass(frozen=True)
class Violation:
    at: float
    kind: ViolationKind
    method: str
    detail: str


@dataclass
class Feed:
    """Updates that the bot has not confirmed, and how it wants them."""

    pending: list[Json] = field(default_factory=list[Json])
    next_id: int = 1001
    confirmed: int = 0
    allowed: list[str] | None = None
    webhook: Json = field(default_factory=dict[str, Any])
    given_up: list[Json] = field(default_factory=list[Json])
    polls: int = 0
    last_poll: float = 0.0


@dataclass
class World:
    bot: Json
    users: dict[int, Json] = field(default_factory=dict[int, Json])
    chats: dict[int, Chat] = field(default_factory=dict[int, Chat])
    messages: dict[tuple[int, int], Message] = field(default_factory=dict[tuple[int, int], Message])
    deleted: list[Message] = field(default_factory=list[Message])
    files: dict[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    drafts: list[Draft] = field(default_factory=list[Draft])
    actions: list[Action] = field(default_factory=list[Action])
    presses: dict[str, Press] = field(default_factory=dict[str, Press])
    commands: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    profile: dict[str, str] = field(default_factory=dict[str, str])
    log: list[Call] = field(default_factory=list[Call])
    violations: list[Violation] = field(default_factory=list[Violation])
    feed: Feed = field(default_factory=Feed)
    menu_button: Json = field(default_factory=lambda: {"type": "default"})
    logged_out: bool = False
    last_message_id: int = 100  # private chats and basic groups share one count
    last_ids: dict[int, int] = field(default_factory=dict[int, int])  # each supergroup counts on its own

    @property
    def bot_user(self) -> Json:
        """The bot as it appears in messages: getMe alone says what it can do."""
        return {name: self.bot[name] for name in ("id", "is_bot", "first_name", "username")}

    def chat(self, chat_id: int | str) -> Chat:
        """Find a chat by id or `@username`, whatever the bot may do there; raise `chat not found`."""
        if chat_id == "":
            raise refuse("chat_id is empty")
        if isinstance(chat_id, str) and not re.fullmatch(r"-?\d+", chat_id):
            named = (chat for chat in self.chats.values() if f"@{chat.names.get('username')}" == chat_id)
            found = next(named, None)
        else:
            found = self.chats.get(int(chat_id))
        if found is None:
            raise refuse("chat not found")
        return found

    def open_chat(self, chat_id: int | str, *, reads: bool = False) -> Chat:
        """Find a chat the bot may write to, or read; raise 403 where it is blocked or out, 400 where a group moved."""
        chat = self.chat(chat_id)
        if chat.is_blocked and not reads:
            raise refuse("bot was blocked by the user", 403)
        if chat.migrated_to is not None:
            raise BotApiError(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                {"migrate_to_chat_id": chat.migrated_to},
            )
        status = chat.members.get(self.bot["id"], "left")
        if chat.type != "private" and status in _STATUS_OUT:
            raise refuse(f"bot {_STATUS_OUT[status]} the {chat.type} chat", 403)
        return chat

    def message(self, chat: Chat, message_id: int | None, role: str) -> Message:
        """Find a message; `role` names it in the refusal, e.g. `message to edit`."""
        message = self.messages.get((chat.id, message_id)) if message_id is not None else None
        if message is None:
            raise refuse(f"{role} not found")
        return message

    def new_message(self, chat: Chat, sender: Json, content: Json, *, at: float | None = None) -> Message:
        if chat.type == "supergroup":
            message_id = self.last_ids[chat.id] = self.last_ids.get(chat.id, 1) + 1  # 1 is the group's own beginning
        else:
            message_id = self.last_message_id = self.last_message_id + 1
        raw: Json = {
            "message_id": message_id,
            "from": sender,
            "chat": chat.public(),
            "date": int(time.time() if at is None else at),
            **{name: value for name, value in content.items() if value is not None},
        }
        message = Message(raw, by_bot=sender["id"] == self.bot["id"])
        message.keep_version()
        self.messages[chat.id, message_id] = message
        return message

    def remove(self, message: Message, by: str) -> None:
        del self.messages[message.chat_id, message.id]
        pinned = self.chats[message.chat_id].pinned
        pinned[:] = [other for other in pinned if other != message.id]
        message.deleted_by = by
        self.deleted.append(message)

    def bot_has(self, chat: Chat, right: str) -> bool:
        status = chat.members.get(self.bot["id"])
        return chat.type == "private" or status == "creator" or (status == "administrator" and right in chat.bot_rights)

    def violate(self, kind: ViolationKind, method: str, detail: str) -> None:
        self.violations.append(Violation(time.time(), kind, method, detail))
