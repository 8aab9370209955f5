"""`merk run`: every configured transport in one process, until SIGTERM."""

import asyncio
import gc
import os
import signal
from typing import TYPE_CHECKING

import structlog
import uvloop

from bot import logs
from bot.app import App, make_memory, open_database
from bot.config import Settings
from bot.lock import own
from bot.networks import make_transports
from bot.providers import choose_embedder, choose_model, with_fallbacks
from memory.instants import SystemClock

if TYPE_CHECKING:
    from bot.web.server import WebServer

new_loop = uvloop.new_event_loop
"""A turn wakes its loop some sixty times: this one takes 1 ms less for that than Python's own (of 16)."""
LOADED_SECONDS = 20
"""By then the libraries are in. What is there then stays: the garbage collector need not look through 300,000 objects
time and again, for which everybody waits up to half a second.
"""

log = structlog.get_logger(__name__)


async def serve(settings: Settings) -> None:
    """Serve until told to stop. Raises `ConfigError` and `LockedError`."""
    if settings.telegram.token is None and settings.matrix.homeserver is None:
        raise settings.missing("telegram.token", "There is nobody to serve. Run `merk init`, or try `merk chat`.")
    logs.configure(level=os.environ.get("MERK_LOG", "INFO"))
    clock = SystemClock()
    with own(settings.tenant.data_dir, "run"):
        database = await open_database(settings, clock)
        # one after the other: an import on the loop would hide an Ollama that answers within half a second
        chosen = await choose_model(settings, _unseen)
        chosen = await with_fallbacks(settings, chosen, _unseen)
        embedder = await choose_embedder(settings)
        log.info("serve.model", said=chosen.said)
        log.info("serve.embedder", name=embedder.name)
        transports = make_transports(settings, clock, database)
        memory = make_memory(settings, clock, database, chosen, embedder)
        app = App(settings, database, memory, chosen, transports, clock)
        await app.start()
        web = await _open_web(app, chosen.provider)
        log.info("serve.started")
        asyncio.get_running_loop().call_later(LOADED_SECONDS, gc.freeze)
        await _told_to_stop()
        if web is not None:
            await web.stop()
        await app.stop()
        await memory.close()
        await chosen.model.close()
        await database.close()


def _unseen(_done: int, _all: int) -> None:
    """Nobody watches a download here."""


async def _open_web(app: App, provider: str) -> "WebServer | None":
    if not app.settings.web.enabled:
        return None
    from bot.web.inside import Inside  # noqa: PLC0415 - who has no dashboard does not load its libraries
    from bot.web.server import WebServer  # noqa: PLC0415 - as above

    server = WebServer(Inside(app.settings, app.database, app.clock, app.memory, app.transports, provider))
    await server.start()
    return server


async def _told_to_stop() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    await stop.wait()
    log.info("serve.stopping")
