"""What may be spent in a day: days of the tenant's zone, limits that hold, words that are said once."""

from datetime import UTC, datetime

import pytest

from memory.budget import NANO, Budget, BudgetSettings
from memory.ports import Account, Billed, Purpose, Usage
from memory.storage import spend
from memory.storage.database import Database
from memory.storage.spend import Charge
from tests.fakes.clock import FrozenClock

BACKGROUND = Account(Purpose.EXTRACTION)
SETTINGS = BudgetSettings(per_user=1.0, background=1.0, timezone="Europe/Berlin")


def charge(account: Account, usd: float | None, model: str = "m") -> Charge:
    return Charge(account, Billed(model, Usage(10, 5, 20, 5)), None if usd is None else round(usd * NANO))


@pytest.mark.parametrize(
    ("now", "began", "left"),
    [
        ("2026-03-01T12:00+00:00", "2026-02-28T23:00+00:00", 11 * 3600),
        ("2026-03-01T23:30+00:00", "2026-03-01T23:00+00:00", 23.5 * 3600),
        ("2026-03-29T12:00+00:00", "2026-03-28T23:00+00:00", 10 * 3600),  # the clocks go forward: a day of 23 hours
        ("2026-10-25T12:00+00:00", "2026-10-24T22:00+00:00", 11 * 3600),  # and back: one of 25
    ],
)
async def test_a_day_is_one_of_the_tenants_zone(database: Database, now: str, began: str, left: float) -> None:
    """Also on the two days of a year that are not 24 hours long."""
    budget = Budget(database, FrozenClock(datetime.fromisoformat(now)), SETTINGS)
    assert datetime.fromtimestamp(budget.day_began() / 1000, UTC) == datetime.fromisoformat(began)
    assert budget.until_midnight() == left


async def test_what_was_spent_yesterday_does_not_count(database: Database, clock: FrozenClock) -> None:
    """At midnight it begins anew; the month goes on."""
    budget = Budget(database, clock, SETTINGS)
    await budget.charge([charge(BACKGROUND, 0.6), charge(Account(Purpose.SUMMARY), 0.4)])
    assert not await budget.may_spend(BACKGROUND)
    clock.advance(seconds=budget.until_midnight())
    assert await budget.may_spend(BACKGROUND)
    async with database.read() as connection:
        assert (await spend.total(connection, since=budget.month_began())).nano_usd == NANO
        assert (await spend.total(connection, since=budget.day_began())).tokens == 0


async def test_limits_hold_for_a_new_process(database: Database, clock: FrozenClock) -> None:
    """Nothing is kept outside of the database: neither what was spent, nor what was lifted or said."""
    await Budget(database, clock, SETTINGS).charge([charge(BACKGROUND, 1.0)])
    assert not await Budget(database, clock, SETTINGS).may_spend(BACKGROUND)
    assert await Budget(database, clock, SETTINGS).say_once("stopped", BACKGROUND)
    assert not await Budget(database, clock, SETTINGS).say_once("stopped", BACKGROUND)
    await Budget(database, clock, SETTINGS).lift("background")
    assert await Budget(database, clock, SETTINGS).may_spend(BACKGROUND)
    clock.advance(hours=24)
    again = Budget(database, clock, SETTINGS)
    await again.charge([charge(BACKGROUND, 1.0)])
    assert not await again.may_spend(BACKGROUND)
    assert await again.say_once("stopped", BACKGROUND)


async def test_without_a_limit_nothing_stops(database: Database, clock: FrozenClock) -> None:
    """Infinity is no limit, nothing is one."""
    await Budget(database, clock, SETTINGS).charge([charge(BACKGROUND, 1000.0)])
    assert await Budget(database, clock, BudgetSettings()).may_spend(BACKGROUND)
    assert not await Budget(database, clock, BudgetSettings(per_user=0.0)).may_spend(Account(Purpose.CHAT, 1))


async def test_sums_keep_priced_and_unpriced_apart(database: Database, clock: FrozenClock) -> None:
    """By purpose and by model, the dearest first."""
    budget = Budget(database, clock, SETTINGS)
    await budget.charge([charge(BACKGROUND, 0.1), charge(Account(), None, "qwen3"), charge(Account(), 0.3)])
    async with database.read() as connection:
        total = await spend.total(connection, since=0)
        purposes = await spend.by_purpose(connection, since=0)
        models = await spend.by_model(connection, since=0)
        people = await spend.by_person(connection, since=0)
    assert (total.nano_usd, total.tokens, total.unpriced_tokens) == (round(0.4 * NANO), 120, 40)
    assert [(each.name, each.tokens) for each in purposes] == [("chat", 80), ("extraction", 40)]
    assert [(each.name, each.unpriced_tokens) for each in models] == [("m", 0), ("qwen3", 40)]
    assert [each.name for each in people] == [""]
