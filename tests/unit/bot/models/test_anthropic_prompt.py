"""Whatever our rules let through, the API's rules take as well."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.models.anthropic_prompt import CACHE, build_prompt
from bot.models.history import check_history
from memory.ports import ChatMessage, ModelError, ModelRequest, TextBlock
from tests.fakes.histories import BLANKS, BLOCKS, answerable_histories, mangled_histories
from tests.fakes.messages_api.catalogue import MODELS
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.seals import Seals
from tests.fakes.messages_api.strictness import check

systems = st.lists(BLOCKS | BLANKS, max_size=5).map(tuple)


def body_of(messages: list[ChatMessage], system: tuple[TextBlock, ...]) -> dict[str, Any]:
    prompt = build_prompt(ModelRequest(tuple(messages), system))
    body: dict[str, Any] = {"model": "claude-sonnet-5-5", "max_tokens": 4096, "messages": prompt.messages}
    if prompt.system:
        body["system"] = prompt.system
    if prompt.has_free_breakpoint:
        body["cache_control"] = CACHE
    return json.loads(json.dumps(body))


def check_as_the_api_does(body: dict[str, Any]) -> None:
    check(Request(1, "/v1/messages", {}, body), MODELS, Seals(), counts=False)


@given(answerable_histories(), systems)
def test_every_answerable_history_is_taken(messages: list[ChatMessage], system: tuple[TextBlock, ...]) -> None:
    """Order, pairs, empty text and breakpoints, as the strict stand-in checks them."""
    check_as_the_api_does(body_of(messages, system))


@given(mangled_histories())
def test_no_history_passes_us_that_the_api_refuses(messages: list[ChatMessage]) -> None:
    """Our check is at least as strict."""
    try:
        check_history(messages)
    except ModelError:
        return
    check_as_the_api_does(body_of(messages, ()))


@given(answerable_histories(), systems)
def test_p54_the_same_request_is_the_same_bytes(messages: list[ChatMessage], system: tuple[TextBlock, ...]) -> None:
    """A longer history begins with the bytes of the shorter one, but for the breakpoints."""
    longer = [*messages, ChatMessage("assistant", (TextBlock("yes"),)), ChatMessage("user", (TextBlock("more"),))]
    short, long = (json.dumps(body_of(each, system)["messages"])[:-1] for each in (messages, longer))
    assert long.startswith(short)
