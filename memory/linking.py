"""Two identities become one person after both have said yes, and an identity becomes a person of its own again.

Rule: nothing is moved while anything of whoever moves is being worked on, so that no work of theirs ends under a name
that is gone.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import moving
from memory.forgetting import Forgetting
from memory.instants import to_ms
from memory.moving import Belongings
from memory.ports import Clock
from memory.scope import own_key
from memory.storage import confirmations, erasure, link_codes, people
from memory.storage.database import Database
from memory.storage.link_codes import LinkCode
from memory.storage.people import network_of
from memory.storage.tables import grants, identities, login_links, pairing_codes, reminders, users, web_sessions
from memory.types import Role, User

_RANKS = tuple(Role)
"""The most powerful first."""

Reason = Literal["often", "unknown", "expired", "used", "own", "network", "busy", "gone", "last"]


class LinkRefused(Exception):  # noqa: N818 - it is an answer to a person, not a fault
    """Why two identities are not joined, or one is not taken off; `network` is the one that both are of."""

    def __init__(self, reason: Reason, network: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.network = network


@dataclass(frozen=True, slots=True)
class Brought:
    """A code that holds, and whose it is."""

    code: LinkCode
    giver: User


class Linking:
    """Every call that changes something is one transaction."""

    def __init__(self, database: Database, clock: Clock, forgetting: Forgetting) -> None:
        self._database = database
        self._clock = clock
        self._forgetting = forgetting

    async def offer(self, user_id: int, identity: str, place: dict[str, Any]) -> str:
        """A code for whoever writes from `identity`. Raises `LinkRefused` ("often")."""
        async with self._database.write() as connection:
            code = await link_codes.offer(connection, user_id, identity, place, self._now())
        if code is None:
            raise LinkRefused("often")
        return code

    async def look_at(self, code: str, identity: str) -> Brought:
        """Whose code this identity brings. Raises `LinkRefused`."""
        async with self._database.read() as connection:
            return await self._brought(connection, code, identity)

    async def take(self, code: str, identity: str) -> Brought:
        """Use up a code: whoever gave it is to be asked now. Raises `LinkRefused`."""
        async with self._database.write() as connection:
            brought = await self._brought(connection, code, identity)
            await link_codes.use(connection, brought.code.code, identity)
            return brought

    async def is_asked(self, brought: Brought, identity: str) -> bool:
        """Whether the card about it is in front of whoever gave the code: it is not to be put there twice."""
        async with self._database.read() as connection:
            return await confirmations.waits_with(
                connection, brought.giver.id, "join_identity", code=brought.code.code, identity=identity
            )

    async def decline(self, code: str) -> None:
        """The one who gave it says no: nobody can bring it any more."""
        async with self._database.write() as connection:
            await link_codes.withdraw(connection, code, self._now())

    async def join(self, giver_id: int, code: str, identity: str) -> None:
        """Both have said yes: whoever writes from there is the giver from now on, with all that is theirs.

        A second time changes nothing. Raises `LinkRefused`.
        """
        async with self._database.write() as connection:
            other = await people.find(connection, identity)
            if other is not None and other.id == giver_id:
                return
            brought = await self._brought(connection, code, identity)
            if brought.giver.id != giver_id or brought.code.used_by != identity:
                raise LinkRefused("unknown")
            now = self._now()
            await connection.execute(pairing_codes.delete().where(pairing_codes.c.identity == identity))
            await _note_own_role(connection, brought.giver)
            if other is None:
                values = {"key": identity, "user_id": giver_id, "own_role": None, "created_at": now}
                await connection.execute(identities.insert().values(values))
                return
            if await erasure.has_unfinished(connection, other.identities):
                raise LinkRefused("busy")
            await _note_own_role(connection, other)
            await _take_over(connection, brought.giver, other)
            stale = await moving.merge(connection, giver_id, other.id, now)
            await self._forgetting.outdate(connection, sorted(stale))

    async def going(self, user_id: int, identity: str) -> Belongings | None:
        """What an identity would take with it; None where it is nobody by itself and everything stays.

        Raises `LinkRefused`: "gone" for one that is not this person's, "last" for the only one that was let in itself.
        """
        async with self._database.read() as connection:
            _, own_role = await self._own(connection, user_id, identity)
            return await moving.belongings(connection, user_id, network_of(identity)) if own_role else None

    async def part(self, user_id: int, identity: str) -> bool:
        """Take an identity off; say whether it is a person of its own now, or a stranger.

        Raises `LinkRefused`, as `going`, and "busy".
        """
        async with self._database.write() as connection:
            user, own_role = await self._own(connection, user_id, identity)
            if await erasure.has_unfinished(connection, (identity,)):
                raise LinkRefused("busy")
            mine, now, network = identities.c.key == identity, self._now(), network_of(identity)
            await _close_doors(connection, user_id, now)
            if own_role is None:
                await connection.execute(identities.delete().where(mine))
                await _bring_home(connection, user_id, network)
                await _keep_own_rights(connection, user)
                return False
            new = await people.begin_anew(connection, user, own_role, now)
            await connection.execute(identities.update().where(mine).values(user_id=new))
            await _keep_own_rights(connection, user)
            going = await moving.belongings(connection, user_id, network)
            stale = await moving.split(connection, user_id, new, network, going, now)
            await self._forgetting.outdate(connection, sorted(stale))
            return True

    async def _own(self, connection: AsyncConnection, user_id: int, identity: str) -> tuple[User, str | None]:
        """The person, and what this identity of theirs was let in as by itself. Raises `LinkRefused`."""
        query = sa.select(identities.c.key, identities.c.own_role).where(identities.c.user_id == user_id)
        roles = {row[0]: row[1] for row in (await connection.execute(query)).all()}
        user = await people.by_id(connection, user_id)
        if user is None or identity not in roles:
            raise LinkRefused("gone")
        own_role = roles.pop(identity)
        if not any(roles.values()):
            raise LinkRefused("last")
        return user, own_role

    async def _brought(self, connection: AsyncConnection, code: str, identity: str) -> Brought:
        found = await link_codes.find(connection, code.upper())
        giver = await people.by_id(connection, found.user_id) if found else None
        if found is None or giver is None:
            raise LinkRefused("unknown")
        theirs = await people.identities_of(connection, giver.id)
        if identity in theirs:
            raise LinkRefused("own")
        if found.used_by not in (None, identity):
            raise LinkRefused("used")
        if found.expires_at <= self._now():
            raise LinkRefused("expired")
        newcomer = await people.find(connection, identity)
        mine = newcomer.identities if newcomer else (identity,)
        if both := sorted({network_of(key) for key in mine} & {network_of(key) for key in theirs}):
            raise LinkRefused("network", both[0])
        return Brought(found, replace(giver, identities=tuple(theirs)))

    def _now(self) -> int:
        return to_ms(self._clock.now())


async def _note_own_role(connection: AsyncConnection, user: User) -> None:
    """Whoever has one identity yet was let in by it: that is what it is again by itself."""
    if len(user.identities) == 1:
        alone = identities.c.key == user.identities[0], identities.c.own_role.is_not(None)
        await connection.execute(identities.update().where(*alone).values(own_role=user.role))


async def _take_over(connection: AsyncConnection, giver: User, other: User) -> None:
    """The giver's settings hold; an owner stays one, and a time zone that only one chose is kept."""
    role = Role.OWNER if other.role is Role.OWNER else giver.role
    values = {"role": role, "timezone": giver.timezone or other.timezone}
    await connection.execute(users.update().where(users.c.id == giver.id).values(values))


