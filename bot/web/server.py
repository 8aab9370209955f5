"""The web server inside `merk run`: the same loop, the same end."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import structlog
import uvicorn

from bot.config import ConfigError
from bot.web.inside import Inside
from bot.web.site import make_site
from memory.storage import people

log = structlog.get_logger(__name__)

BACKLOG = 128
GOODBYE_SECONDS = 3


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the program's: it stops us with the rest."""
        yield


class WebServer:
    """Listens from `start` to `stop`."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        web = inside.settings.web
        self._config = uvicorn.Config(
            make_site(inside),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the site does so itself, for the proxies it was told of
            ssl_certfile=web.tls_certificate,
            ssl_keyfile=web.tls_key,
            timeout_graceful_shutdown=GOODBYE_SECONDS,
            lifespan="on",
        )
        self._server = _Server(self._config)
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self) -> None:
        """Return when it listens. Raises `ConfigError` where it cannot."""
        host, _, port = self._inside.settings.web.listen.rpartition(":")
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        where = self._inside.settings.file or "configuration"
        try:
            self._config.load()
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(
                f"{where}: web.tls_certificate, web.tls_key: cannot be used ({error.strerror or error}). Both must be "
                "PEM files that Merk may read, and belong together."
            ) from error
        try:
            listening = socket.create_server((host, int(port)), family=family, backlog=BACKLOG)
        except OSError as error:
            raise ConfigError(
                f"{where}: web.listen: {host}:{port} is not to be had ({error.strerror or error}). Another program "
                "may use it: choose another port."
            ) from error
        self.port = int(listening.getsockname()[1])
        owners = (*self._inside.settings.access.owners, "terminal:local")
        async with self._inside.database.write() as connection:
            await people.demote_others(connection, owners)
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]), name="web")
        while not self._server.started:
            if self._task.done():
                await self._task  # raises what kept it from starting
                raise ConfigError("The web server ended before it began; the log above says why.")
            await asyncio.sleep(0.01)
        log.info("web.listening", address=self._inside.settings.web.address)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
