"""`merk run`: every configured transport in one process, until SIGTERM."""

import asyncio
import os
import signal

import structlog

from bot import logs
from bot.app import App, make_memory, open_database
from bot.config import ConfigError, Settings
from bot.lock import own
from bot.providers import choose_embedder, choose_model
from bot.transports.base import Transport
from bot.transports.telegram.transport import TelegramTransport
from bot.transports.telegram.webhook import WebhookSettings
from handlers.commands import menu
from memory.instants import SystemClock
from memory.ports import Clock

log = structlog.get_logger(__name__)


async def serve(settings: Settings) -> None:
    """Serve until told to stop. Raises `ConfigError` and `LockedError`."""
    if settings.telegram.token is None:
        raise settings.missing("telegram.token", "There is nobody to serve. Run `merk init`, or try `merk chat`.")
    logs.configure(level=os.environ.get("MERK_LOG", "INFO"))
    clock = SystemClock()
    with own(settings.tenant.data_dir, "run"):
        database = await open_database(settings, clock)
        # one after the other: an import on the loop would hide an Ollama that answers within half a second
        chosen = await choose_model(settings, lambda _done, _all: None)
        embedder = await choose_embedder(settings)
        log.info("serve.model", said=chosen.said)
        log.info("serve.embedder", name=embedder.name)
        memory = make_memory(settings, clock, database, chosen, embedder)
        app = App(settings, database, memory, chosen, _transports(settings, clock), clock)
        await app.start()
        log.info("serve.started")
        await _told_to_stop()
        await app.stop()
        await memory.close()
        await chosen.model.close()
        await database.close()


def _transports(settings: Settings, clock: Clock) -> list[Transport]:
    section = settings.telegram
    assert section.token is not None
    webhook = None
    if section.mode == "webhook":
        assert section.webhook_url is not None
        assert section.webhook_secret is not None
        host, _, port = section.webhook_listen.rpartition(":")
        webhook = WebhookSettings(section.webhook_url, section.webhook_secret.get_secret_value(), host, int(port))
    try:
        return [
            TelegramTransport(section.token.get_secret_value(), clock, menu, base_url=section.base_url, webhook=webhook)
        ]
    except ValueError as error:
        raise ConfigError(str(error)) from error


async def _told_to_stop() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    await stop.wait()
    log.info("serve.stopping")
