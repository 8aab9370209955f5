"""The site: all routers, one guard in front. `make_site` is what the server runs and tests call."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from urllib.parse import urlsplit

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from bot.web import api, health, hooks, login, metrics, pages
from bot.web.guard import Guard, Limits
from bot.web.health import Health
from bot.web.inside import Inside
from bot.web.metrics import Metrics
from bot.web.pages.errors import error_page, wants_page

log = structlog.get_logger(__name__)


def make_site(inside: Inside, limits: Limits | None = None, events: Limits | None = None) -> FastAPI:
    """Build it. `state.inside`, `state.health` and `state.metrics` are what its dependencies hand out.

    `events` are the limits of what other systems send to hooks.
    """
    counted = Metrics(inside)

    @asynccontextmanager
    async def lifespan(_site: FastAPI) -> AsyncGenerator[None, None]:
        await counted.begin()
        yield

    # the pages that FastAPI brings for its documents load scripts from elsewhere: only the schema is served
    site = FastAPI(title="Merk", version=version("merk"), docs_url=None, redoc_url=None, lifespan=lifespan)
    site.state.inside = inside
    site.state.health = Health(inside)
    site.state.metrics = counted
    for router in (api.router, health.router, metrics.router, login.router, hooks.router):
        site.include_router(router)
    pages.install(site)
    site.add_exception_handler(Exception, _bug)
    site.add_middleware(TrustedHostMiddleware, allowed_hosts=_hosts(inside), www_redirect=False)
    site.add_middleware(Guard, limits=limits or Limits(), apart={hooks.PATH: events or hooks.LIMITS})
    if trusted := inside.settings.web.trusted_proxy:
        site.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(trusted))
    return site


async def _bug(request: Request, error: Exception) -> Response:
    log.error("web.bug", path=request.url.path, error=type(error).__name__, exc_info=error)
    if wants_page(request):
        return error_page(request, 500)
    return JSONResponse({"detail": "That did not work, and it is a fault of this program. Its log says more."}, 500)


def _hosts(inside: Inside) -> list[str]:
    """The names under which the site may be called: another one is somebody's attempt to pass for it."""
    web = inside.settings.web
    if web.trusted_proxy and not web.url:
        return ["*"]  # the proxy decides which names lead here
    listening = web.listen.rpartition(":")[0]
    public = urlsplit(web.address).hostname or listening
    return sorted({public, listening.strip("[]"), "localhost", "127.0.0.1", "::1"})
