"""Where one of a provider's models is not to be had, the next lesser one answers; nobody asks for it all the time."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.models.lesser import REST_SECONDS, LesserModel
from memory.ports import (
    Account,
    Failure,
    ModelError,
    ModelRequest,
    Purpose,
    Tier,
    complete,
)
from tests.fakes.histories import user
from tests.fakes.model import Fails, Says, ScriptedModel

MODELS = {Tier.SMART: "opus", Tier.DEFAULT: "sonnet", Tier.SMALL: "haiku", Tier.ADVISOR: "opus"}
GONE = Fails(Failure.NO_MODEL, is_of_model=True)
ASK = ModelRequest((user("hi"),), tier=Tier.SMART, account=Account(Purpose.CHAT, 1))


class Ticking:
    """Seconds that a test owns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lesser(*script: Says | Fails, clock: Callable[[], float] = lambda: 0.0) -> tuple[LesserModel, ScriptedModel]:
    model = ScriptedModel(*script, always="Yes.")
    return LesserModel(model, MODELS, clock), model


def tiers(model: ScriptedModel) -> list[Tier]:
    return [request.tier for request in model.requests]


async def test_the_next_tier_answers_and_each_person_is_told_once() -> None:
    steps, model = lesser(GONE)
    first = await complete(steps, ASK)
    second = await complete(steps, ASK)
    other = await complete(steps, replace(ASK, account=Account(Purpose.CHAT, 2)))
    assert [each.missing for each in (first, second, other)] == ["opus", "", "opus"]
    assert tiers(model) == [Tier.SMART, Tier.DEFAULT, Tier.DEFAULT, Tier.DEFAULT]


async def test_it_is_asked_for_again_after_an_hour() -> None:
    clock = Ticking()
    steps, model = lesser(GONE, clock=clock)
    await complete(steps, ASK)
    clock.now = REST_SECONDS + 1
    assert (await complete(steps, ASK)).missing == ""
    assert tiers(model) == [Tier.SMART, Tier.DEFAULT, Tier.SMART]


async def test_two_missing_models_are_two_steps() -> None:
    steps, model = lesser(GONE, GONE)
    assert (await complete(steps, ASK)).missing == "opus"
    assert tiers(model) == [Tier.SMART, Tier.DEFAULT, Tier.SMALL]
    assert (await complete(steps, replace(ASK, tier=Tier.DEFAULT))).missing == "sonnet"
    assert tiers(model)[3:] == [Tier.SMALL]


async def test_where_none_is_to_be_had_it_is_not_about_a_model() -> None:
    """A key that was mended answers with the right model at once."""
    steps, model = lesser(GONE, GONE, GONE)
    with pytest.raises(ModelError):
        await complete(steps, ASK)
    await complete(steps, ASK)
    assert tiers(model) == [Tier.SMART, Tier.DEFAULT, Tier.SMALL, Tier.SMART]


@pytest.mark.parametrize("tier", [Tier.SMALL, Tier.ADVISOR])
async def test_some_have_no_lesser_one(tier: Tier) -> None:
    """What runs in the background would be dearer, and what asks for advice is the next one itself."""
    steps, model = lesser(GONE)
    with pytest.raises(ModelError):
        await complete(steps, replace(ASK, tier=tier))
    assert tiers(model) == [tier]


async def test_other_failures_are_nobody_elses_business() -> None:
    steps, model = lesser(Fails(Failure.OVERLOADED))
    with pytest.raises(ModelError):
        await complete(steps, ASK)
    await complete(steps, ASK)
    assert tiers(model) == [Tier.SMART, Tier.SMART]
