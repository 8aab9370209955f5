"""Whose memory: pure decisions that every reader and writer uses. There is no unscoped query.

A scope key ("owner") is one short word that names whose memory a row is: `u7` a person's own, `c5` what belongs to
the group chat 5, `t3` to the team 3, `p` to everybody in the tenant, `s7` what person 7 marked as sensitive. It is a
WHERE clause before any ranking, one metadata key in the vector index and one token inside MATCH.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

PUBLIC = "p"
"""The scope key of what everybody in the tenant may see."""
VIEW_SENSITIVE = "view:sensitive"
MANAGE_OBSERVATIONS = "manage:observations"
MANAGE_USERS = "manage:users"
VIEW_TELEMETRY = "view:telemetry"
GRANTS = (VIEW_SENSITIVE, MANAGE_OBSERVATIONS, MANAGE_USERS, VIEW_TELEMETRY)


class Scope(StrEnum):
    PRIVATE = "private"
    TEAM = "team"
    PUBLIC = "public"
    SENSITIVE = "sensitive"


@dataclass(frozen=True, slots=True)
class Audience:
    """Who asks and who is present. Fixed when a turn starts; an argument of every call (pitfall P03)."""

    user_id: int
    chat_id: int
    is_private: bool
    """True only where nobody but this person reads along."""

    @property
    def owner(self) -> str:
        """The scope key under which what is said here is kept."""
        return f"u{self.user_id}" if self.is_private else f"c{self.chat_id}"

    @property
    def scope(self) -> Scope:
        return Scope.PRIVATE if self.is_private else Scope.TEAM

    @property
    def visible(self) -> tuple[str, ...]:
        """Whose facts, sessions and summaries are shown and changed here: a group never sees anything private (P01),
        and what a group said is asked for in the group. What observations may be shown is wider: `shown_to`.
        """
        return (self.owner,)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of those who are present, at this moment; loaded by `memory.storage.members`."""

    is_known: bool = False
    """Everybody present, as far as the transport tells, is a person of this tenant."""
    teams: tuple[int, ...] = ()
    """The named teams in which everybody present is."""
    groups: tuple[int, ...] = ()
    """In a private chat: the group chats that this person is in."""
    sees_sensitive: bool = False
    """The asker has the grant."""


def shown_to(audience: Audience, standing: Standing, *, sensitive: bool = False) -> tuple[str, ...]:
    """The scope keys that everyone present may see: the one decision, for every reader of observations.

    `sensitive` says that the person asked for it explicitly; without the grant, or among others, it changes nothing.
    """
    keys = [audience.owner]
    if standing.is_known:
        keys.append(PUBLIC)
    keys += [team_key(team) for team in standing.teams]
    if audience.is_private:
        keys += [group_key(chat) for chat in standing.groups]
        if sensitive and standing.sees_sensitive:
            keys.append(sensitive_key(audience.user_id))
    return tuple(keys)


def own_key(user_id: int) -> str:
    return f"u{user_id}"


def group_key(chat_id: int) -> str:
    return f"c{chat_id}"


def team_key(team_id: int) -> str:
    return f"t{team_id}"


def sensitive_key(user_id: int) -> str:
    return f"s{user_id}"


_SCOPES = {"u": Scope.PRIVATE, "c": Scope.TEAM, "t": Scope.TEAM, "s": Scope.SENSITIVE}


def scope_of(key: str) -> Scope:
    """The scope that a key is of. Raises ValueError for what is no scope key."""
    if key == PUBLIC:
        return Scope.PUBLIC
    if key[:1] not in _SCOPES or not key[1:].isdigit():
        raise ValueError(f"no scope key: {key!r}")
    return _SCOPES[key[0]]


def number_of(key: str) -> int:
    """The number in a scope key: of a person, a group or a team; 0 for what is public."""
    return 0 if key == PUBLIC else int(key[1:])


def is_narrower(new: str, old: str, user_id: int) -> bool:
    """Say whether everybody who may see `new` may see `old`: then nobody has to be asked.

    A person's own is within whatever that person shares; a team is within the public.
    """
    order = {Scope.SENSITIVE: 0, Scope.PRIVATE: 1, Scope.TEAM: 2, Scope.PUBLIC: 3}
    if new in (own_key(user_id), sensitive_key(user_id)) or new == old:
        return order[scope_of(new)] <= order[scope_of(old)]
    return order[scope_of(new)] < order[scope_of(old)]


def seen_by(column: sa.ColumnElement[str], whose: Audience | Iterable[str]) -> sa.ColumnElement[bool]:
    """The one WHERE clause of scope: of an audience's facts and sessions, or of the keys of `shown_to`."""
    keys: Sequence[str] = whose.visible if isinstance(whose, Audience) else tuple(whose)
    if not keys:
        raise ValueError("a query names the owners it may see (P28)")
    return column.in_(keys)
