"""The bill over the wire: what the stand-in of the Messages API says it served is what is charged."""

from dataclasses import replace

import sqlalchemy as sa

from bot.models.anthropic import AnthropicModel
from bot.models.metered import MeteredModel
from bot.models.prices import read_prices
from memory.budget import Budget, BudgetSettings
from memory.ports import Account, ModelRequest, Purpose, TextBlock, Tier, complete
from memory.storage.database import Database
from memory.storage.tables import spend
from tests.fakes.clock import FrozenClock
from tests.fakes.histories import user
from tests.fakes.messages_api import MessagesApi

MODELS = {Tier.DEFAULT: "claude-sonnet-5-5", Tier.SMART: "claude-opus-5-5", Tier.SMALL: "claude-haiku-5-5"}
PREFIX = TextBlock("You are kind and brief. " * 400, cache=True)
ASK = ModelRequest((user("hi"),), system=(PREFIX,), account=Account(Purpose.SUMMARY))


async def test_writes_and_reads_of_the_cache_are_charged_as_what_they_are(
    database: Database, clock: FrozenClock
) -> None:
    """The first call writes the prefix for an hour, at twice the price; the second reads it at a twentieth."""
    async with MessagesApi() as api:
        claude = AnthropicModel(api_key="test", base_url=api.base_url, models=MODELS)
        model = MeteredModel(claude, read_prices(), Budget(database, clock, BudgetSettings()))
        first = await complete(model, ASK)
        second = await complete(model, ASK)
        await complete(model, replace(ASK, tier=Tier.SMART))
        await claude.close()
    written = first.usage.cache_write
    assert written > 2000
    assert first.usage.cache_write_1h == written
    assert first.nano_usd == 2000 * first.usage.input + 10_000 * first.usage.output + 4000 * written
    assert (second.usage.cache_read, second.usage.cache_write) == (written, 0)
    assert second.nano_usd == 2000 * second.usage.input + 10_000 * second.usage.output + 100 * written
    async with database.read() as connection:
        rows = (await connection.execute(sa.select(spend).order_by(spend.c.id))).mappings().all()
    assert [row["model"] for row in rows] == ["claude-sonnet-5-5", "claude-sonnet-5-5", "claude-opus-5-5"]
    assert [row["nano_usd"] for row in rows[:2]] == [first.nano_usd, second.nano_usd]
    assert rows[2]["cache_write_1h"] == written  # another model has a cache of its own: a switch pays for it