async def _close_doors(connection: AsyncConnection, user_id: int, now: int) -> None:
    """What was asked for from the identity that goes opens nothing of whoever stays: they ask anew."""
    await link_codes.withdraw_all(connection, user_id, now)
    for table in (login_links, web_sessions):
        await connection.execute(table.delete().where(table.c.user_id == user_id))


async def _bring_home(connection: AsyncConnection, user_id: int, network: str) -> None:
    """Reminders that rang in a private chat which is somebody else's to read by now ring in the one used last."""
    found = await people.private_place(connection, user_id)
    rings = reminders.c.owner == own_key(user_id), moving.rings_on(network)
    if found is not None:
        place = {"transport": found[0], "chat": found[1], "thread": ""}
        await connection.execute(reminders.update().where(*rings).values(place=place))


async def _keep_own_rights(connection: AsyncConnection, user: User) -> None:
    """Whoever stays may do no more than one of their identities by itself: what came with the other goes with it."""
    query = sa.select(identities.c.own_role).where(identities.c.user_id == user.id, identities.c.own_role.is_not(None))
    own = min(map(Role, (await connection.execute(query)).scalars()), key=_RANKS.index)
    if _RANKS.index(user.role) < _RANKS.index(own):
        await connection.execute(users.update().where(users.c.id == user.id).values(role=own))
        await connection.execute(grants.delete().where(grants.c.user_id == user.id))
