"""Hypothesis strategies for histories: those that models can answer, and those where something went wrong."""

from dataclasses import replace

from hypothesis import strategies as st

from memory.ports import ChatMessage, TextBlock, ToolCall, ToolResult

TEXTS = st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip()))
BLANKS = st.sampled_from(["", " ", "\n\t"]).map(TextBlock)
BLOCKS = st.builds(TextBlock, TEXTS, cache=st.booleans())
NAMES = st.sampled_from(["look_up", "remember", "remind"])
INPUTS = st.dictionaries(st.sampled_from(["q", "when"]), st.text(max_size=10) | st.integers(), max_size=2)


def user(text: str, *, cache: bool = False) -> ChatMessage:
    return ChatMessage("user", (TextBlock(text, cache=cache),))


def assistant(text: str) -> ChatMessage:
    return ChatMessage("assistant", (TextBlock(text),))


def tool_round(name: str, arguments: dict[str, object], result: str, *, call_id: str = "call_1") -> list[ChatMessage]:
    """A call and its result."""
    return [
        ChatMessage("assistant", (ToolCall(call_id, name, arguments),)),
        ChatMessage("user", (ToolResult(call_id, name, result),)),
    ]


@st.composite
def answerable_histories(draw: st.DrawFn) -> list[ChatMessage]:
    """Questions, answers, tool rounds, blank blocks between; ends with a question or with tool results."""
    messages: list[ChatMessage] = []
    for turn in range(draw(st.integers(1, 4))):
        messages += draw(st.lists(BLOCKS.map(lambda block: ChatMessage("user", (block,))), min_size=1, max_size=2))
        for number in range(draw(st.integers(0, 2))):
            messages += draw(_rounds(f"call_{turn}_{number}"))
        messages.append(ChatMessage("assistant", (draw(BLOCKS), *draw(st.lists(BLANKS, max_size=1)))))
    return messages[:-1]


@st.composite
def _rounds(draw: st.DrawFn, prefix: str) -> list[ChatMessage]:
    names = draw(st.lists(NAMES, min_size=1, max_size=3))
    calls = [ToolCall(f"{prefix}_{index}", name, draw(INPUTS)) for index, name in enumerate(names)]
    results = [ToolResult(call.id, call.name, draw(st.text(max_size=10)), draw(st.booleans())) for call in calls]
    return [
        ChatMessage("assistant", (*draw(st.lists(BLOCKS | BLANKS, max_size=1)), *calls)),
        ChatMessage("user", (*draw(st.permutations(results)), *draw(st.lists(BLOCKS | BLANKS, max_size=1)))),
    ]


@st.composite
def mangled_histories(draw: st.DrawFn) -> list[ChatMessage]:
    """An answerable history after some accidents: most are broken now, some are not."""
    messages = draw(answerable_histories())
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(messages) - 1))
        message = messages[index]
        match draw(st.sampled_from(["lose message", "lose block", "double", "turn round", "change side", "blank"])):
            case "lose message" if len(messages) > 1:
                del messages[index]
            case "lose block":
                messages[index] = replace(message, blocks=message.blocks[1:])
            case "double":
                messages[index] = replace(message, blocks=message.blocks + message.blocks[-1:])
            case "turn round":
                messages[index] = replace(message, blocks=message.blocks[::-1])
            case "change side":
                messages[index] = replace(message, role="user" if message.role == "assistant" else "assistant")
            case _:
                messages[index] = replace(message, blocks=(TextBlock(" "), *message.blocks))
    return messages
