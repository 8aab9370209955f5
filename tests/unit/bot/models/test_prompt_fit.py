"""What a small model is shown when not everything fits."""

from hypothesis import given
from hypothesis import strategies as st

from bot.models.prompt_fit import fit, weigh
from memory.ports import ChatMessage, Json, ModelRequest, TextBlock, ToolCall, ToolResult


def request(*texts: str, system: str = "Be kind.") -> ModelRequest:
    """Turn by turn, the user's first."""
    return ModelRequest(
        messages=tuple(
            ChatMessage("assistant" if number % 2 else "user", (TextBlock(text),)) for number, text in enumerate(texts)
        ),
        system=(TextBlock(system),) if system else (),
    )


def shown(messages: list[Json]) -> list[str]:
    return [f"{message['role']}: {message['content']}" for message in messages]


def test_everything_is_shown_when_it_fits() -> None:
    assert shown(fit(request("Hi", "Hello!", "Who am I?"), 500)) == [
        "system: Be kind.",
        "user: Hi",
        "assistant: Hello!",
        "user: Who am I?",
    ]


def test_the_oldest_go_first_and_the_first_turn_is_the_users() -> None:
    messages = fit(request("a" * 100, "b" * 100, "c" * 100, "d" * 100, "e" * 100), 400)
    assert shown(messages) == [
        "system: Be kind.",
        "user: " + "c" * 100,
        "assistant: " + "d" * 100,
        "user: " + "e" * 100,
    ]


def test_a_newest_turn_that_is_too_long_keeps_its_beginning_and_its_end() -> None:
    (system, user) = fit(request("Facts: " + "x" * 1000 + " What is my name?"), 200)
    assert system["content"] == "Be kind."
    assert user["content"].startswith("Facts: ")
    assert user["content"].endswith(" What is my name?")
    assert " … " in user["content"]


def test_a_system_text_that_is_too_long_leaves_room_for_the_question() -> None:
    (system, user) = fit(request("What is my name?", system="Rule. " * 1000), 300)
    assert system["content"].startswith("Rule. ")
    assert user["content"] == "What is my name?"


def test_neighbours_of_one_role_are_merged_and_tool_results_are_told_as_text() -> None:
    messages = (
        ChatMessage("user", (TextBlock("Weather?"),)),
        ChatMessage("assistant", (ToolCall("1", "weather", {}),)),
        ChatMessage("user", (ToolResult("1", "weather", "7 degrees"), TextBlock("In one word."))),
    )
    assert shown(fit(ModelRequest(messages), 500))[1:] == [
        "user: Weather?\n\nResult of weather: 7 degrees\n\nIn one word."
    ]


def test_without_a_system_text_the_models_maker_does_not_bring_in_another() -> None:
    assert fit(request("Hi", system=""), 500)[0] == {"role": "system", "content": "You are a helpful assistant."}


@given(
    texts=st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=9).filter(lambda texts: len(texts) % 2),
    system=st.text(),
    size=st.integers(120, 2000),
)
def test_what_is_shown_always_fits_and_alternates(texts: list[str], system: str, size: int) -> None:
    messages = fit(request(*(text * 9 for text in texts), system=system * 9), size)
    assert weigh(messages) <= size
    assert [message["role"] for message in messages] == ["system", *(["user", "assistant"] * 9)[: len(messages) - 1]]
    assert messages[-1]["role"] == "user"
