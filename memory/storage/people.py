"""People and their identities: who a transport's sender is, what role they have, who is being paired."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import chats, identities, pairing_codes, sessions, users
from memory.types import Role, User


@dataclass(frozen=True, slots=True)
class Pairing:
    """A stranger's wish to be let in."""

    code: str
    identity: str
    name: str
    language: str
    place: dict[str, Any]
    expires_at: int


# built once: every message asks it
_OTHER = identities.alias()
_FIND = (
    sa.select(users, _OTHER.c.key)
    .join(identities, identities.c.user_id == users.c.id)
    .join(_OTHER, _OTHER.c.user_id == users.c.id)
    .where(identities.c.key == sa.bindparam("identity"))
    .order_by(_OTHER.c.created_at, _OTHER.c.key)
)


async def find(connection: AsyncConnection, identity: str) -> User | None:
    """The person behind an identity, with all of theirs."""
    rows = (await connection.execute(_FIND, {"identity": identity})).mappings().all()
    return replace(_user(rows[0]), identities=tuple(row["key"] for row in rows)) if rows else None


async def identities_of(connection: AsyncConnection, user_id: int) -> list[str]:
    """Under which identities a person is known, in the order in which they came."""
    query = sa.select(identities.c.key).where(identities.c.user_id == user_id)
    return list((await connection.execute(query.order_by(identities.c.created_at, identities.c.key))).scalars())


def network_of(identity: str) -> str:
    """The transport that an identity is of: at most one identity of a person is of each."""
    return identity.partition(":")[0]


async def by_id(connection: AsyncConnection, user_id: int) -> User | None:
    row = (await connection.execute(sa.select(users).where(users.c.id == user_id))).mappings().first()
    return _user(row) if row else None


async def owners(connection: AsyncConnection) -> list[User]:
    """Who may decide for everybody, as far as they have written before."""
    query = sa.select(users).where(users.c.role == Role.OWNER).order_by(users.c.id)
    return [_user(row) for row in (await connection.execute(query)).mappings()]


async def named(connection: AsyncConnection, words: str) -> list[User]:
    """Those whom these words name: by identity ("telegram:42"), else by name, whatever the case."""
    known = await find(connection, words)
    if known is not None:
        return [known]
    rows = (await connection.execute(sa.select(users).order_by(users.c.id))).mappings()
    return [_user(row) for row in rows if row["name"].casefold() == words.casefold()]


async def ids(connection: AsyncConnection) -> list[int]:
    """Everybody who is known."""
    return list((await connection.execute(sa.select(users.c.id).order_by(users.c.id))).scalars())


async def admit(connection: AsyncConnection, identity: str, name: str, role: Role, language: str, now: int) -> User:
    """Make the person known under this identity, or give the known one this role."""
    known = await find(connection, identity)
    if known is not None:
        await connection.execute(users.update().where(users.c.id == known.id).values(role=role))
        return replace(known, role=role)
    result = await connection.execute(
        users.insert().values(name=name, role=role, client_language=language, created_at=now)
    )
    key = result.inserted_primary_key
    assert key is not None
    user_id = int(key[0])
    await connection.execute(identities.insert().values(key=identity, user_id=user_id, own_role=role, created_at=now))
    return User(user_id, name, role, client_language=language, identities=(identity,))


async def begin_anew(connection: AsyncConnection, user: User, own_role: str, now: int) -> int:
    """A person with somebody's name and settings, and nothing else; return their id. None of them manages others."""
    values = {
        "name": user.name,
        "role": Role.GUEST if own_role == Role.GUEST else Role.MEMBER,
        "language": user.language,
        "client_language": user.client_language,
        "timezone": user.timezone,
        "created_at": now,
    }
    key = (await connection.execute(users.insert().values(values))).inserted_primary_key
    assert key is not None
    return int(key[0])


async def demote_others(connection: AsyncConnection, owners: Sequence[str]) -> None:
    """Whoever is not named as an owner any more is an ordinary person again."""
    still = sa.select(identities.c.user_id).where(identities.c.key.in_(owners))
    former = sa.and_(users.c.role == Role.OWNER, users.c.id.not_in(still))
    await connection.execute(users.update().where(former).values(role=Role.MEMBER))


async def meet(connection: AsyncConnection, user_id: int, name: str, client_language: str) -> None:
    """Take over what the person's client says of them today."""
    await connection.execute(
        users.update().where(users.c.id == user_id).values(name=name, client_language=client_language)
    )


async def speak(connection: AsyncConnection, user_id: int, language: str | None) -> None:
    """Choose the language of everything this person reads; None follows the client."""
    await connection.execute(users.update().where(users.c.id == user_id).values(language=language))


async def live_in(connection: AsyncConnection, user_id: int, timezone: str) -> None:
    """Choose the time zone of a person, by its IANA name."""
    await connection.execute(users.update().where(users.c.id == user_id).values(timezone=timezone))


async def private_place(connection: AsyncConnection, user_id: int) -> tuple[str, str] | None:
    """Where this person alone reads: (transport, chat), the place they used last.

    Their chats on a network where they have no identity any more are somebody else's to read.
    """
    theirs = identities.c.user_id == user_id, identities.c.key.like(chats.c.transport + ":%")
    query = (
        sa.select(chats.c.transport, chats.c.external_id)
        .join(sessions, sessions.c.chat_id == chats.c.id)
        .where(chats.c.kind == "ai", sessions.c.user_id == user_id, sa.exists().where(*theirs))
        .order_by(sessions.c.last_used_at.desc())
        .limit(1)
    )
    row = (await connection.execute(query)).first()
    return (str(row[0]), str(row[1])) if row else None


async def open_pairing(connection: AsyncConnection, identity: str, now: int) -> Pairing | None:
    """The newest code of this identity that still holds."""
    query = (
        sa.select(pairing_codes)
        .where(pairing_codes.c.identity == identity, pairing_codes.c.expires_at > now)
        .order_by(pairing_codes.c.created_at.desc())
    )
    row = (await connection.execute(query)).mappings().first()
    return _pairing(row) if row else None


async def count_pairings(connection: AsyncConnection, since: int) -> int:
    """How many codes were given to anyone since an instant: a flood of strangers is slowed by this."""
    query = sa.select(sa.func.count()).select_from(pairing_codes).where(pairing_codes.c.created_at > since)
    return int((await connection.execute(query)).scalar_one())


async def offer_pairing(connection: AsyncConnection, pairing: Pairing, now: int) -> None:
    await connection.execute(
        pairing_codes.insert().values(
            code=pairing.code,
            identity=pairing.identity,
            name=pairing.name,
            language=pairing.language,
            place=pairing.place,
            created_at=now,
            expires_at=pairing.expires_at,
        )
    )


async def take_pairing(connection: AsyncConnection, code: str, now: int) -> Pairing | None:
    """Use up a code that holds; None when there is none."""
    query = sa.select(pairing_codes).where(pairing_codes.c.code == code, pairing_codes.c.expires_at > now)
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        return None
    await connection.execute(pairing_codes.delete().where(pairing_codes.c.identity == row["identity"]))
    return _pairing(row)


def _user(row: sa.RowMapping) -> User:
    return User(row["id"], row["name"], Role(row["role"]), row["language"], row["client_language"], row["timezone"])


def _pairing(row: sa.RowMapping) -> Pairing:
    return Pairing(row["code"], row["identity"], row["name"], row["language"], row["place"], row["expires_at"])
