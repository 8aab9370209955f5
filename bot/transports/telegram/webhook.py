"""Updates by webhook. Rule: 200 is answered only after the commit, and only to who knows the secret."""

import asyncio
import hmac
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from telegram import Bot, WebhookInfo
from telegram.error import TelegramError
from tornado.httpserver import HTTPServer
from tornado.web import Application, HTTPError, RequestHandler

from bot.transports.telegram.contact import Contact, persevere
from bot.transports.telegram.polling import ALLOWED_UPDATES
from memory.ports import Clock

log = structlog.get_logger(__name__)

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
BODY_BYTES = 1024 * 1024
"""Far above any update: they carry no files."""
CHECK_SECONDS = 30.0
"""How often Telegram is asked what it knows of the webhook: it calls only when there is something to tell."""

TakeOnce = Callable[[dict[str, Any]], Awaitable[None]]
"""Returns when the update is committed; raises when it could not be, and Telegram will repeat it."""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    url: str
    """Public, https; a proxy in front of `host` and `port` ends TLS. Any path will do."""
    secret: str
    """1 to 256 of A-Z a-z 0-9 _ -"""
    host: str
    port: int


class WebhookServer:
    """Listens where the proxy passes Telegram's calls on to."""

    def __init__(self, settings: WebhookSettings, contact: Contact, take: TakeOnce) -> None:
        self._settings = settings
        inside = {"secret": settings.secret, "contact": contact, "take": take}
        application = Application([(r".*", _Receiver, inside)], log_function=_log_call)
        self._server = HTTPServer(application, max_body_size=BODY_BYTES)

    def listen(self) -> None:
        """Raises OSError where the address is not to be had."""
        host, port = self._settings.host, self._settings.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)  # tornado would leave it open if it fails
        listening.setblocking(False)
        self._server.add_socket(listening)

    async def close(self) -> None:
        self._server.stop()
        await self._server.close_all_connections()


class _Receiver(RequestHandler):
    SUPPORTED_METHODS = ("POST",)

    def initialize(self, secret: str, contact: Contact, take: TakeOnce) -> None:
        self._secret = secret
        self._contact = contact
        self._take = take

    async def post(self) -> None:
        given = self.request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            raise HTTPError(403)
        update = _read(self.request.body)
        if update is None:
            raise HTTPError(400)
        self._contact.made()
        try:
            await self._take(update)
        except Exception as error:
            raise HTTPError(503) from error  # `take` has said why


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        update: Any = json.loads(body)
        return update if isinstance(update["update_id"], int) else None
    except (ValueError, TypeError, KeyError):
        return None


def _log_call(handler: RequestHandler) -> None:
    log.debug("telegram.webhook_called", status=handler.get_status())


async def keep_webhook(bot: Bot, settings: WebhookSettings, contact: Contact, clock: Clock) -> None:
    """Set the webhook, and look after it until cancelled."""

    async def put_up() -> None:
        await bot.set_webhook(settings.url, secret_token=settings.secret, allowed_updates=ALLOWED_UPDATES)

    await persevere(put_up, contact)
    contact.made()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            info = await bot.get_webhook_info()
        except TelegramError as error:
            contact.lost(error)
            continue
        contact.made(_problem(info, settings, clock))
        if info.url != settings.url:
            await persevere(put_up, contact)


def _problem(info: WebhookInfo, settings: WebhookSettings, clock: Clock) -> str | None:
    if info.url != settings.url:
        return "another program changed the webhook of this bot: stop it, or give this one a bot of its own"
    failed_at = info.last_error_date
    if failed_at is not None and clock.now() - failed_at < timedelta(seconds=2 * CHECK_SECONDS):
        return f"Telegram cannot deliver to telegram.webhook_url: {info.last_error_message}"
    return None
