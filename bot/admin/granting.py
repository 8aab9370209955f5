"""What an owner lets a person do beyond their role, by name; works beside a running Merk."""

from bot.admin.keeping import beside
from bot.config import Settings
from bot.errors import CommandError
from memory.scope import GRANTS
from memory.storage import members, people


async def grant(settings: Settings, whom: str, name: str, *, revoke: bool = False) -> str:
    """Give a grant or take it back; return what holds now, in a sentence. Raises `CommandError`."""
    if name not in GRANTS:
        raise CommandError(f"There is no grant {name}. There are: {', '.join(GRANTS)}.")
    async with beside(settings) as database, database.write() as connection:
        found = await people.named(connection, whom)
        if not found:
            raise CommandError(f"Nobody is known as {whom}. It must be a name, or look like telegram:42.")
        if len(found) > 1:
            raise CommandError(f"{len(found)} people are called {whom}. Name an address such as telegram:42.")
        [user] = found
        change = members.revoke if revoke else members.grant
        await change(connection, user.id, name)
        has_it = await members.has(connection, user, name)
    if revoke and has_it:
        return f"{user.name} still has {name}: it comes with the role {user.role}."
    return f"{user.name} has {name} now." if has_it else f"{user.name} does not have {name}."
