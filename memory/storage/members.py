"""Who is where: members of group chats, named teams, grants, and from them what an audience may be shown.

Rule: `shown` is the only way to the scope keys of observations; it is asked at every reading, so that whoever left a
minute ago sees nothing any more.
"""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.scope import GRANTS, MANAGE_OBSERVATIONS, VIEW_SENSITIVE, Audience, Standing, shown_to
from memory.storage.tables import chat_members, chats, grants, identities, team_members, teams, users
from memory.types import Role, User

SEEN_AGAIN_MS = 24 * 60 * 60 * 1000
"""How often `seen_at` of somebody who is still there is written again."""
IN_DOUBT = 0
"""`seen_at` of somebody who may have left without a word: present in the group, and shown nothing of it elsewhere."""
_IMPLIED: dict[Role, frozenset[str]] = {
    Role.OWNER: frozenset(GRANTS),
    Role.ADMIN: frozenset(GRANTS) - {VIEW_SENSITIVE},
}
"""What a role grants by itself."""


@dataclass(frozen=True, slots=True)
class Stamped:
    """A member of a group, and when they were seen there."""

    chat_id: int
    chat: str
    """As the transport calls it."""
    identity: str
    seen_at: int


@dataclass(frozen=True, slots=True)
class Team:
    id: int
    name: str
    members: tuple[int, ...]
    """Ids of people."""


# --- what an audience may be shown --------------------------------------------------------------

_ME = sa.bindparam("me", type_=sa.Integer)
_HERE = sa.bindparam("here", type_=sa.Integer)

_PRIVATE = sa.union_all(
    sa.select(sa.literal("user").label("what"), sa.literal(0).label("id"), users.c.role).where(users.c.id == _ME),
    sa.select(sa.literal("team"), team_members.c.team_id, sa.literal("")).where(team_members.c.user_id == _ME),
    sa.select(sa.literal("group"), chat_members.c.chat_id, sa.literal(""))
    .distinct()
    .join(identities, identities.c.key == chat_members.c.identity)
    .where(identities.c.user_id == _ME, chat_members.c.seen_at > IN_DOUBT),
    sa.select(sa.literal("grant"), sa.literal(0), grants.c.name).where(grants.c.user_id == _ME),
)
_PRESENT = (
    sa.select(identities.c.user_id.label("user_id"))
    .select_from(chat_members.outerjoin(identities, identities.c.key == chat_members.c.identity))
    .where(chat_members.c.chat_id == _HERE)
    .union(sa.select(_ME.label("user_id")))
).subquery("present")
"""Everybody in a group, the asker too; null for somebody who is nobody here."""
_GROUP = sa.union_all(
    sa.select(sa.literal("person").label("what"), sa.func.coalesce(users.c.id, 0).label("id")).select_from(
        _PRESENT.outerjoin(users, users.c.id == _PRESENT.c.user_id)
    ),
    sa.select(sa.literal("team"), team_members.c.team_id)
    .join(_PRESENT, _PRESENT.c.user_id == team_members.c.user_id)
    .group_by(team_members.c.team_id)
    .having(sa.func.count() == sa.select(sa.func.count()).select_from(_PRESENT).scalar_subquery()),
)


async def shown(connection: AsyncConnection, audience: Audience, *, sensitive: bool = False) -> tuple[str, ...]:
    """The scope keys that everyone present may see now, in one statement. `sensitive` as in `scope.shown_to`."""
    if audience.is_private:
        standing = await _alone(connection, audience.user_id)
    else:
        standing = await _among_others(connection, audience)
    return shown_to(audience, standing, sensitive=sensitive)


async def _alone(connection: AsyncConnection, user_id: int) -> Standing:
    rows = (await connection.execute(_PRIVATE, {"me": user_id})).all()
    roles = [Role(row[2]) for row in rows if row[0] == "user"]
    granted = {str(row[2]) for row in rows if row[0] == "grant"}
    for role in roles:
        granted |= _IMPLIED.get(role, frozenset[str]())
    return Standing(
        is_known=bool(roles),
        teams=tuple(sorted(row[1] for row in rows if row[0] == "team")) if roles else (),
        groups=tuple(sorted(row[1] for row in rows if row[0] == "group")) if roles else (),
        sees_sensitive=bool(roles) and VIEW_SENSITIVE in granted,
    )


