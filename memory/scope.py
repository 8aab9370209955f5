"""Whose memory: pure decisions that every reader and writer uses. There is no unscoped query.

A scope key ("owner") is one short word that names whose memory a row is: `u7` a person's own, `c5` what belongs to
the group chat 5. It is a WHERE clause before any ranking, one metadata key in the vector index and one token inside
MATCH.
"""

from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa


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
        """The scope keys that everyone present may see; a group never sees anything private (pitfall P01)."""
        return (self.owner,)


def seen_by(column: sa.ColumnElement[str], audience: Audience) -> sa.ColumnElement[bool]:
    """The one WHERE clause of scope."""
    return column.in_(audience.visible)
