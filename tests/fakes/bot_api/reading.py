"""What a test can see: chats as people see them, and everything the bot asked for.

One rule: reading changes nothing.
"""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from .errors import Json
from .methods.profile import list_commands
from .people import People
from .world import Action, Call, Draft, Message, Press, Violation, ViolationKind

T = TypeVar("T")
Lane = int | Literal["any"] | None
_LOOK_EVERY = 0.01


class Reading(People):
    def messages(self, chat: int | None = None, *, thread: Lane = "any", by_bot: bool | None = None) -> list[Message]:
        """The visible messages, oldest first. `thread` None is the main lane or General; service messages count."""
        return [
            message
            for message in self.world.messages.values()
            if (chat is None or message.chat_id == chat)
            and thread in ("any", message.thread)
            and (by_bot is None or message.by_bot == by_bot)
        ]

    def answers(self, chat: int, *, thread: Lane = "any") -> list[str]:
        """The texts and captions the bot shows in a chat."""
        shown = self.messages(chat, thread=thread, by_bot=True)
        return [message.text for message in shown if not message.is_service]

    def last(self, chat: int, *, thread: Lane = "any", by_bot: bool | None = True) -> Message:
        """The newest message, of the bot unless told otherwise; ValueError if there is none."""
        found = self.messages(chat, thread=thread, by_bot=by_bot)
        if not found:
            raise ValueError(f"there is no such message in chat {chat} (thread {thread})")
        return found[-1]

    def message(self, chat: int, message_id: int) -> Message | None:
        return self.world.messages.get((chat, message_id))

    def deleted(self, chat: int | None = None) -> list[Message]:
        """Deleted messages with their last content; `deleted_by` says whether bot or user."""
        return [message for message in self.world.deleted if chat is None or message.chat_id == chat]

    def drafts(self, chat: int | None = None, *, visible: bool = False) -> list[Draft]:
        """Every draft the bot streamed, in order; `visible` leaves those that a person sees now."""
        wanted = [draft for draft in self.world.drafts if chat is None or draft.chat_id == chat]
        return [draft for draft in wanted if draft.is_visible()] if visible else wanted

    def actions(self, chat: int | None = None) -> list[Action]:
        return [action for action in self.world.actions if chat is None or action.chat_id == chat]

    def presses(self, chat: int | None = None) -> list[Press]:
        """Pressed buttons with the bot's answers to them."""
        return [press for press in self.world.presses.values() if chat is None or press.chat_id == chat]

    def reactions(self, chat: int, message_id: int) -> list[str]:
        """The bot's reactions to a message."""
        message = self._message(chat, message_id)
        return [reaction["emoji"] for reaction in message.reactions.get(self.world.bot["id"], [])]

    def commands(self, *, scope: Json | None = None, language: str = "") -> list[str]:
        """The names of the commands set for a scope and language."""
        wanted: Json = {"language_code": language, **({"scope": scope} if scope else {})}
        return [command["command"] for command in list_commands(self._emulator, wanted)]

    def calls(self, method: str = ".*", *, since: float = 0.0) -> list[Call]:
        """The log of requests whose method matches, any case. Time is `time.time()`."""
        return [
            call for call in self.world.log if call.at >= since and re.fullmatch(method, call.method, re.IGNORECASE)
        ]

    @property
    def violations(self) -> list[Violation]:
        """What the bot must never do, and what the emulator got wrong itself. A test ends with `== []`."""
        return self.world.violations

    def clear_violations(self) -> None:
        """Forget the violations so far: for a test that provokes one on purpose."""
        self.world.violations.clear()

    def violations_of(self, kind: ViolationKind) -> list[Violation]:
        return [violation for violation in self.world.violations if violation.kind == kind]

    def pending(self) -> list[Json]:
        """Updates the bot has not confirmed."""
        return list(self.world.feed.pending)

    def poll_age(self) -> float:
        """Seconds since the bot last called getUpdates; infinite if never."""
        return time.time() - self.world.feed.last_poll if self.world.feed.polls else float("inf")

    async def wait_for(self, predicate: Callable[[], T], timeout: float = 5.0) -> T:
        """Wait until the predicate is true (of something) and return what it gave.

        Raises TimeoutError that tells what the chats show, which calls failed and which violations there are.
        """
        deadline = time.monotonic() + timeout
        while True:
            value = predicate()
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing after {timeout} s. {self._situation()}")
            await asyncio.sleep(_LOOK_EVERY)

    async def wait_text(self, chat: int, pattern: str, *, thread: Lane = "any", timeout: float = 5.0) -> Message:
        """Wait for a message of the bot whose text matches (`re.search`), and return the newest such."""

        def look() -> Message | None:
            shown = self.messages(chat, thread=thread, by_bot=True)
            return next((message for message in reversed(shown) if re.search(pattern, message.text)), None)

        found = await self.wait_for(look, timeout)
        assert found is not None
        return found

    def _situation(self) -> str:
        shown = [f"{m.chat_id}/{m.id} {'bot' if m.by_bot else 'user'}: {m.text[:80]!r}" for m in self.messages()[-8:]]
        failed = [f"{call.method}: {call.description}" for call in self.world.log if call.description][-5:]
        return f"Messages: {shown}. Failed calls: {failed}. Violations: {self.violations[-5:]}"
