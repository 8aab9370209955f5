"""Telegram as a transport: what the port promises, in calls of the Bot API through python-telegram-bot.

Rule: a call goes out once; whether it is repeated is decided by who made it. `SendError` is all that writes raise.
"""

import logging
import re
from collections.abc import Awaitable
from time import monotonic
from typing import TypeVar

import httpx
import structlog
from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
)
from telegram.constants import ChatAction
from telegram.error import RetryAfter, TelegramError
from telegram.request import HTTPXRequest

from bot.transports.base import Accept, Fault, Hold, Outgoing, Pace, Part, Presence, Preview, SendError
from bot.transports.telegram import parse as parsing
from bot.transports.telegram import render as rendering
from bot.transports.telegram.errors import as_send_error, is_nobody, is_unchanged
from bot.transports.telegram.presence import is_present, presence
from bot.transports.telegram.receiving import Commands, Profile, Receiver
from bot.transports.telegram.webhook import WebhookSettings
from bot.transports.telegram.wording import units
from handlers.types import Incoming, Place
from memory.ports import Clock
from memory.storage.inbox import InboxRow

log = structlog.get_logger(__name__)

T = TypeVar("T")

SERVER = "https://api.telegram.org"
TOKEN = re.compile(r"^(\d+):[A-Za-z0-9_-]+$")

READ_SECONDS = 30.0
"""Generous: a send whose answer is not waited for is one that nobody knows about."""
PASSING_SECONDS = 5.0
"""For what must not hold up anything: drafts, typing, reactions, answers to presses."""

PRIVATE_PACE = Pace(seconds=1.0, burst=3, preview_seconds=0.7)
GROUP_PACE = Pace(seconds=3.0, burst=4, preview_seconds=3.5)
"""Telegram publishes one message a second in a chat, and twenty a minute in a group."""

CAPTION_UNITS = 1024
TOAST_CHARACTERS = 200
TITLE_CHARACTERS = 128
DELETED_AT_ONCE = 100
DRAFT_IDS = 2**31 - 1
WAITING = "👀"
NOTHING_TO_SEE = "…"

