"""`merk observations purge`: takes back what one version of the extractor noticed, should that have been wrong."""

import sqlalchemy as sa

from bot.admin.keeping import Agree, alone, embedder_or_none, memory_of
from bot.config import Settings
from bot.errors import CommandError
from bot.lock import own
from memory.storage.database import Database
from memory.storage.tables import observations


async def purge(settings: Settings, version: str, agree: Agree) -> int:
    """Delete the observations of a version for good; what they replaced holds again. Return how many there were.

    Raises `LockedError`, and `CommandError` where there are none or the answer is no.
    """
    with own(settings.tenant.data_dir, "purge"):
        async with alone(settings) as database:
            counts = await _versions(database)
            count = counts.get(version, 0)
            if not count:
                there = ", ".join(f"{name} ({each})" for name, each in sorted(counts.items())) or "none"
                raise CommandError(f"There are no observations of the version {version}. Versions: {there}.")
            if not agree(f"Delete {count} observations of the version {version} for good?"):
                raise CommandError("Nothing was deleted.")
            async with memory_of(settings, database, await embedder_or_none(settings)) as memory:
                await memory.open()
                return await memory.observations.purge(version)


async def _versions(database: Database) -> dict[str, int]:
    """How many observations each version made."""
    version = observations.c.prompt_version
    query = sa.select(version, sa.func.count()).where(version.is_not(None)).group_by(version)
    async with database.read() as connection:
        return {str(row[0]): int(row[1]) for row in (await connection.execute(query)).all()}
