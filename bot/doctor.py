"""`merk doctor`: what works, what does not, and the command that mends it. Works beside a running Merk.

Rule: it asks and looks, it changes nothing, and it never waits for ever: what does not answer in time is named.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bot.checks import Wrong, data, parts
from bot.checks.matrix import matrix
from bot.config import Settings
from bot.lock import Owner, owner_of
from memory.types import Health

ALL_SECONDS = 12.0
"""For all checks together; they run side by side."""

log = structlog.get_logger(__name__)

Check = Callable[[Settings, Owner | None], Awaitable[str]]


def examine_at_once(settings: Settings) -> list[Health]:
    """Examine from outside an event loop. Threads that are stuck, in a name server for example, are left behind: the
    caller ends the process without waiting for them.
    """
    loop = asyncio.new_event_loop()  # asyncio.run would wait for them
    try:
        return loop.run_until_complete(examine(settings))
    finally:
        loop.close()


async def examine(settings: Settings, *, seconds: float = ALL_SECONDS) -> list[Health]:
    """Run every check; a check that fails or does not end in time says so instead of raising."""
    checks: dict[str, Check] = {
        "configuration": _configuration,
        "database": data.database,
        "index": data.index,
        "embedder": parts.embedder,
        "model": parts.model,
        "telegram": parts.telegram,
        "matrix": matrix,
        "clock": parts.clock,
        "disk": data.disk,
    }
    owner = _owner(settings)
    tasks = {name: asyncio.create_task(_run(name, check(settings, owner))) for name, check in checks.items()}
    _, late = await asyncio.wait(tasks.values(), timeout=seconds)
    for task in late:
        task.cancel()
    return [_late(name, seconds) if task in late else task.result() for name, task in tasks.items()]


def _owner(settings: Settings) -> Owner | None:
    try:
        return owner_of(settings.tenant.data_dir)
    except OSError as error:  # somebody else's folder: the checks of what is in it say so
        log.debug("doctor.no_owner", error=type(error).__name__)
        return None


async def _run(name: str, check: Awaitable[str]) -> Health:
    try:
        return Health(name, ok=True, detail=await check)
    except Wrong as found:
        log.debug("doctor.wrong", check=name, exc_info=found.__cause__)
        return Health(name, ok=False, detail=found.said, remedy=found.remedy)
    except Exception as error:  # the other checks must be heard
        log.debug("doctor.check_failed", check=name, exc_info=True)
        return Health(name, ok=False, detail=f"{type(error).__name__}: {error}", remedy="merk doctor --verbose")


def _late(name: str, seconds: float) -> Health:
    return Health(
        name, ok=False, detail=f"no answer within {seconds:.0f} s", remedy="check network and disk, then merk doctor"
    )


async def _configuration(settings: Settings, _owner: Owner | None) -> str:
    if settings.file is None:
        return "no file: defaults and environment"
    telegram, matrix_ = settings.telegram, settings.matrix
    secrets = (telegram.token, telegram.webhook_secret, matrix_.password, matrix_.access_token)
    secrets += (settings.model.anthropic.api_key,)
    if any(secrets) and settings.file.stat().st_mode & 0o007:
        return f"{settings.file}, valid, but anybody on this machine can read it: chmod 600 {settings.file}"
    return f"{settings.file}, valid"
