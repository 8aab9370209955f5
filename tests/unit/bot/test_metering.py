"""The meter and the stand-ins, as the settings have them."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.config import AnthropicModels, ConfigError, Model, OllamaModels, Settings, Tenant
from bot.metering import meter
from bot.models.fallback import FallbackModel
from bot.providers import choose_model, with_fallbacks
from memory.ports import Tier
from memory.storage.database import Database
from tests.fakes.clock import FrozenClock
from tests.fakes.model import ScriptedModel

NOWHERE = "http://127.0.0.1:9"


def settings(folder: Path, **model: object) -> Settings:
    claude = AnthropicModels(api_key=SecretStr("sk-test"), base_url=NOWHERE)
    return Settings(tenant=Tenant(data_dir=folder), model=Model.model_validate({"anthropic": claude, **model}))


def no_progress(_done: int, _all: int) -> None: ...


async def test_prices_that_cannot_be_read_end_the_start(tmp_path: Path, database: Database) -> None:
    """With the key and what to compare with."""
    wrong = settings(tmp_path, prices=tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"model\.prices: .*none\.toml cannot be read"):
        meter(wrong, FrozenClock(), database, ScriptedModel())


async def test_without_a_list_nobody_stands_in(tmp_path: Path) -> None:
    """The model stays the one that was chosen."""
    chosen = await choose_model(settings(tmp_path), no_progress)
    assert await with_fallbacks(settings(tmp_path), chosen, no_progress) is chosen
    await chosen.model.close()


async def test_a_stand_in_that_is_down_at_the_start_may_come_later(tmp_path: Path) -> None:
    """Where its model is named; the provider itself and repeats in the list are left out."""
    ollama = OllamaModels(host=NOWHERE, chat="qwen3")
    own = settings(tmp_path, fallback=("anthropic", "ollama", "ollama"), ollama=ollama)
    chosen = await with_fallbacks(own, await choose_model(own, no_progress), no_progress)
    assert isinstance(chosen.model, FallbackModel)
    assert chosen.said == "Model: Claude (claude-sonnet-5-5). While it is down: Ollama."
    await chosen.model.close()


async def test_a_stand_in_that_cannot_be_made_is_left_out(tmp_path: Path) -> None:
    """An Ollama that does not answer, and of which no model is known."""
    own = settings(tmp_path, fallback=("ollama",), ollama=OllamaModels(host=NOWHERE))
    chosen = await with_fallbacks(own, await choose_model(own, no_progress), no_progress)
    assert not isinstance(chosen.model, FallbackModel)
    await chosen.model.close()


@pytest.mark.parametrize(
    ("models", "has_advisor"),
    [
        ({}, True),
        ({"default": "claude-opus-5-5"}, False),
        ({"default": "claude-opus-5-5", "advisor": "claude-fable-5-2"}, True),
    ],
)
async def test_there_is_an_advisor_where_one_is_stronger(
    tmp_path: Path, models: dict[str, str], has_advisor: bool
) -> None:
    """Not where the model that answers is the smartest already."""
    claude = AnthropicModels(api_key=SecretStr("sk-test"), base_url=NOWHERE, **models)  # pyright: ignore[reportArgumentType]
    chosen = await choose_model(Settings(model=Model(anthropic=claude), tenant=Tenant(data_dir=tmp_path)), no_progress)
    assert chosen.has_advisor is has_advisor
    assert (await chosen.model.traits(Tier.ADVISOR)).name == (claude.advisor or claude.smart)
    await chosen.model.close()