_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class TelegramTransport:
    """One bot. Receives by long polling, or by webhook where one is given."""

    name = parsing.NAME
    resends_safely = False

    def __init__(
        self,
        token: str,
        clock: Clock,
        commands: Commands,
        *,
        base_url: str | None = None,
        webhook: WebhookSettings | None = None,
    ) -> None:
        """`base_url` is the root of a server of one's own. Raises ValueError for a token of the wrong shape."""
        found = TOKEN.match(token)
        if not found:
            raise ValueError("telegram.token must look like 123456:ABC-DEF; @BotFather shows it")
        self._bot_id = int(found[1])
        self._clock = clock
        server = (base_url or SERVER).rstrip("/")
        shared = {"verify": httpx.create_ssl_context()}  # takes a twentieth of a second: once
        self._requests = (
            HTTPXRequest(1, connect_timeout=5.0, pool_timeout=5.0, httpx_kwargs=shared),
            HTTPXRequest(64, READ_SECONDS, 20.0, 5.0, 5.0, media_write_timeout=60.0, httpx_kwargs=shared),
        )
        poll, other = self._requests
        self._bot = Bot(
            token,
            base_url=f"{server}/bot",
            base_file_url=f"{server}/file/bot",
            get_updates_request=poll,
            request=other,
        )
        poll_url = f"{server}/bot{token}/getUpdates"
        self._receiver = Receiver(self._bot, poll, poll_url, clock, commands, webhook)
        self._quiet_until: dict[str, float] = {}
        for client in ("httpx", "httpcore"):  # they log addresses, and the address holds the token
            logging.getLogger(client).setLevel(logging.WARNING)
        # prints a traceback and the page for each 502 of a proxy; the error that follows says the same
        logging.getLogger("telegram.request.BaseRequest").setLevel(logging.CRITICAL)

    async def start(self, accept: Accept) -> None:
        """Begin at once and without waiting for Telegram. Raises OSError where the webhook's address is taken."""
        self._receiver.start(accept)

    async def stop_receiving(self) -> None:
        await self._receiver.stop()

    async def close(self) -> None:
        await self._receiver.stop()
        for request in self._requests:
            await request.shutdown()

    @property
    def problem(self) -> str | None:
        """What keeps messages from coming in, in words for the operator."""
        return self._receiver.contact.problem

    @property
    def profile(self) -> Profile | None:
        """Who the bot is; None until Telegram has said it."""
        return self._receiver.profile

    def last_contact(self) -> float | None:
        return self._receiver.contact.age()

    # --- understanding ---

    def parse(self, row: InboxRow) -> Incoming | None:
        payload = row.payload
        if parsing.STAMP not in payload:
            payload = parsing.stamp(payload, self.profile.username if self.profile else "", self._clock.now())
        try:
            return parsing.parse(payload, row.id, self._bot_id)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("telegram.not_understood", inbox=row.id, error=repr(error))
            return None

    def moved(self, row: InboxRow) -> tuple[str, str] | None:
        """The old and the new id of the chat, where an update says that it has a new one."""
        try:
            return parsing.moved(row.payload)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # `parse` says that it is not understood

    def members(self, row: InboxRow) -> Presence | None:
        """Who came to a group and who left it."""
        try:
            return presence(row.payload, self._bot_id)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # `parse` says that it is not understood

    async def is_member(self, chat: str, identity: str) -> bool:
        """Whether somebody is in a group. Raises `SendError`, also where Telegram tells it to administrators alone."""
        user_id = int(identity.removeprefix(f"{parsing.NAME}:"))
        call = self._bot.get_chat_member(int(chat), user_id, read_timeout=PASSING_SECONDS)
        try:
            member = await self._ask(Place(self.name, chat), call)
        except SendError as error:
            if is_nobody(error):
                return False
            raise
        return is_present(member.to_dict())

    def hold(self, incoming: Incoming) -> Hold | None:
        return parsing.hold(incoming)

    def pace(self, place: Place) -> Pace:
        return PRIVATE_PACE if _is_private(place) else GROUP_PACE

    def preview_style(self, place: Place) -> Preview:
        return Preview.DRAFT if _is_private(place) else Preview.EDIT

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        """Answers and formatted cards are Markdown, all else is literal: it quotes people.

        Buttons hang on the last part. A file has the text as its caption where that fits.
        """
        if outgoing.kind == "text" or outgoing.formatted:
            parts = [Part(part.text, part) for part in rendering.render(outgoing.text)]
        else:
            parts = [Part(text) for text in rendering.literal(outgoing.text)]
        if outgoing.file:
            fits = not outgoing.replaces and len(parts) == 1 and units(parts[0].plain) <= CAPTION_UNITS
            caption = parts.pop() if fits else Part("")
            parts.append(Part(caption.plain, caption.body, file=outgoing.file))
        if not parts:
            parts = [Part(NOTHING_TO_SEE)]
        last = parts[-1]
        return (*parts[:-1], Part(last.plain, last.body, outgoing.keys, last.file))

    def render_preview(self, text: str) -> Part | None:
        part = rendering.render_preview(text)
        return Part(part.text, part) if part else None

    # --- writing ---

    async def send(self, place: Place, part: Part, key: str) -> str:  # noqa: ARG002 - Telegram knows no such key
        if part.file:
            name, content = part.file
            call = self._bot.send_document(
                chat_id=int(place.chat),
                message_thread_id=_thread(place),
                document=content.encode(),
                filename=name,
                caption=part.plain or None,
                caption_entities=_entities(part),
                reply_markup=_keyboard(part),
            )
        else:
            call = self._bot.send_message(
                chat_id=int(place.chat),
                message_thread_id=_thread(place),
                text=part.plain,
                entities=_entities(part),
                reply_markup=_keyboard(part),
                link_preview_options=_NO_PREVIEW,
            )
        message = await self._ask(place, call)
        ref = str(message.message_id)
        if place.thread and message.message_thread_id is None and _is_private(place):
            await self._take_back(place, ref)
        return ref

    async def _take_back(self, place: Place, ref: str) -> None:
        """A deleted private topic's message may land in the main chat without an error, and must not stay (P37)."""
        log.warning("telegram.slipped_out_of_thread", thread=place.thread)
        if await self.delete(place, (ref,)) == ():
            raise SendError(Fault.NO_THREAD, "the message landed in the main chat, and was taken back")

    async def edit(self, place: Place, ref: str, part: Part) -> None:
        call = self._bot.edit_message_text(
            chat_id=int(place.chat),
            message_id=int(ref),
            text=part.plain,
            entities=_entities(part),
            reply_markup=_keyboard(part),
            link_preview_options=_NO_PREVIEW,
        )
        try:
            await self._ask(place, call)
        except SendError as error:
            if not is_unchanged(error):
                raise

    async def delete(self, place: Place, refs: tuple[str, ...]) -> tuple[str, ...]:
        # in a supergroup a batch passes over what may not be deleted without a word
        size = 1 if place.chat.startswith("-100") else DELETED_AT_ONCE
        left: tuple[str, ...] = ()
        for start in range(0, len(refs), size):
            left += await self._delete(place, refs[start : start + size])
        return left

    async def _delete(self, place: Place, refs: tuple[str, ...]) -> tuple[str, ...]:
        """Delete a batch. One message that may not be deleted fails all of it, and is found by halving."""
        ids = [int(ref) for ref in refs]
        try:
            if len(ids) == 1:
                await self._ask(place, self._bot.delete_message(int(place.chat), ids[0]))
            else:
                await self._ask(place, self._bot.delete_messages(int(place.chat), ids))
        except SendError as error:
            if error.fault is Fault.NO_MESSAGE:
                return ()
            if error.fault is Fault.UNKNOWN:  # a second time does no harm
                raise SendError(Fault.UNSENT, error.detail) from error
            if error.fault is not Fault.REFUSED:
                raise
            if len(refs) == 1:
                return refs
            half = len(refs) // 2
            return await self._delete(place, refs[:half]) + await self._delete(place, refs[half:])
        return ()

    async def draft(self, place: Place, draft_id: int, part: Part) -> None:
        call = self._bot.send_message_draft(
            chat_id=int(place.chat),
            draft_id=draft_id % DRAFT_IDS + 1,
            text=part.plain,
            message_thread_id=_thread(place),
            entities=_entities(part),
            read_timeout=PASSING_SECONDS,
        )
        await self._ask(place, call)

    async def show_typing(self, place: Place) -> None:
        call = self._bot.send_chat_action(
            int(place.chat), ChatAction.TYPING, message_thread_id=_thread(place), read_timeout=PASSING_SECONDS
        )
        await self._ask(place, call)

    async def open_thread(self, place: Place, title: str, root: str = "") -> str | None:
        del root  # a topic hangs on no message
        name = " ".join(title.split())[:TITLE_CHARACTERS]
        try:
            topic = await self._ask(place, self._bot.create_forum_topic(int(place.chat), name))
        except SendError as error:
            if error.fault in (Fault.REFUSED, Fault.NO_THREAD):
                log.info("telegram.no_thread", reason=error.detail)
                return None
            raise
        return str(topic.message_thread_id)

    async def acknowledge(self, incoming: Incoming, toast: str) -> None:
        if isinstance(incoming, parsing.TelegramIncoming) and incoming.query:
            call = self._bot.answer_callback_query(
                incoming.query, toast[:TOAST_CHARACTERS] or None, read_timeout=PASSING_SECONDS
            )
            await self._try(incoming.place, call)

    async def mark_waiting(self, incoming: Incoming, *, waiting: bool) -> None:
        if not incoming.press and not self._is_quiet(incoming.place):
            call = self._bot.set_message_reaction(
                int(incoming.place.chat),
                int(incoming.ref),
                WAITING if waiting else None,
                read_timeout=PASSING_SECONDS,
            )
            await self._try(incoming.place, call)

    def _is_quiet(self, place: Place) -> bool:
        """True while Telegram has asked for silence in a chat (pitfall P33)."""
        return monotonic() < self._quiet_until.get(place.chat, 0.0)

    async def _try(self, place: Place, call: Awaitable[object]) -> None:
        try:
            await self._ask(place, call)
        except SendError as error:
            log.info("telegram.not_shown", fault=error.fault)

    async def _ask(self, place: Place, call: Awaitable[T]) -> T:
        try:
            return await call
        except TelegramError as error:
            refusal = as_send_error(error)
            if isinstance(error, RetryAfter):
                self._quiet_until[place.chat] = monotonic() + refusal.retry_after
            raise refusal from error


def _is_private(place: Place) -> bool:
    return not place.chat.startswith("-")


def _thread(place: Place) -> int | None:
    """The topic of every call to a place; the General topic has none (pitfall P36)."""
    return int(place.thread) if place.thread else None


def _entities(part: Part) -> list[MessageEntity] | None:
    if not isinstance(part.body, rendering.Part):
        return None
    return [
        MessageEntity(entity.type, entity.offset, entity.length, url=entity.url, language=entity.language)
        for entity in part.body.entities
    ]


def _keyboard(part: Part) -> InlineKeyboardMarkup | None:
    if not part.keys:
        return None
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(key.label, callback_data=key.token) for key in row] for row in part.keys]
    )
