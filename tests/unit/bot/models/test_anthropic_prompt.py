"""Whatever our rules let through, the API's rules take as well."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.models.anthropic_prompt import LOOP_CACHE, build_prompt
from bot.models.history import check_history, open_loop
from memory.ports import ChatMessage, Compacted, Json, ModelError, ModelRequest, TextBlock, ToolCall
from tests.fakes.histories import BLANKS, BLOCKS, answerable_histories, mangled_histories
from tests.fakes.messages_api.catalogue import COMPACT, MODELS
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.seals import Seals, prefix
from tests.fakes.messages_api.strictness import check

SONNET = "claude-sonnet-5-5"
systems = st.lists(BLOCKS | BLANKS, max_size=5).map(tuple)

# what the API may have sent once and does not, or not always, take back
STRAYS: list[Json] = [
    {"type": "text", "text": " "},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
    {"type": "thinking", "thinking": "from another conversation", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "hologram", "text": "of a later year"},
]


def body_of(
    messages: list[ChatMessage], system: tuple[TextBlock, ...] = (), compacted: Compacted | None = None
) -> dict[str, Any]:
    prompt = build_prompt(ModelRequest(tuple(messages), system, compacted=compacted), model=SONNET)
    body: dict[str, Any] = {"model": SONNET, "max_tokens": 4096, "messages": prompt.messages}
    if prompt.system:
        body["system"] = prompt.system
    if prompt.caches_loop:
        body["cache_control"] = LOOP_CACHE
    return json.loads(json.dumps(body))


def check_as_the_api_does(body: dict[str, Any], seals: Seals | None = None, *betas: str) -> None:
    check(Request(1, "/v1/messages", {}, body, frozenset(betas)), MODELS, seals or Seals(), counts=False)


@st.composite
def lived_histories(draw: st.DrawFn) -> tuple[list[ChatMessage], Seals]:
    """Histories whose tool calls came as the API's own blocks, with strays between; thinking is real where it counts.

    Calls of the open loop were made with thinking, bound to what stood before it.
    """
    messages, seals = draw(answerable_histories()), Seals()
    loop = open_loop(messages)
    for index, message in enumerate(messages):
        calls = [block for block in message.blocks if isinstance(block, ToolCall)]
        if not calls:
            continue
        made: list[Json] = [
            {"type": "text", "text": each.text} for each in message.blocks if isinstance(each, TextBlock)
        ]
        made += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in calls]
        if index >= loop:
            before = Request(1, "", {}, body_of([*messages[:index], ChatMessage("user", (TextBlock("?"),))]))
            signature = seals.sign_thinking("", prefix(before, before.messages[:-1]))
            made.insert(0, {"type": "thinking", "thinking": "", "signature": signature})
            seals.thought_calls.update(call.id for call in calls)
        strays = draw(st.lists(st.sampled_from(STRAYS if index < loop else STRAYS[:4]), max_size=2))
        messages[index] = replace(message, raw=(*made[:1], *strays, *made[1:]))
    return messages, seals


@given(answerable_histories(), systems)
def test_every_answerable_history_is_taken(messages: list[ChatMessage], system: tuple[TextBlock, ...]) -> None:
    """Order, pairs, empty text and breakpoints, as the strict stand-in checks them."""
    check_as_the_api_does(body_of(messages, system))


@given(lived_histories())
def test_of_the_apis_own_blocks_only_those_on_the_white_list_go_back(lived: tuple[list[ChatMessage], Seals]) -> None:
    """Thinking of finished turns does not; in the open loop it does, and must."""
    messages, seals = lived
    body = body_of(messages)
    check_as_the_api_does(body, seals)
    sent = {block["type"] for message in body["messages"] for block in message["content"]}
    assert sent <= {"text", "tool_use", "tool_result", "thinking"}
    asked = open_loop(messages)
    thought = [index for index, said in enumerate(body["messages"]) if said["content"][0]["type"] == "thinking"]
    assert thought == [index for index in range(asked, len(messages)) if messages[index].raw]


@given(mangled_histories())
def test_no_history_passes_us_that_the_api_refuses(messages: list[ChatMessage]) -> None:
    """Our check is at least as strict."""
    try:
        check_history(messages)
    except ModelError:
        return
    check_as_the_api_does(body_of(messages))


@given(answerable_histories(), systems)
def test_p54_the_same_request_is_the_same_bytes(messages: list[ChatMessage], system: tuple[TextBlock, ...]) -> None:
    """A longer history begins with the bytes of the shorter one, but for the breakpoints."""
    longer = [*messages, ChatMessage("assistant", (TextBlock("yes"),)), ChatMessage("user", (TextBlock("more"),))]
    short, long = (json.dumps(body_of(each, system)["messages"])[:-1] for each in (messages, longer))
    assert long.startswith(short)


@given(answerable_histories(), st.text(min_size=1))
def test_a_compaction_goes_back_first_and_byte_for_byte(messages: list[ChatMessage], summary: str) -> None:
    seals = Seals()
    block = {"type": "compaction", "content": summary, "signature": seals.sign_compaction(summary)}
    body = body_of(messages, compacted=Compacted(summary, block, SONNET))
    check_as_the_api_does(body, seals, COMPACT)
    assert body["messages"][0] == {"role": "assistant", "content": [block]}


def test_another_model_than_its_maker_is_told_a_compaction_in_words() -> None:
    request = ModelRequest((ChatMessage("user", (TextBlock("And now?"),)),), compacted=Compacted("So far.", {}, SONNET))
    prompt = build_prompt(request, model="claude-haiku-5-5")
    assert prompt.compacted is None
    assert [message["content"][0]["text"] for message in prompt.messages] == ["So far.", "And now?"]
