"""Who may talk to the bot."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.access import LOCAL, Policy, Verdict, judge
from memory.types import Role, User

MEMBER = User(1, "Ada", Role.MEMBER)


def policy(admit: Literal["pairing", "allowlist", "open"] = "pairing") -> Policy:
    return Policy(frozenset({"telegram:1"}), admit, frozenset({"telegram:2"}))


@pytest.mark.parametrize(
    ("admit", "identity", "user", "in_private", "verdict", "role"),
    [
        ("pairing", "telegram:1", None, True, Verdict.ADMIT, Role.OWNER),
        ("pairing", LOCAL, None, True, Verdict.ADMIT, Role.OWNER),
        ("pairing", "telegram:9", MEMBER, True, Verdict.ADMIT, Role.MEMBER),
        ("pairing", "telegram:9", MEMBER, False, Verdict.ADMIT, Role.MEMBER),
        ("pairing", "telegram:9", None, True, Verdict.PAIR, Role.GUEST),
        ("pairing", "telegram:9", None, False, Verdict.IGNORE, Role.GUEST),
        ("allowlist", "telegram:2", None, True, Verdict.ADMIT, Role.MEMBER),
        ("allowlist", "telegram:9", None, True, Verdict.REFUSE, Role.GUEST),
        ("allowlist", "telegram:9", None, False, Verdict.IGNORE, Role.GUEST),
        ("open", "telegram:9", None, True, Verdict.ADMIT, Role.GUEST),
    ],
)
def test_the_policy_decides(
    admit: Literal["pairing", "allowlist", "open"],
    identity: str,
    user: User | None,
    in_private: bool,
    verdict: Verdict,
    role: Role,
) -> None:
    assert judge(policy(admit), identity, user, in_private=in_private) == (verdict, role)


def test_somebody_taken_off_the_owners_is_an_ordinary_person() -> None:
    former = User(3, "Bob", Role.OWNER)
    assert judge(policy(), "telegram:3", former, in_private=True) == (Verdict.ADMIT, Role.MEMBER)


_KEYS = st.sets(st.sampled_from(("telegram:1", "telegram:9", "matrix:@ada:example.org", "matrix:1", LOCAL)), min_size=1)


@given(theirs=_KEYS, owners=_KEYS, role=st.sampled_from(Role))
def test_somebody_is_an_owner_under_all_identities_where_one_of_them_is_named(
    theirs: set[str], owners: set[str], role: Role
) -> None:
    person = User(1, "Ada", role, identities=tuple(theirs))
    found = {judge(Policy(frozenset(owners), "pairing"), each, person, in_private=True) for each in theirs}
    assert len(found) == 1
    [(verdict, given_role)] = found
    assert verdict is Verdict.ADMIT
    assert (given_role is Role.OWNER) == bool(theirs & {LOCAL, *owners})


def test_p04_an_owners_number_on_another_transport_is_not_the_owner() -> None:
    assert judge(policy(), "matrix:1", None, in_private=True)[0] is Verdict.PAIR
