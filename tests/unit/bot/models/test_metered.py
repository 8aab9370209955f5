"""Every call is on the bill, and none is made beyond the budget."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest
import sqlalchemy as sa

from bot.models.metered import MeteredModel
from bot.models.prices import read_prices
from memory.budget import Budget, BudgetSettings
from memory.ports import (
    Account,
    Billed,
    Failure,
    Finished,
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelTraits,
    Purpose,
    StopReason,
    TextDelta,
    Tier,
    Usage,
    complete,
)
from memory.storage.database import Database
from memory.storage.tables import spend
from tests.fakes.clock import FrozenClock
from tests.fakes.histories import user
from tests.fakes.model import TRAITS, Fails, Says, ScriptedModel

SONNET = "claude-sonnet-5-5"
ASK = ModelRequest((user("hi"),), account=Account(Purpose.SUMMARY))


class BillingModel:
    """Says "ok" and costs what it is told to."""

    def __init__(self, *lines: Billed) -> None:
        self.lines = lines
        self.calls = 0

    async def traits(self, tier: Tier = Tier.DEFAULT) -> ModelTraits:
        return replace(TRAITS, name=f"{SONNET}" if tier else SONNET)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        del request
        self.calls += 1
        yield TextDelta("ok")
        yield Finished(StopReason.END, "ok", usage=self.lines[0].usage, model=self.lines[0].model, billed=self.lines)

    async def close(self) -> None:
        return


def metered(
    database: Database, clock: FrozenClock, model: LanguageModel, limits: BudgetSettings | None = None
) -> MeteredModel:
    return MeteredModel(model, read_prices(), Budget(database, clock, limits or BudgetSettings()))


async def rows(database: Database) -> list[sa.RowMapping]:
    async with database.read() as connection:
        return list((await connection.execute(sa.select(spend).order_by(spend.c.id))).mappings())


async def test_a_call_is_charged_line_by_line(database: Database, clock: FrozenClock) -> None:
    """What was billed beside the answer too; the answer says what all of it cost."""
    lines = Billed(SONNET, Usage(1000, 500, 10_000, 2000, 2000)), Billed("claude-opus-5-5", Usage(100, 10))
    finished = await complete(metered(database, clock, BillingModel(*lines)), ASK)
    first, second = await rows(database)
    assert finished.nano_usd == first["nano_usd"] + second["nano_usd"] == 16_000_000 + 600_000
    assert (first["purpose"], first["model"], first["cache_write_1h"]) == ("summary", SONNET, 2000)
    assert not first["is_estimate"]


async def test_a_model_without_a_price_is_counted_in_tokens(database: Database, clock: FrozenClock) -> None:
    """Its cost is unknown, which is not nothing."""
    finished = await complete(metered(database, clock, BillingModel(Billed("qwen3", Usage(7, 5)))), ASK)
    [row] = await rows(database)
    assert (row["nano_usd"], row["input"], row["output"], finished.nano_usd) == (None, 7, 5, None)


async def test_p55_background_work_stops_at_its_budget(database: Database, clock: FrozenClock) -> None:
    """Nothing is asked any more until the next day, however often it is tried; people are not affected."""
    model = BillingModel(Billed(SONNET, Usage(50_000, 0)))  # a tenth of a dollar
    bounded = metered(database, clock, model, BudgetSettings(background=0.25))
    for _ in range(3):
        await complete(bounded, ASK)
    for _ in range(20):
        with pytest.raises(ModelError) as raised:
            await complete(bounded, ASK)
        assert (raised.value.failure, raised.value.retry_after) == (Failure.BUDGET, 12 * 3600)
    assert model.calls == 3
    await complete(bounded, replace(ASK, account=Account(Purpose.CHAT)))
    clock.advance(hours=12)
    await complete(bounded, ASK)
    assert model.calls == 5


async def test_advice_has_a_budget_within_that_of_the_person(database: Database, clock: FrozenClock) -> None:
    """When it is spent the person is still answered."""
    model = BillingModel(Billed(SONNET, Usage(50_000, 0)))
    async with database.write() as connection:
        await connection.execute(
            sa.text("INSERT INTO users (name, role, client_language, created_at) VALUES ('A', 'member', 'en', 0)")
        )
    bounded = metered(database, clock, model, BudgetSettings(per_user=0.25, advisor=0.1))
    chat, advice = Account(Purpose.CHAT, 1), Account(Purpose.ADVISOR, 1)
    await complete(bounded, replace(ASK, account=advice))
    with pytest.raises(ModelError):
        await complete(bounded, replace(ASK, account=advice))
    await complete(bounded, replace(ASK, account=chat))
    await complete(bounded, replace(ASK, account=chat))
    with pytest.raises(ModelError):
        await complete(bounded, replace(ASK, account=chat))


async def test_an_answer_that_is_stopped_is_charged_by_a_guess(database: Database, clock: FrozenClock) -> None:
    """The provider bills it as well; nobody gets around a limit by stopping every answer."""
    gate = asyncio.Event()
    model = metered(database, clock, ScriptedModel(Says("one two three", gate=gate)))
    async with aclosing(model.stream(ASK)) as events:
        assert isinstance(await anext(events), TextDelta)
    [row] = await rows(database)
    assert (row["is_estimate"], row["model"], row["output"]) == (True, "scripted", 1)


async def test_an_answer_that_is_cancelled_before_its_first_word_is_charged(
    database: Database, clock: FrozenClock
) -> None:
    """Thinking costs, too."""

    class Silent(BillingModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            del request
            await asyncio.Event().wait()
            yield TextDelta("")

    asking = asyncio.create_task(complete(metered(database, clock, Silent(Billed(SONNET, Usage()))), ASK))
    await asyncio.sleep(0.05)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    [row] = await rows(database)
    assert (row["is_estimate"], row["model"]) == (True, SONNET)


@pytest.mark.parametrize(
    ("failed", "charged"), [(Fails(Failure.OVERLOADED), 0), (Fails(Failure.CUT, after="It is"), 1)]
)
async def test_a_failure_costs_only_what_it_had_begun(
    database: Database, clock: FrozenClock, failed: Fails, charged: int
) -> None:
    """Refused at once: nothing."""
    with pytest.raises(ModelError):
        await complete(metered(database, clock, ScriptedModel(failed)), ASK)
    assert len(await rows(database)) == charged
