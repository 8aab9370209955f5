"""Who may talk to the bot: a pure decision. Strangers cost no model call."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from memory.types import Role, User

LOCAL = "terminal:local"
"""The person at the machine itself is an owner: they could read every file anyway."""


class Verdict(StrEnum):
    ADMIT = "admit"
    PAIR = "pair"
    """A stranger may ask an owner to be let in."""
    REFUSE = "refuse"
    """A stranger is told no."""
    IGNORE = "ignore"
    """A stranger in a group is not answered at all."""


@dataclass(frozen=True, slots=True)
class Policy:
    owners: frozenset[str]
    admit: Literal["pairing", "allowlist", "open"]
    allow: frozenset[str] = frozenset()


def judge(policy: Policy, identity: str, user: User | None, *, in_private: bool) -> tuple[Verdict, Role]:
    """Decide on a sender; the role is what they have from now on when they are admitted.

    Whoever is an owner under one identity is an owner under each that was linked to it.
    """
    known_as = {identity, *(user.identities if user else ())}
    if not known_as.isdisjoint((LOCAL, *policy.owners)):
        return Verdict.ADMIT, Role.OWNER
    if user is not None:
        # no longer in `owners`: an ordinary person again
        return Verdict.ADMIT, Role.MEMBER if user.role is Role.OWNER else user.role
    if policy.admit == "open":
        return Verdict.ADMIT, Role.GUEST
    if policy.admit == "allowlist" and identity in policy.allow:
        return Verdict.ADMIT, Role.MEMBER
    if not in_private:
        return Verdict.IGNORE, Role.GUEST
    return (Verdict.PAIR if policy.admit == "pairing" else Verdict.REFUSE), Role.GUEST
