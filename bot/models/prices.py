"""Prices of models, read from data with a date: what a call cost, to the nano dollar. Pure but for reading the file."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory.ports import Billed, Usage

BUILT_IN = Path(__file__).with_name("prices.toml")
_NANO_PER_MILLIONTH = 1000
_DATED = re.compile(r"-20\d{6}$")
"""Some ids end in the day of their release; the price is that of the model."""


class PricesError(ValueError):
    """The file of prices cannot be used; the text says why."""


class _Row(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Rates(_Row):
    """US dollars per million tokens."""

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cache_read: Decimal = Field(ge=0)


class LongRates(Rates):
    """For prompts of more than `above` tokens, caches included."""

    above: int = Field(ge=0)


class Price(Rates):
    long: LongRates | None = None


class _File(_Row):
    as_of: date
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    batch: Decimal | None = None
    models: Mapping[str, Price] = {}


@dataclass(frozen=True, slots=True)
class Prices:
    """What is known of prices on a day."""

    as_of: date
    cache_write: Decimal
    """Of five minutes, as a multiple of `input`."""
    cache_write_1h: Decimal
    batch: Decimal
    models: Mapping[str, Price]

    def cost(self, billed: Billed, *, in_batch: bool = False) -> int | None:
        """Nano US dollars of one line of a bill; None for a model without a price."""
        price = self.models.get(billed.model) or self.models.get(_DATED.sub("", billed.model))
        if price is None:
            return None
        usage = billed.usage
        rates = _rates(price, usage)
        written = (usage.cache_write - usage.cache_write_1h) * self.cache_write
        written += usage.cache_write_1h * self.cache_write_1h
        usd_of_a_million = (
            (usage.input + written) * rates.input + usage.cache_read * rates.cache_read + usage.output * rates.output
        )
        nano = usd_of_a_million * _NANO_PER_MILLIONTH * (self.batch if in_batch else 1)
        return int(nano.to_integral_value(ROUND_HALF_UP))


def read_prices(own: Path | None = None) -> Prices:
    """The prices that come with Merk, and over them those of a file of one's own. Raises `PricesError`."""
    base = _read(BUILT_IN)
    over = _read(own) if own is not None else base
    given = {
        name: getattr(over, name) if getattr(over, name) is not None else getattr(base, name)
        for name in ("cache_write", "cache_write_1h", "batch")
    }
    return Prices(over.as_of, models={**base.models, **over.models}, **given)


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal))
    except OSError as error:
        raise PricesError(f"{path} cannot be read ({error.strerror})") from error
    except tomllib.TOMLDecodeError as error:
        raise PricesError(f"{path} is not valid TOML ({error})") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise PricesError(f"{path}: {where}: {first['msg']}") from error


def _rates(price: Price, usage: Usage) -> Rates:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return price.long if price.long is not None and prompt > price.long.above else price
