"""What may be sent to a model at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.models.history import check_history
from memory.ports import ChatMessage, Failure, ModelError, TextBlock, ToolCall, ToolResult
from tests.fakes.histories import answerable_histories, assistant, tool_round, user

ASK = ChatMessage("assistant", (ToolCall("a", "look_up", {}), ToolCall("b", "look_up", {})))
ANSWER_A = ToolResult("a", "look_up", "1")
ANSWER_B = ToolResult("b", "look_up", "2")


@given(answerable_histories())
def test_histories_that_providers_take_pass(messages: list[ChatMessage]) -> None:
    """Tool results in any order, neighbours of one role and blank blocks are all fine."""
    check_history(messages)


@given(answerable_histories(), st.data())
def test_p56_a_call_without_its_result_is_refused(messages: list[ChatMessage], data: st.DataObject) -> None:
    """Whichever result is lost, the history is refused here and not by the API for ever."""
    places = [
        (index, block)
        for index, message in enumerate(messages)
        for block in message.blocks
        if isinstance(block, ToolResult)
    ]
    if not places:
        return
    index, lost = data.draw(st.sampled_from(places))
    kept = tuple(block for block in messages[index].blocks if block is not lost) or (TextBlock("instead"),)
    broken = [*messages[:index], ChatMessage("user", kept), *messages[index + 1 :]]
    with pytest.raises(ModelError) as caught:
        check_history(broken)
    assert caught.value.failure is Failure.BAD_REQUEST


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "empty"),
        ([assistant("hi"), user("hi")], "begin and end"),
        ([user("hi"), assistant("hi")], "begin and end"),
        ([user(" \n")], "message 0 is empty"),
        ([user("hi"), ASK, ChatMessage("user", (ANSWER_A,))], "are answered by"),
        ([user("hi"), ASK, ChatMessage("user", (ANSWER_A, ANSWER_B, ANSWER_A))], "are answered by"),
        ([user("hi"), ASK, user("never mind")], "are answered by"),
        ([ChatMessage("user", (ANSWER_A,))], "are answered by"),
        ([user("hi"), ASK, ChatMessage("user", (ANSWER_A, TextBlock("so?"), ANSWER_B))], "before the text"),
        ([user("hi"), ASK, user("so?"), ChatMessage("user", (ANSWER_A, ANSWER_B))], "before the text"),
        ([user("hi"), ChatMessage("assistant", (ANSWER_A,)), user("hi")], "holds a tool result"),
        ([ChatMessage("user", (ToolCall("a", "look_up", {}),))], "holds a tool call"),
        ([user("hi"), *tool_round("x", {}, "1"), *tool_round("x", {}, "1")], "appears twice"),
        ([user("hi"), *tool_round("x", {}, "1", call_id="a.b")], "more than letters"),
    ],
)
def test_a_broken_history_is_refused_with_its_reason(messages: list[ChatMessage], why: str) -> None:
    """The reason goes to the log."""
    with pytest.raises(ModelError, match=why) as caught:
        check_history(messages)
    assert caught.value.failure is Failure.BAD_REQUEST


def test_blank_text_before_results_does_not_count() -> None:
    """It is dropped before anything is sent."""
    check_history([user("hi"), ASK, ChatMessage("user", (TextBlock(" "), ANSWER_B, ANSWER_A, TextBlock("and?")))])


def test_two_messages_may_share_the_results() -> None:
    """Neighbours of one role are one message to a provider."""
    check_history([user("hi"), ASK, ChatMessage("user", (ANSWER_A,)), ChatMessage("user", (ANSWER_B,))])
