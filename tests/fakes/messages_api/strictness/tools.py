"""Tool definitions and tool_choice."""

import re
from collections import Counter
from typing import Final

from tests.fakes.messages_api.catalogue import ADVISOR, MODELS, Spec
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.strictness.schemas import check_limits, check_schema
from tests.fakes.messages_api.wire import Json, blocks, listing, mapping, refuse

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CUSTOM_FIELDS: Final = frozenset(
    {"type", "name", "description", "input_schema", "cache_control", "strict"}
    | {"eager_input_streaming", "defer_loading", "allowed_callers", "input_examples"}
)
SERVER_TOOL: Final = re.compile(
    r"(web_search|web_fetch|code_execution|memory|bash|text_editor|computer|advisor|tool_search_tool_(bm25|regex))_20\d{6}"
)
MAX_STRICT: Final = 20


def check_tools(request: Request, spec: Spec) -> None:
    declared = listing(request.body.get("tools", []))
    if declared is None:
        refuse("tools: Input should be a valid list")
    for index, entry in enumerate(declared):
        tool = mapping(entry)
        if tool is None:
            refuse(f"tools.{index}: Input should be a valid dictionary")
        if tool.get("type") in (None, "custom"):
            _check_custom(tool, f"tools.{index}.custom")
        else:
            _check_server_tool(tool, f"tools.{index}", request.betas)
    names = Counter(str(tool.get("name")) for tool in request.tools)
    if any(count > 1 for count in names.values()):
        refuse("tools: Tool names must be unique.")
    strict = [mapping(tool.get("input_schema")) or {} for tool in request.tools if tool.get("strict") is True]
    if len(strict) > MAX_STRICT:
        refuse(
            f"tools: Too many strict tools ({len(strict)}). Reduce the number of strict tools (limit: {MAX_STRICT})."
        )
    check_limits(strict, "tools")
    _check_choice(request, spec, set(names))
    _check_advice(request)


def _check_custom(tool: Json, path: str) -> None:
    for name, value in tool.items():
        if name not in CUSTOM_FIELDS:
            refuse(f"{path}.{name}: Extra inputs are not permitted")
        if value is None and name in ("description", "strict", "defer_loading", "input_schema"):
            refuse(f"{path}.{name}: Input should be a valid value")
    if not NAME.fullmatch(str(tool.get("name", ""))):
        refuse(f"{path}.name: String should match pattern '^{NAME.pattern}$'")
    schema = mapping(tool.get("input_schema"))
    if schema is None:
        refuse(f"{path}.input_schema: Field required")
    if schema.get("type") != "object":
        refuse(f"{path}.input_schema.type: Input should be 'object'")
    if any(name in schema for name in ("oneOf", "allOf", "anyOf")):
        refuse(f"{path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
    if tool.get("strict") is True:
        check_schema(schema, path)


def _check_server_tool(tool: Json, path: str, betas: frozenset[str]) -> None:
    kind = str(tool.get("type"))
    is_advisor = kind.startswith("advisor_")
    if not SERVER_TOOL.fullmatch(kind) or (is_advisor and ADVISOR not in betas):
        refuse(f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    if is_advisor:
        limit = tool.get("max_tokens")
        if limit is not None and limit < 1_024:
            refuse(f"{path}.advisor_20260301.max_tokens: Input should be greater than or equal to 1024")
        if tool.get("model") not in MODELS:
            refuse(f"{path}.advisor_20260301.model: {tool.get('model')} is not supported as an advisor")


def _check_advice(request: Request) -> None:
    """Advice in the history needs the advisor among the tools."""
    kinds = {block.get("type") for message in request.messages for block in blocks(message.get("content"))}
    if "advisor_tool_result" in kinds and not any(tool.get("name") == "advisor" for tool in request.tools):
        refuse("messages: `advisor_tool_result` blocks require the advisor tool in `tools`")


def _check_choice(request: Request, spec: Spec, names: set[str]) -> None:
    if request.body.get("tool_choice") is None:
        return
    choice = mapping(request.body["tool_choice"]) or {}
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        refuse(
            f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            "'auto', 'any', 'tool', 'none'"
        )
    if not request.tools:
        refuse("tool_choice: tool_choice may only be specified while providing tools.")
    if kind in ("any", "tool") and not spec.takes_forced_tools:
        refuse(f"tool_choice.type: '{kind}' is not supported on this model. Use 'auto' or 'none'.")
    if kind == "tool" and choice.get("name") not in names:
        refuse(f"tool_choice.name: Tool '{choice.get('name')}' not found in provided tools")
