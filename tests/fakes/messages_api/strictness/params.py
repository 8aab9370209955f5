"""Sender, headers and top-level parameters."""

import re
from collections.abc import Mapping
from typing import Final

from tests.fakes.messages_api.catalogue import (
    BETA_PARAMETERS,
    BETAS,
    BINDING_CONTROLS,
    EFFORTS,
    PARAMETERS,
    VERSIONS,
    Spec,
)
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.strictness.schemas import check_schema
from tests.fakes.messages_api.wire import Json, mapping, mappings, refuse

HIGHEST_EFFORTS: Final = ("xhigh", "max")  # thinking cannot be off with these


def check_sender(headers: Mapping[str, str], key: str) -> None:
    """The key as `Authorization: Bearer KEY` (what the SDK sends) or `x-api-key: KEY`, and a known API version."""
    bearer, plain = headers.get("authorization"), headers.get("x-api-key")
    if bearer is None and plain is None:
        refuse("x-api-key header is required", status=401)
    if bearer is not None and bearer != f"Bearer {key}":
        refuse("Invalid bearer token", status=401)
    if plain is not None and plain != key:
        refuse("invalid x-api-key", status=401)
    version = headers.get("anthropic-version")
    if version is None:
        refuse("anthropic-version: header is required")
    if version not in VERSIONS:
        refuse(f'anthropic-version: "{version}" is not a valid version')


def check_params(request: Request, models: Mapping[str, Spec], *, counts: bool) -> Spec:
    body = request.body
    for beta in sorted(request.betas - BETAS):
        refuse(
            f"Unexpected value(s) `{beta}` for the `anthropic-beta` header. Please consult our documentation at "
            "docs.claude.com or try again without the header."
        )
    _check_names(request, counts=counts)
    if not isinstance(body.get("model"), str) or not request.model:
        refuse("model: Field required")
    spec = models.get(request.model)
    if spec is None:
        refuse(f"model: {request.model}", status=404)
    if not counts:
        _check_max_tokens(body, request.model, spec)
    _check_output_config(body)
    _check_thinking(request, spec)
    _check_metadata(body)
    _check_compaction(body, spec)
    _check_edits(body, spec)
    return spec


def _check_names(request: Request, *, counts: bool) -> None:
    for name in request.body:
        needs = BETA_PARAMETERS.get(name)
        is_known = bool(needs & request.betas) if needs is not None else name in PARAMETERS[counts]
        if not is_known:  # sampling parameters included: they are gone since 2026-10-21
            refuse(f"{name}: Extra inputs are not permitted")


def _check_max_tokens(body: Json, model: str, spec: Spec) -> None:
    wanted = body.get("max_tokens")
    if wanted is None:
        refuse("max_tokens: Field required")
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        refuse("max_tokens: Input should be a valid integer")
    if wanted < 0:
        refuse("max_tokens: Input should be greater than or equal to 0")
    if wanted > spec.max_output:
        refuse(
            f"max_tokens: {wanted} > {spec.max_output}, which is the maximum allowed number of output tokens for "
            f"{model}"
        )


def _check_output_config(body: Json) -> None:
    if body.get("output_config") is None:
        return
    config = mapping(body["output_config"])
    if config is None:
        refuse("output_config: Input should be a valid dictionary")
    for name in config:
        if name not in ("effort", "format", "task_budget"):
            refuse(f"output_config.{name}: Extra inputs are not permitted")
    if config.get("effort") not in (None, *EFFORTS):
        refuse("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
    if config.get("format") is not None:
        shape = mapping(config["format"]) or {}
        if shape.get("type") != "json_schema":
            refuse("output_config.format.type: Input should be 'json_schema'")
        schema = mapping(shape.get("schema"))
        if schema is None:
            refuse("output_config.format.schema: Field required")
        check_schema(schema, "output_config.format.schema")


def _check_thinking(request: Request, spec: Spec) -> None:
    if request.body.get("thinking") is None:
        return
    config = mapping(request.body["thinking"]) or {}
    kind = config.get("type")
    if kind not in ("adaptive", "between_tools", "disabled", "enabled"):
        refuse(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            "'adaptive', 'between_tools', 'disabled', 'enabled'"
        )
    if kind not in spec.thinking:
        hint = ' Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        refuse(f'"thinking.type.{kind}" is not supported for this model.{hint if "adaptive" in spec.thinking else ""}')
    effort = (mapping(request.body.get("output_config")) or {}).get("effort")
    if kind in ("disabled", "between_tools") and effort in HIGHEST_EFFORTS:
        refuse(f'"thinking.type.{kind}" is not supported with effort "{effort}".')
    if kind == "enabled":
        _check_budget(config, request.body.get("max_tokens"))
    known = {"adaptive": {"display", "block_binding"}, "enabled": {"display", "budget_tokens", "block_binding"}}
    for name in config.keys() - {"type"} - known.get(kind, set()):
        refuse(f"thinking.{kind}.{name}: Extra inputs are not permitted")
    if "block_binding" in config and BINDING_CONTROLS not in request.betas:
        refuse(f"thinking.{kind}.block_binding: Extra inputs are not permitted")


def _check_budget(config: Json, max_tokens: object) -> None:
    budget = config.get("budget_tokens")
    if not isinstance(budget, int):
        refuse("thinking.enabled.budget_tokens: Field required")
    if budget < 1_024:
        refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if isinstance(max_tokens, int) and max_tokens <= budget:
        refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_metadata(body: Json) -> None:
    if body.get("metadata") is None:
        return
    metadata = mapping(body["metadata"])
    if metadata is None or metadata.keys() - {"user_id"}:
        refuse("metadata: Extra inputs are not permitted")
    user_id = str(metadata.get("user_id") or "")
    if len(user_id) > 256:
        refuse("metadata.user_id: String should have at most 256 characters")
    if re.search(r"\S@\S|^\+?\d{7,}$", user_id):
        refuse("metadata.user_id: user_id appears to contain an email address or a phone number")


def _check_edits(body: Json, spec: Spec) -> None:
    """Compaction at a threshold: for models that can, from a size on."""
    management = mapping(body.get("context_management")) or {}
    for index, edit in enumerate(mappings(management.get("edits"))):
        if edit.get("type") != "compact_20260112":
            continue
        path = f"context_management.edits.{index}"
        if not spec.compacts:
            refuse(f"{path}: this model does not support compaction")
        trigger = mapping(edit.get("trigger")) or {}
        least = spec.least_trigger
        if "trigger" in edit and (trigger.get("type") != "input_tokens" or int(trigger.get("value", 0)) < least):
            refuse(f"{path}.trigger.value: Input should be greater than or equal to {least}")


def _check_compaction(body: Json, spec: Spec) -> None:
    if body.get("compaction") is not None:
        config = mapping(body["compaction"]) or {}
        if config.get("type") != "summarize" or config.keys() - {"type", "instructions"}:
            refuse("compaction.type: Input should be 'summarize'")
        if not spec.compacts:
            refuse("compaction: this model does not support compaction")
        choice = (mapping(body.get("tool_choice")) or {}).get("type")
        shape = (mapping(body.get("output_config")) or {}).get("format")
        for name, clashes in (
            ("context_management", body.get("context_management") is not None),
            ("stop_sequences", bool(body.get("stop_sequences"))),
            ("output_config.format", shape is not None),
            ("tool_choice", choice in ("any", "tool")),
        ):
            if clashes:
                refuse(f"compaction: cannot be combined with `{name}`")