async def _among_others(connection: AsyncConnection, audience: Audience) -> Standing:
    rows = (await connection.execute(_GROUP, {"me": audience.user_id, "here": audience.chat_id})).all()
    people = [row[1] for row in rows if row[0] == "person"]
    is_known = bool(people) and all(people)
    return Standing(is_known, tuple(sorted(row[1] for row in rows if row[0] == "team")) if is_known else ())


# --- members of groups --------------------------------------------------------------------------

_NOTED = sa.select(chat_members.c.seen_at).where(
    chat_members.c.chat_id == sa.bindparam("chat"), chat_members.c.identity == sa.bindparam("who")
)


async def is_noted(connection: AsyncConnection, chat_id: int, identity: str, now: int) -> bool:
    """Say whether somebody is known to be in a group, and was seen there lately: then there is nothing to write."""
    seen_at = (await connection.execute(_NOTED, {"chat": chat_id, "who": identity})).scalar_one_or_none()
    return seen_at is not None and seen_at > now - SEEN_AGAIN_MS


async def note(connection: AsyncConnection, chat_id: int, identity: str, now: int) -> None:
    """Somebody wrote or joined in a group: `identity` as in `identities`, whether Merk knows them or not."""
    mine = chat_members.c.chat_id == chat_id, chat_members.c.identity == identity
    changed = await connection.execute(chat_members.update().where(*mine).values(seen_at=now))
    if not changed.rowcount:
        await connection.execute(chat_members.insert().values(chat_id=chat_id, identity=identity, seen_at=now))


async def left(connection: AsyncConnection, chat_id: int, identity: str) -> None:
    """Somebody left a group, or was removed."""
    await connection.execute(
        chat_members.delete().where(chat_members.c.chat_id == chat_id, chat_members.c.identity == identity)
    )


async def replace(connection: AsyncConnection, chat_id: int, present: frozenset[str], now: int) -> None:
    """The whole list, where a transport knows it (Matrix)."""
    await connection.execute(chat_members.delete().where(chat_members.c.chat_id == chat_id))
    rows = [{"chat_id": chat_id, "identity": each, "seen_at": now} for each in sorted(present)]
    if rows:
        await connection.execute(chat_members.insert(), rows)


async def doubt(connection: AsyncConnection, transport: str) -> None:
    """Leavings may have been missed in the groups of a transport: of nobody there is it certain that they stayed."""
    there = sa.select(chats.c.id).where(chats.c.transport == transport)
    await connection.execute(chat_members.update().where(chat_members.c.chat_id.in_(there)).values(seen_at=IN_DOUBT))


async def stamped_before(connection: AsyncConnection, transport: str, before: int) -> list[Stamped]:
    """The members of a transport's groups who were seen before an instant, the doubtful first."""
    query = (
        sa.select(chats.c.id, chats.c.external_id, chat_members.c.identity, chat_members.c.seen_at)
        .join(chats, chats.c.id == chat_members.c.chat_id)
        .where(chats.c.transport == transport, chat_members.c.seen_at < before)
        .order_by(chat_members.c.seen_at, chats.c.id, chat_members.c.identity)
    )
    return [Stamped(*row) for row in (await connection.execute(query)).all()]


async def settle(connection: AsyncConnection, who: Stamped, seen_at: int | None) -> None:
    """Somebody is still there, or (None) has gone. Nothing changes where more was noted of them since."""
    mine = sa.and_(
        chat_members.c.chat_id == who.chat_id,
        chat_members.c.identity == who.identity,
        chat_members.c.seen_at == who.seen_at,
    )
    gone = chat_members.delete().where(mine)
    await connection.execute(gone if seen_at is None else chat_members.update().where(mine).values(seen_at=seen_at))


