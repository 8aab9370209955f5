"""What comes in, by polling or by webhook, is committed before it is acknowledged; and the bot learns who it is.

Rule: starting waits for nothing. Polling, getMe and the list of commands go side by side, each until it works.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import count
from typing import Any

import structlog
from telegram import Bot, BotCommand, BotCommandScopeAllGroupChats, BotCommandScopeAllPrivateChats
from telegram.error import TelegramError
from telegram.request import BaseRequest

from bot.transports.base import Accept
from bot.transports.telegram.contact import Contact, persevere
from bot.transports.telegram.errors import pause
from bot.transports.telegram.parse import stamp
from bot.transports.telegram.polling import Poller
from bot.transports.telegram.webhook import WebhookServer, WebhookSettings, keep_webhook
from handlers.locales import LANGUAGES
from memory.ports import Clock

log = structlog.get_logger(__name__)

Commands = Callable[[str], list[tuple[str, str]]]
"""The commands to offer in a language: name and description."""

DESCRIPTION_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Profile:
    """What getMe says of the bot."""

    username: str
    has_topics: bool
    """Topics in private chats are switched on (in BotFather's mini app)."""
    lets_users_open_topics: bool
    reads_groups: bool
    """False: in groups it hears commands, mentions and replies only."""


class Receiver:
    """One bot's incoming side."""

    def __init__(
        self,
        bot: Bot,
        request: BaseRequest,
        url: str,
        clock: Clock,
        commands: Commands,
        webhook: WebhookSettings | None,
    ) -> None:
        """`request` and `url` are those of getUpdates; unused where there is a webhook."""
        self._bot = bot
        self._request = request
        self._url = url
        self._clock = clock
        self._commands = commands
        self._webhook = webhook
        self.contact = Contact()
        self.profile: Profile | None = None
        self._met = asyncio.Event()
        self._gate = asyncio.Lock()
        self._is_stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._server: WebhookServer | None = None

    def start(self, accept: Accept) -> None:
        """Raises OSError where the webhook's address is taken."""
        self._accept = accept
        if self._webhook:
            self._server = WebhookServer(self._webhook, self.contact, self._take_once)
            self._server.listen()
            receive = keep_webhook(self._bot, self._webhook, self.contact, self._clock)
        else:
            receive = Poller(self._request, self._url, self.contact, self._take, self._bot.delete_webhook).run()
        self._tasks = [asyncio.create_task(_watch(work)) for work in (receive, self._introduce())]

    async def stop(self) -> None:
        async with self._gate:  # a commit under way comes to its end
            self._is_stopped = True
            self._met.set()  # whoever still waits for it is turned away
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server:
            await self._server.close()

    # --- taking in ---

    async def _take(self, update: dict[str, Any]) -> None:
        """Hold the poll up until the update is committed: what is not taken in is not acknowledged."""
        for attempt in count():
            try:
                await self._take_once(update)
            except Exception as error:  # noqa: BLE001 - whatever a store raises; it is logged where it is raised
                await asyncio.sleep(pause(error, attempt))
            else:
                return

    async def _take_once(self, update: dict[str, Any]) -> None:
        await self._met.wait()
        async with self._gate:
            if self._is_stopped or self.profile is None:
                raise RuntimeError("stopping")
            payload = stamp(update, self.profile.username, self._clock.now())
            try:
                await self._accept(str(update["update_id"]), payload)
            except Exception as error:
                reason = str(error).partition("\n")[0]  # what follows may quote the message, as a traceback may
                log.error("telegram.not_taken", update=update["update_id"], error=type(error).__name__, reason=reason)  # noqa: TRY400 - see above
                raise

    # --- who am I ---

    async def _introduce(self) -> None:
        await persevere(self._meet, self.contact)
        await asyncio.gather(*(self._offer_commands(language) for language in LANGUAGES))

    async def _meet(self) -> None:
        me = await self._bot.get_me()
        self.profile = Profile(
            username=me.username or "",
            has_topics=bool(me.has_topics_enabled),
            lets_users_open_topics=bool(me.allows_users_to_create_topics),
            reads_groups=bool(me.can_read_all_group_messages),
        )
        self._met.set()
        log.info("telegram.met", bot=me.username, topics=me.has_topics_enabled)

    async def _offer_commands(self, language: str) -> None:
        """The list behind the slash; the first language is also everybody else's."""
        code = None if language == LANGUAGES[0] else language
        offered = tuple(BotCommand(name, text[:DESCRIPTION_CHARACTERS]) for name, text in self._commands(language))
        for scope in (BotCommandScopeAllPrivateChats(), BotCommandScopeAllGroupChats()):
            try:
                if await self._bot.get_my_commands(scope, code) != offered:
                    await self._bot.set_my_commands(offered, scope, code)
            except TelegramError as error:
                log.warning("telegram.commands_not_set", language=language, error=error.message)


async def _watch(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("telegram.receiving_failed")  # last_contact grows old, which is what health looks at
