"""The site of a house, called in the process: as a program with a token, or as a browser."""

import re
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from bot.config import Settings, Web
from bot.web.guard import Limits
from bot.web.inside import Inside
from bot.web.site import make_site
from memory.instants import to_ms
from memory.scope import VIEW_TELEMETRY
from memory.storage import tokens
from tests.fakes.house import House

HOST = "http://127.0.0.1:8080"
PATIENT = Limits(per_second=1e6, burst=10**6, wrong_per_second=1e6, wrong_burst=10**6)


class Website:
    """`client` is nobody; `program` and `browser` are somebody."""

    def __init__(self, house: House, site: FastAPI, client: httpx.AsyncClient) -> None:
        self.house = house
        self.site = site
        self.client = client

    async def program(self, grants: Collection[str] = (VIEW_TELEMETRY,), *, days: int | None = None) -> dict[str, str]:
        """The head of the requests of a program with these grants."""
        now = to_ms(self.house.clock.now())
        until = now + days * 86_400_000 if days else None
        async with self.house.database.write() as connection:
            _, token = await tokens.create(connection, "test", grants, until, now)
        return {"Authorization": f"Bearer {token}"}

    async def link(self, **more: object) -> str:
        """What /dashboard sends."""
        (said,) = await self.house.say("/dashboard", **more)
        found = re.search(r"https?://\S+", said)
        assert found, said
        return found[0]

    async def log_in(self, **more: object) -> httpx.Response:
        """Press the button of the link's page; the client is that person's browser from now on."""
        key = (await self.link(**more)).partition("key=")[2]
        return await self.client.post("/login", data={"key": key})


@asynccontextmanager
async def website(
    house: House, *, limits: Limits = PATIENT, client: str = "127.0.0.1", base: str = HOST, web: Web | None = None
) -> AsyncGenerator[Website, None]:
    settings: Settings = house.app.settings
    if web is not None:
        settings = settings.model_copy(update={"web": web})
    inside = Inside(settings, house.database, house.clock, house.memory, house.app.transports, "scripted")
    site = make_site(inside, limits)
    await site.state.metrics.begin()
    transport = httpx.ASGITransport(site, raise_app_exceptions=False, client=(client, 50000))
    async with httpx.AsyncClient(transport=transport, base_url=base) as opened:
        yield Website(house, site, opened)
