"""/dashboard: a link into the browser, good once, for whoever may see what happened."""

from dataclasses import dataclass

from handlers.types import Command, Notice, Reply, Request, UserError
from memory.instants import to_ms
from memory.ports import Clock
from memory.scope import VIEW_TELEMETRY
from memory.storage import members, tokens
from memory.storage.database import Database


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Where it is."""

    address: str | None = None
    """Without a slash at its end; None: the web server is off."""
    is_local: bool = False
    """Only the machine that Merk runs on can open it."""


def command(database: Database, clock: Clock, dashboard: Dashboard) -> Command:
    async def handle(request: Request) -> Reply:
        say = request.say
        if not request.audience.is_private:
            raise UserError(say("dashboard-private"))
        if dashboard.address is None:
            raise UserError(say("dashboard-off"))
        async with database.write() as connection:
            if not await members.has(connection, request.user, VIEW_TELEMETRY):
                raise UserError(say("dashboard-not-yours"))
            secret = await tokens.offer_login(connection, request.user.id, to_ms(clock.now()))
        link = f"{dashboard.address}/login?key={secret}"
        yield Notice(say("dashboard-link-local" if dashboard.is_local else "dashboard-link", link=link))

    return Command("dashboard", handle)
