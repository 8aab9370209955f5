"""Why a prompt does not begin as the last one did."""

from dataclasses import replace
from typing import Any

import pytest

from handlers.answering.prefix import broke, prefix_of
from handlers.prompt import Situation, build
from memory.ports import Compacted, ToolSpec
from memory.types import Recall
from tests.unit.handlers.test_prompt import TOOL, TRAITS, fact, said, situation

HISTORY = [said(1, "user", "a"), said(2, "assistant", "b"), said(3, "user", "c"), said(4, "assistant", "d")]
BASE = situation(history=HISTORY, recall=Recall(facts=(fact("My dog is called Bruno."),)))
OTHER = ToolSpec("other", "", {"type": "object"})


def reason(before: Situation, now: Situation, *, tools: Any = (TOOL,), model: str = "m") -> str | None:
    built = build(now, TRAITS, list(tools))
    last = prefix_of(before, build(before, TRAITS, [TOOL]), "m")
    return broke(last, prefix_of(now, built, model), built)


def test_p54_a_chat_that_goes_on_begins_as_it_did() -> None:
    """The question becomes history; the clock and what is recalled are no part of it."""
    more = [*HISTORY, said(9, "user", "What is my dog called?"), said(10, "assistant", "Bruno.")]
    now = replace(BASE, history=more, newest=said(11, "user", "And?"), earlier="So far.", now=BASE.now.replace(hour=3))
    assert reason(BASE, now) is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"persona": "A pirate."}, "persona_changed"),
        ({"instructions": "Be brief."}, "instructions_changed"),
        ({"recall": Recall(facts=(fact("My dog is called Rex."),))}, "facts_changed"),
        ({"compacted": Compacted("So far.", {"type": "compaction"}, "m")}, "compacted"),
        ({"history": HISTORY[2:]}, "history_cut"),
        ({"history": [*HISTORY[:2], said(3, "user", "C"), HISTORY[3]]}, "history_changed"),
        ({"history": HISTORY[:2]}, "history_changed"),
    ],
)
def test_what_changed_is_named(change: dict[str, Any], named: str) -> None:
    assert reason(BASE, replace(BASE, **change)) == named


def test_another_model_or_other_tools_are_named_first() -> None:
    assert reason(BASE, BASE, model="other") == "model_switched"
    assert reason(BASE, BASE, tools=(TOOL, OTHER)) == "tools_changed"