async def in_group(connection: AsyncConnection, chat_id: int) -> list[str]:
    """The identities known to be in a group."""
    query = sa.select(chat_members.c.identity).where(chat_members.c.chat_id == chat_id)
    return list((await connection.execute(query.order_by(chat_members.c.identity))).scalars())


# --- teams --------------------------------------------------------------------------------------


class TeamExists(Exception):  # noqa: N818 - it is an answer to a person, not a fault
    """There is a team of this name."""


async def create_team(connection: AsyncConnection, name: str, user_id: int, now: int) -> Team:
    """A new team with its maker as its first member. Raises `TeamExists` (names differ in more than case)."""
    name = " ".join(name.split())
    if not name:
        raise ValueError("a team has a name")
    if await team_by_name(connection, name) is not None:
        raise TeamExists(name)
    result = await connection.execute(teams.insert().values(name=name, user_id=user_id, created_at=now))
    key = result.inserted_primary_key
    assert key is not None
    await connection.execute(team_members.insert().values(team_id=int(key[0]), user_id=user_id))
    return Team(int(key[0]), name, (user_id,))


async def team_by_name(connection: AsyncConnection, name: str) -> Team | None:
    wanted = " ".join(name.split()).casefold()
    return next((team for team in await list_teams(connection) if team.name.casefold() == wanted), None)


async def list_teams(connection: AsyncConnection, user_id: int | None = None) -> list[Team]:
    """All teams, or those that a person is in, by name."""
    rows = (await connection.execute(sa.select(teams.c.id, teams.c.name).order_by(teams.c.name))).all()
    pairs = (await connection.execute(sa.select(team_members).order_by(team_members.c.user_id))).all()
    found = [Team(row[0], row[1], tuple(pair[1] for pair in pairs if pair[0] == row[0])) for row in rows]
    return [team for team in found if user_id is None or user_id in team.members]


async def add_to_team(connection: AsyncConnection, team_id: int, user_id: int) -> None:
    """Whoever is in it already stays in it."""
    mine = team_members.c.team_id == team_id, team_members.c.user_id == user_id
    if (await connection.execute(sa.select(team_members.c.team_id).where(*mine))).first() is None:
        await connection.execute(team_members.insert().values(team_id=team_id, user_id=user_id))


async def remove_from_team(connection: AsyncConnection, team_id: int, user_id: int) -> None:
    await connection.execute(
        team_members.delete().where(team_members.c.team_id == team_id, team_members.c.user_id == user_id)
    )


# --- grants -------------------------------------------------------------------------------------


async def grant(connection: AsyncConnection, user_id: int, name: str) -> None:
    """Raises ValueError for what is no grant."""
    if name not in GRANTS:
        raise ValueError(f"there is no grant {name!r}; there are {', '.join(GRANTS)}")
    if name not in await _granted(connection, user_id):
        await connection.execute(grants.insert().values(user_id=user_id, name=name))


async def revoke(connection: AsyncConnection, user_id: int, name: str) -> None:
    await connection.execute(grants.delete().where(grants.c.user_id == user_id, grants.c.name == name))


async def has(connection: AsyncConnection, user: User | int, name: str) -> bool:
    """Say whether a person has a grant, by their role or by name."""
    user_id = user if isinstance(user, int) else user.id
    query = sa.select(users.c.role).where(users.c.id == user_id)
    role = (await connection.execute(query)).scalar_one_or_none()
    if role is None:
        return False
    return name in _IMPLIED.get(Role(role), frozenset[str]()) or name in await _granted(connection, user_id)


async def manages(connection: AsyncConnection, audience: Audience) -> bool:
    """Say whether the asker may change observations that others made."""
    return await has(connection, audience.user_id, MANAGE_OBSERVATIONS)


async def _granted(connection: AsyncConnection, user_id: int) -> set[str]:
    query = sa.select(grants.c.name).where(grants.c.user_id == user_id)
    return {str(name) for name in (await connection.execute(query)).scalars()}
