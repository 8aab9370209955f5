"""The stand-in refuses what the Messages API refuses, in its words, and takes what the API takes."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import anthropic.types as ga
import httpx2
import pytest
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import beta
from anthropic.types.beta.message_create_params import MessageCreateParamsBase as BetaParams
from anthropic.types.message_create_params import MessageCreateParamsBase as Params

from tests.fakes.messages_api import MessagesApi
from tests.fakes.messages_api.catalogue import BETA_PARAMETERS, PARAMETERS
from tests.fakes.messages_api.strictness.blocks import OPTIONAL, REQUIRED

SONNET, HAIKU, OLD = "claude-sonnet-5-5", "claude-haiku-5-5", "claude-haiku-4-5"
HELLO = {"role": "user", "content": "hello"}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "kept"}
TEXT: dict[str, Any] = {"type": "text", "text": "words"}
TOOL: dict[str, Any] = {"name": "note", "input_schema": {"type": "object", "properties": {}}}
MARK, LONG_MARK = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
CLOSED = {"type": "object", "additionalProperties": False}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
ADVICE_CALL = SEARCH | {"name": "advisor"}
ADVICE = {
    "type": "advisor_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "advisor_result", "text": "x"},
}
ADVISOR = {"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-5-5"}


@pytest.fixture
async def api() -> AsyncIterator[MessagesApi]:
    async with MessagesApi() as api:
        yield api


@pytest.fixture
async def client(api: MessagesApi) -> AsyncIterator[AsyncAnthropic]:
    # no certificates are needed on a loopback address, and loading them takes longer than the test
    http = DefaultAsyncHttpxClient(verify=False)
    async with AsyncAnthropic(api_key=api.key, base_url=api.base_url, max_retries=0, http_client=http) as client:
        yield client


async def ask(client: AsyncAnthropic, **changes: Any) -> beta.BetaMessage:
    """Send a plain request with these changes. A value of None takes the parameter away."""
    body: dict[str, Any] = {"model": SONNET, "max_tokens": 500, "messages": [HELLO]} | changes
    betas: list[str] = body.pop("betas", [])
    headers = {"anthropic-beta": ",".join(betas)} if betas else {}
    kept = {name: value for name, value in body.items() if value is not None}
    return await client.post(
        "/v1/messages?beta=true", body=kept, cast_to=beta.BetaMessage, options={"headers": headers}
    )


def said(*content: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def after_call(*content: dict[str, Any]) -> list[dict[str, Any]]:
    return [HELLO, said(CALL, role="assistant"), said(*content)]


def schema(**part: Any) -> dict[str, Any]:
    """A request for structured output with one property."""
    shape = {"type": "object", "properties": {"n": part}, "required": ["n"], "additionalProperties": False}
    return {"output_config": {"format": {"type": "json_schema", "schema": shape}}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unanswered call": ({"messages": [HELLO, said(CALL, role="assistant"), HELLO]}, "ids were found without"),
    "call at the end": (
        {"messages": [HELLO, said(CALL, role="assistant")], "model": OLD},
        "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    "result without a call": ({"messages": [said(RESULT)]}, "unexpected `tool_use_id` found in `tool_result` blocks"),
    "result of another call": (
        {"messages": after_call(RESULT | {"tool_use_id": "toolu_2"})},
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_2",
    ),
    "result twice": ({"messages": after_call(RESULT, RESULT)}, "each tool_use must have a single result"),
    "result behind text": ({"messages": after_call(TEXT, RESULT)}, "ids were found without `tool_result` blocks"),
    "call id twice": ({"messages": [*after_call(RESULT), *after_call(RESULT)[1:]]}, "`tool_use` ids must be unique"),
    "bad call id": (
        {"messages": [HELLO, said(CALL | {"id": "a b"}, role="assistant"), HELLO]},
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "empty text": ({"messages": [said({"type": "text", "text": ""})]}, "text content blocks must be non-empty"),
    "blank text": ({"messages": [said({"type": "text", "text": " \n"})]}, "must contain non-whitespace text"),
    "empty text in a result": (
        {"messages": after_call(RESULT | {"content": [{"type": "text", "text": ""}]})},
        "text content blocks must be non-empty",
    ),
    "empty system text": ({"system": [{"type": "text", "text": ""}]}, "system: text content blocks must be non-empty"),
    "empty content": ({"messages": [HELLO, {"role": "user", "content": []}]}, "must have non-empty content"),
    "no messages": ({"messages": []}, "messages: at least one message is required"),
    "prefill": (
        {"messages": [HELLO, said(TEXT, role="assistant")]},
        "does not support assistant message prefill. The conversation must end with a user message.",
    ),
    "assistant first": (
        {"messages": [said(TEXT, role="assistant"), HELLO]},
        'messages: first message must use the "user" role',
    ),
    "system first": ({"messages": [said(TEXT, role="system"), HELLO]}, 'first message must use the "user" role'),
    "system before user": ({"messages": [HELLO, said(TEXT, role="system"), HELLO]}, "must precede an assistant"),
    "system after assistant": (
        {"messages": [HELLO, said(TEXT, role="assistant"), said(TEXT, role="system")]},
        "role 'system' must follow a user message",
    ),
    "system on haiku": ({"messages": [HELLO, said(TEXT, role="system")], "model": HAIKU}, "'system' is not supported"),
    "clear_at without beta": (
        {"messages": [HELLO, said(TEXT, role="system") | {"clear_at": "next_user_message"}]},
        "messages.1.clear_at: Extra inputs are not permitted",
    ),
    "unknown role": ({"messages": [said(TEXT, role="tool")]}, "messages.0.role: Input should be"),
    "unknown field of a message": ({"messages": [HELLO | {"name": "Ada"}]}, "messages.0.name: Extra inputs"),
    "unknown parameter": ({"user": "ada"}, "user: Extra inputs are not permitted"),
    "temperature": ({"temperature": 0.5}, "temperature: Extra inputs are not permitted"),
    "top_p": ({"top_p": 0.5}, "top_p: Extra inputs are not permitted"),
    "top_k": ({"top_k": 5}, "top_k: Extra inputs are not permitted"),
    "no max_tokens": ({"max_tokens": None}, "max_tokens: Field required"),
    "huge max_tokens": ({"max_tokens": 200_000}, "max_tokens: 200000 > 128000, which is the maximum allowed"),
    "no model": ({"model": None}, "model: Field required"),
    "forced tool": ({"tools": [TOOL], "tool_choice": {"type": "any"}}, "'any' is not supported on this model"),
    "choice without tools": ({"tool_choice": {"type": "auto"}}, "only be specified while providing tools"),
    "choice of no tool": (
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "x"}, "model": HAIKU},
        "Tool 'x' not found in provided tools",
    ),
    "tool names": ({"tools": [TOOL, TOOL]}, "tools: Tool names must be unique."),
    "tool name": ({"tools": [TOOL | {"name": "a b"}]}, "tools.0.custom.name: String should match pattern"),
    "tool without schema": ({"tools": [{"name": "note"}]}, "tools.0.custom.input_schema: Field required"),
    "strict tool": ({"tools": [TOOL | {"strict": True}]}, "'additionalProperties' must be explicitly set to false"),
    "open schema": (
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    ),
    "schema with a range": (schema(type="integer", minimum=1), "properties minimum are not supported"),
    "schema with a length": (schema(type="string", maxLength=9), "properties maxLength are not supported"),
    "schema without end": (schema(**{"$ref": "#"}), "Circular reference detected"),
    "five breakpoints": (
        {"messages": [said(*[TEXT | {"cache_control": MARK}] * 5)]},
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "automatic fifth": (
        {"messages": [said(*[TEXT | {"cache_control": MARK}] * 4, TEXT)], "cache_control": MARK},
        "Found 5.",
    ),
    "1h after 5m": (
        {"system": [TEXT | {"cache_control": MARK}], "messages": [said(TEXT | {"cache_control": LONG_MARK})]},
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
    "unknown ttl": ({"cache_control": {"type": "ephemeral", "ttl": "2h"}}, "ttl: Input should be '5m' or '1h'"),
    "thinking disabled": ({"thinking": {"type": "disabled"}}, '"thinking.type.disabled" is not supported'),
    "thinking enabled": (
        {"thinking": {"type": "enabled", "budget_tokens": 2_000}, "model": HAIKU},
        '"thinking.type.enabled" is not supported for this model',
    ),
    "no thinking at high effort": (
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}, "model": HAIKU},
        'not supported with effort "max"',
    ),
    "thinking of others": (
        {"messages": [HELLO, said({"type": "thinking", "thinking": "", "signature": "x"}, role="assistant"), HELLO]},
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "document of the assistant": (
        {"messages": [HELLO, said(DOCUMENT, role="assistant"), HELLO]},
        "messages.1.content.0: Input tag 'document' found using 'type' does not match any of the expected tags",
    ),
    "citations of the user": (
        {"messages": [said(TEXT | {"citations": [{"type": "char_location"}]})]},
        "messages.0.content.0.text.citations: citations are not permitted",
    ),
    "null in a block": (
        {"messages": [HELLO, said(TEXT | {"citations": None}, role="assistant"), HELLO]},
        "messages.1.content.0.text.citations: Extra inputs are not permitted",
    ),
    "unknown field of a block": (
        {"messages": [said(TEXT | {"id": "1"})]},
        "messages.0.content.0.text.id: Extra inputs",
    ),
    "picture that is none": (
        {
            "messages": [
                said({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}})
            ]
        },
        "messages.0.content.0.image.source.base64: Could not process image",
    ),
    "compaction without beta": ({"compaction": {"type": "summarize"}}, "compaction: Extra inputs are not permitted"),
    "context_management without beta": ({"context_management": {"edits": []}}, "context_management: Extra inputs"),
    "fallbacks without beta": ({"fallbacks": "default"}, "fallbacks: Extra inputs are not permitted"),
    "advisor without beta": ({"tools": [ADVISOR]}, "tools.0: Input tag 'advisor_20260301' found using 'type'"),
    "thrifty advisor": (
        {"tools": [ADVISOR | {"max_tokens": 100}], "betas": ["advisor-tool-2026-03-01"]},
        "Input should be greater than or equal to 1024",
    ),
    "unknown beta": ({"betas": ["compact-2030-01-01"]}, "Unexpected value(s) `compact-2030-01-01` for the"),
    "compaction from too small a size on": (
        {
            "betas": ["compact-2026-01-12"],
            "context_management": {
                "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 49_999}}]
            },
        },
        "greater than or equal to 50000",
    ),
    "compaction on haiku": (
        {"compaction": {"type": "summarize"}, "betas": ["compact-2026-09-04"], "model": HAIKU},
        "does not support compaction",
    ),
    "server call without result": (
        {"messages": [HELLO, said(TEXT, SEARCH, role="assistant"), HELLO]},
        "`web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block",
    ),
    "advice without advisor": (
        {"messages": [HELLO, said(ADVICE_CALL, ADVICE, role="assistant"), HELLO], "tools": [TOOL]},
        "require the advisor tool",
    ),
    "telling metadata": ({"metadata": {"user_id": "ada@example.org"}}, "metadata.user_id"),
}

TAKEN: dict[str, dict[str, Any]] = {
    "same role twice": {"messages": [HELLO, HELLO, said(TEXT, role="assistant"), said(TEXT, role="assistant"), HELLO]},
    "results in two messages": {
        "messages": [
            HELLO,
            said(CALL, CALL | {"id": "toolu_2"}, role="assistant"),
            said(RESULT),
            said(RESULT | {"tool_use_id": "toolu_2", "is_error": True}),
        ]
    },
    "words behind results": {"messages": after_call(RESULT, TEXT)},
    "document in a result": {"messages": after_call(RESULT | {"content": [DOCUMENT]})},
    "result without content": {"messages": after_call({"type": "tool_result", "tool_use_id": "toolu_1"})},
    "system at the end": {"messages": [HELLO, said(TEXT, role="system")]},
    "system before assistant": {"messages": [HELLO, said(TEXT, role="system"), said(TEXT, role="assistant"), HELLO]},
    "clear_at": {
        "messages": [HELLO, said(TEXT, role="system") | {"clear_at": "next_user_message"}],
        "betas": ["mid-conversation-system-clear-at-2026-08-21"],
    },
    "prefill on an old model": {"messages": [HELLO, said(TEXT, role="assistant")], "model": OLD},
    "forced tool on haiku": {"tools": [TOOL], "tool_choice": {"type": "any"}, "model": HAIKU},
    "no thinking on haiku": {"thinking": {"type": "disabled"}, "model": HAIKU},
    "1h before 5m": {
        "system": [TEXT | {"cache_control": LONG_MARK}],
        "messages": [said(TEXT | {"cache_control": MARK})],
        "cache_control": MARK,
    },
    "strict tool": {
        "tools": [TOOL | {"strict": True, "input_schema": {"type": "object", "additionalProperties": False}}]
    },
    "server tools": {
        "tools": [{"type": "web_search_20260318", "name": "web_search", "max_uses": 3}, ADVISOR],
        "betas": ["advisor-tool-2026-03-01"],
    },
    "paused turn": {"messages": [HELLO, said(TEXT, SEARCH, role="assistant")]},
    "effort and opaque user": {"output_config": {"effort": "low"}, "metadata": {"user_id": "9f2c"}},
}


@pytest.mark.parametrize("name", REFUSED)
async def test_the_broken_rule_is_named_and_kept(api: MessagesApi, client: AsyncAnthropic, name: str) -> None:
    changes, wording = REFUSED[name]
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(client, **changes)
    assert wording in str(caught.value.api_message)
    assert [violation.message for violation in api.violations] == [caught.value.api_message]
    assert api.requests[0].end == "refused"


@pytest.mark.parametrize("name", TAKEN)
async def test_what_the_api_takes_is_taken(api: MessagesApi, client: AsyncAnthropic, name: str) -> None:
    await ask(client, **TAKEN[name])
    assert api.violations == []


@pytest.mark.parametrize("key", ["wrong", "Bearer test"])
async def test_a_wrong_key_is_refused(api: MessagesApi, key: str) -> None:
    async with AsyncAnthropic(api_key=key, base_url=api.base_url, max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError, match="Invalid bearer token"):
            await ask(client)
    assert [violation.status for violation in api.violations] == [401]


async def test_a_sender_without_key_or_version_is_refused(api: MessagesApi) -> None:
    async with httpx2.AsyncClient(base_url=api.base_url) as http:
        nobody = await http.post("/v1/messages", json={})
        no_version = await http.post("/v1/messages", json={}, headers={"x-api-key": api.key})
        no_json = await http.post(
            "/v1/messages", content=b"{", headers={"x-api-key": api.key, "anthropic-version": "2026-10-21"}
        )
    assert nobody.status_code == 401
    assert no_version.json()["error"]["message"] == "anthropic-version: header is required"
    assert no_json.json()["error"]["message"] == "The request body is not valid JSON."


async def test_a_retired_model_is_not_found(client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="model: claude-sonnet-4-5"):
        await ask(client, model="claude-sonnet-4-5")


async def test_count_tokens_is_as_strict_and_takes_no_max_tokens(api: MessagesApi, client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="tool_result"):
        await client.messages.count_tokens(model=SONNET, messages=[{"role": "user", "content": [RESULT]}])  # pyright: ignore[reportArgumentType] - a plain dict
    with pytest.raises(anthropic.BadRequestError, match="max_tokens: Extra inputs"):
        await client.messages.count_tokens(
            model=SONNET, messages=[{"role": "user", "content": "hi"}], extra_body={"max_tokens": 5}
        )
    assert len(api.violations) == 2
    assert api.requests == []


def test_the_tables_of_fields_are_those_of_the_sdk() -> None:
    """What the SDK can type is what the stand-in takes, block by block."""
    for kind, required in REQUIRED.items():
        name = "".join(part.capitalize() for part in kind.split("_")) + "BlockParam"
        names = (f"Beta{name}", f"BetaRequest{name}", name)
        shape: Any = next(
            found for found in (getattr(beta, name, None) or getattr(ga, name, None) for name in names) if found
        )
        known = {"type", *required.split(), *OPTIONAL.get(kind, "").split()}
        assert known == set(shape.__annotations__), kind


def test_the_table_of_parameters_is_that_of_the_sdk() -> None:
    in_headers = {"betas", "user_profile_id", "workspace_id"}
    plain = set(Params.__annotations__) - in_headers
    with_beta = set(BetaParams.__annotations__) - in_headers
    assert plain | {"stream"} == PARAMETERS[False]
    assert with_beta - plain == set(BETA_PARAMETERS) | {"billing_policy"}
