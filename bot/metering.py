"""Puts the meter around a model: prices, the day's budget and the ledger, from the settings."""

from weakref import WeakKeyDictionary

from bot.config import ConfigError, Settings
from bot.models.metered import MeteredModel
from bot.models.prices import PricesError, read_prices
from memory.budget import Budget, BudgetSettings
from memory.ports import Clock, LanguageModel
from memory.storage.database import Database

_BUDGETS: WeakKeyDictionary[Database, Budget] = WeakKeyDictionary()
"""One a database: it remembers today's sums, so whatever is charged has to pass it."""


def make_budget(settings: Settings, clock: Clock, database: Database) -> Budget:
    section = settings.budget
    limits = BudgetSettings(
        per_user=section.per_user_daily_usd,
        background=section.background_daily_usd,
        advisor=section.advisor_daily_usd,
        timezone=settings.tenant.timezone,
    )
    known = _BUDGETS.get(database)
    if known is None or known.settings != limits:
        known = _BUDGETS[database] = Budget(database, clock, limits)
    return known


def meter(settings: Settings, clock: Clock, database: Database, model: LanguageModel) -> MeteredModel:
    """Every part of the program that asks a model gets it from here. Raises `ConfigError`."""
    try:
        prices = read_prices(settings.model.prices)
    except PricesError as error:
        raise ConfigError(f"model.prices: {error}. Compare with bot/models/prices.toml.") from error
    return MeteredModel(model, prices, make_budget(settings, clock, database))
