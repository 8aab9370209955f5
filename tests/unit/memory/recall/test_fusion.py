"""Fusion: one score of several, pure arithmetic."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config import MemorySection
from memory.recall.fusion import WEIGHTS, WORDS, Method, fuse, to_unit
from memory.types import MemorySettings
from tests.unit.memory.world import World

METHODS: tuple[Method, ...] = ("linear", "rrf", "weighted_rrf", "minmax")
columns = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20)


def _views(**views: list[float]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    return {name: np.array(view, dtype=np.float32) for name, view in views.items()}


def test_the_linear_fusion_is_a_weighted_sum() -> None:
    found = fuse(_views(said=[1, 0], speaker=[0, 1]), weights={"said": 2.0, "speaker": 0.5})
    assert found.tolist() == [2.0, 0.5]


def test_a_word_in_common_does_not_drown_what_was_said_in_another_language() -> None:
    views = _views(said=[0.2, 0.0], around=[0.2, 0.0], session=[0.2, 0.0], meaning=[0.2, 1.0])
    found = fuse(views, foreign=np.array([False, True]))
    assert found[1] > found[0]


def test_what_words_say_is_never_lowered_by_meaning() -> None:
    views = _views(said=[1.0, 0.9], around=[1.0, 0.9], session=[1.0, 0.9], meaning=[0.0, 0.0])
    assert fuse(views).argmax() == 0


def test_reciprocal_ranks_forget_how_far_apart_scores_are() -> None:
    near, far = _views(said=[1.0, 0.99]), _views(said=[1.0, 0.01])
    assert fuse(near, method="rrf").tolist() == fuse(far, method="rrf").tolist()


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="use linear, rrf"):
        fuse(_views(said=[1.0]), method="magic")  # pyright: ignore[reportArgumentType]


@given(columns)
def test_every_method_keeps_the_order_of_a_single_view(scores: list[float]) -> None:
    for method in METHODS:
        found = fuse(_views(said=scores), method=method)
        assert len(found) == len(scores)
        assert found[int(np.argmax(scores))] == found.max()


@given(columns)
def test_a_unit_view_lies_between_0_and_1(scores: list[float]) -> None:
    found = to_unit(np.array(scores, dtype=np.float32))
    assert found.min() >= 0
    assert found.max() <= 1.000001


def test_the_views_that_need_words_have_weights() -> None:
    assert set(WORDS) <= WEIGHTS.keys()


def test_what_counts_against_a_candidate_does_so_in_every_fusion() -> None:
    """A message that was replaced stands below an equal one, whatever the method."""
    for method in METHODS:
        found = fuse(_views(said=[1.0, 1.0], replaced=[1.0, 0.0]), method=method)
        assert found[1] > found[0], method


def test_candidates_that_are_alike_share_a_rank() -> None:
    for method in METHODS:
        found = fuse(_views(said=[0.5, 0.5, 0.5], meaning=[0.1, 0.1, 0.1]), method=method)
        assert found[0] == found[1] == found[2], method


def test_the_setting_names_every_fusion_and_its_default_is_the_measured_one() -> None:
    field = MemorySection.model_fields["fusion"]
    assert get_args(field.annotation) == get_args(Method) == METHODS
    assert field.default == MemorySettings().fusion == "linear"


async def test_the_setting_decides_how_messages_are_ranked(world: World) -> None:
    """Words that stand in one message only are worth the same to ranks, however many they are."""
    ada = await world.person("ada")
    await world.talk(ada, "The fence needs blue paint from the shop in town.", "OK")
    await world.talk(ada, "I saw a fence.", "OK")
    traces: dict[str, float] = {}
    for method in METHODS:
        memory = world.reborn(settings=MemorySettings(learn_after=0.01, fusion=method))
        await memory.open()
        await memory.learn()
        trace = (await memory.recall(ada, 0, "Which paint for the fence?")).trace
        traces[method] = trace["candidates"][0]["score"]
        assert trace["candidates"][0]["message"] == 1
    assert len(set(traces.values())) == len(METHODS)
