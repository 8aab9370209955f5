"""What the model is shown, in which order."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from handlers.prompt import Situation, build, fence, window_start
from memory.ports import ChatMessage, ModelTraits, TextBlock, ToolCall, ToolResult, ToolSpec
from memory.scope import Scope
from memory.types import Fact, Message, Origin, Recall, Recollection

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TRAITS = ModelTraits("m", can_call_tools=True, can_follow_schema=True, context_tokens=100_000)
TOOL = ToolSpec("remember_fact", "", {"type": "object"})


def said(id: int, role: str, text: str, *, speaker: str = "Ada", blocks: list[dict[str, str]] | None = None) -> Message:
    return Message(id, 1, role, speaker, text, Origin.TYPED, blocks, NOW)


def fact(text: str, speaker: str = "Ada") -> Fact:
    return Fact(1, "u1", Scope.PRIVATE, text, speaker, None, (), NOW)


def situation(**changes: object) -> Situation:
    base = Situation(
        "Merk", NOW, is_private=True, history=[], newest=said(9, "user", "What is my dog called?"), recall=Recall()
    )
    return replace(base, **changes)  # pyright: ignore[reportArgumentType]


def words(message: ChatMessage) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))


def test_p60_own_facts_stand_in_full_in_the_stable_prefix() -> None:
    request = build(situation(recall=Recall(facts=(fact("My dog is called Bruno."),))), TRAITS, [TOOL])
    assert "Bruno" in request.system[1].text
    assert request.system[1].cache
    assert "Bruno" not in words(request.messages[-1])


def test_p54_what_changes_from_turn_to_turn_is_in_the_newest_user_turn() -> None:
    found = Recollection(3, "Trip", "They planned a trip to Riga.", NOW, 0.5, "similar")
    later = situation(recall=Recall(facts=(fact("x"),), recollections=(found,)), now=NOW.replace(hour=13))
    first = build(situation(recall=Recall(facts=(fact("x"),))), TRAITS, [TOOL])
    second = build(later, TRAITS, [TOOL])
    assert first.system == second.system
    assert first.tools == second.tools
    assert "Riga" in words(second.messages[-1])
    assert "2026-03-01" in words(second.messages[-1])


def test_p01_in_a_group_facts_never_have_the_systems_authority() -> None:
    request = build(situation(is_private=False, recall=Recall(facts=(fact("We meet on Monday."),))), TRAITS, [TOOL])
    assert len(request.system) == 1
    assert "We meet on Monday." in words(request.messages[-1])


def test_p07_in_a_group_everyone_is_named() -> None:
    request = build(situation(is_private=False, history=[said(1, "user", "hello", speaker="Bob")]), TRAITS, [])
    assert words(request.messages[0]) == "Bob: hello"


def test_sections_without_content_are_left_out() -> None:
    request = build(situation(), TRAITS, [TOOL])
    assert len(request.system) == 1
    assert "<known" not in words(request.messages[-1])


def test_a_small_model_gets_facts_beside_the_question() -> None:
    small = replace(TRAITS, facts_near_question=True, can_call_tools=False)
    request = build(situation(recall=Recall(facts=(fact("My dog is called Bruno"),))), small, [TOOL])
    assert words(request.messages[-1]).startswith("Known facts: My dog is called Bruno.\nQuestion: What is my dog")
    assert not request.tools
    assert "Bruno" not in request.system[0].text


def test_finished_tool_calls_are_one_line_stubs() -> None:
    history = [
        said(1, "user", "remember it"),
        said(2, "assistant", "Done.", blocks=[{"tool": "remember_fact", "outcome": "done"}]),
    ]
    shown = build(situation(history=history), TRAITS, [TOOL]).messages
    assert [message.role for message in shown] == ["user", "assistant", "user", "assistant", "user"]
    call, result = shown[1].blocks[0], shown[2].blocks[0]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (call.id, call.input, result.text) == (result.call_id, {}, "done")


def test_a_model_without_tools_sees_no_calls() -> None:
    history = [said(1, "user", "x"), said(2, "assistant", "y", blocks=[{"tool": "t", "outcome": "done"}])]
    without = replace(TRAITS, can_call_tools=False)
    assert [message.role for message in build(situation(history=history), without, [TOOL]).messages] == [
        "user",
        "assistant",
        "user",
    ]


def test_history_begins_with_a_person() -> None:
    shown = build(situation(history=[said(1, "assistant", "orphan")]), TRAITS, []).messages
    assert [message.role for message in shown] == ["user"]


def test_what_a_tool_left_for_good_may_begin_the_history() -> None:
    kept = said(1, "assistant", "Dear all", blocks=[{"tool": "keep_draft", "outcome": "done", "title": "Mail"}])
    for traits in (TRAITS, replace(TRAITS, can_call_tools=False)):
        shown = build(situation(history=[kept]), traits, [TOOL]).messages
        assert shown[0].role == "user"
        assert any(words(message) == "Dear all" for message in shown)


@given(st.text())
def test_p23_data_cannot_leave_its_fence(text: str) -> None:
    fenced = fence("facts", json.dumps([text], ensure_ascii=False))
    assert fenced.count("<known") == 1
    assert fenced.count("</known>") == 1
    assert fenced.endswith("\n</known>")


@given(st.integers(0, 500), st.integers(2, 30), st.integers(0, 30))
def test_the_window_is_cut_in_steps(count: int, window: int, more: int) -> None:
    window_max = window + more
    start = window_start(count, window, window_max)
    assert 0 <= start <= count
    assert count - start <= window_max
    assert count - start >= min(count, window)
    assert window_start(count + 1, window, window_max) >= start


def test_the_cached_prefix_survives_between_two_cuts() -> None:
    starts = [window_start(count, 12, 24) for count in range(60)]
    assert starts[24] == 0
    assert starts[25] == 12
    assert len(set(starts[25:36])) == 1
