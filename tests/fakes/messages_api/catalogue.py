"""What is known of models and betas on 2026-11-30, as data; where there is doubt, the stricter reading."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.fakes.messages_api.wire import Json

VERSIONS: Final = frozenset({"2023-06-01", "2026-10-21"})


@dataclass(frozen=True)
class Spec:
    """One model: sizes in tokens, `thinking` the accepted `thinking.type` values, `released` the epoch if unknown."""

    thinking: frozenset[str]
    min_cached: int = 512
    window: int = 1_000_000
    max_output: int = 128_000
    takes_forced_tools: bool = True
    takes_system_messages: bool = False
    takes_prefill: bool = False
    compacts: bool = True
    least_trigger: int = 50_000
    """Tokens: a compaction at a threshold cannot be asked for below."""
    binds_thinking: bool = False
    released: str = "1970-01-01"


ADAPTIVE: Final = frozenset({"adaptive"})
SWITCHABLE: Final = frozenset({"adaptive", "disabled"})
ANY_THINKING: Final = frozenset({"adaptive", "disabled", "enabled"})
MANUAL: Final = frozenset({"disabled", "enabled"})


def _frontier(
    released: str = "1970-01-01", thinking: frozenset[str] = ADAPTIVE, *, binds_thinking: bool = True
) -> Spec:
    return Spec(
        thinking,
        takes_forced_tools=False,
        takes_system_messages=True,
        binds_thinking=binds_thinking,
        released=released,
    )


SMALL: Final = Spec(MANUAL, 4_096, 200_000, 64_000, takes_prefill=True, compacts=False)

MODELS: Final[Mapping[str, Spec]] = {
    "claude-fable-5-2": _frontier("2026-11-09"),
    "claude-mythos-5-2": _frontier("2026-11-09"),
    # mid-conversation system messages on Haiku 5.5: no page of the vendor says so, hence refused
    "claude-haiku-5-5": Spec(SWITCHABLE, compacts=False, binds_thinking=True, released="2026-10-07"),
    "claude-sonnet-5-5": _frontier("2026-09-28", ADAPTIVE | {"between_tools"}),
    "claude-opus-5-5": _frontier("2026-09-22"),
    "claude-fable-5-1": _frontier(),
    "claude-mythos-5-1": _frontier(),
    "claude-fable-5": _frontier(binds_thinking=False),
    "claude-mythos-5": _frontier(binds_thinking=False),
    "claude-sonnet-5": Spec(SWITCHABLE, 1_024),
    "claude-opus-5": Spec(SWITCHABLE, takes_system_messages=True),
    "claude-opus-4-8": Spec(SWITCHABLE, 1_024, takes_system_messages=True),
    "claude-opus-4-7": Spec(SWITCHABLE, 2_048),
    "claude-opus-4-6": Spec(ANY_THINKING, 4_096),
    "claude-sonnet-4-6": Spec(ANY_THINKING, 1_024),
    "claude-opus-4-5": SMALL,
    "claude-haiku-4-5": SMALL,
    "claude-haiku-4-5-20251001": SMALL,
}

EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

COMPACT: Final = "compact-2026-09-04"
COMPACT_AT_THRESHOLD: Final = "compact-2026-01-12"
BINDING_CONTROLS: Final = "thinking-binding-controls-2026-08-01"
CLEAR_AT: Final = "mid-conversation-system-clear-at-2026-08-21"
EFFORT_PER_MESSAGE: Final = "mid-conversation-output-config-2026-07-01"
ADVISOR: Final = "advisor-tool-2026-03-01"
TOOL_CHANGES: Final = frozenset({"inline-tools-2026-09-15", "mid-conversation-tool-changes-2026-07-01"})
FALLBACKS: Final = frozenset({"server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01"})

BETAS: Final = (
    frozenset(
        {
            COMPACT,
            COMPACT_AT_THRESHOLD,
            BINDING_CONTROLS,
            CLEAR_AT,
            EFFORT_PER_MESSAGE,
            ADVISOR,
            "cache-diagnosis-2026-04-07",
            "context-1m-2025-08-07",
            "context-management-2025-06-27",
            "dev-full-thinking-2025-05-14",
            "extended-cache-ttl-2025-04-11",
            "fallback-credit-2026-06-01",
            "fallback-credit-2026-07-01",
            "fast-mode-2026-02-01",
            "files-api-2025-04-14",
            "fine-grained-tool-streaming-2025-05-14",
            "interleaved-thinking-2025-05-14",
            "mcp-client-2025-11-20",
            "mcp-client-2026-09-15",
            "message-batches-2024-09-24",
            "message-threads-2026-08-12",
            "model-context-window-exceeded-2025-08-26",
            "output-128k-2025-02-19",
            "output-300k-2026-03-24",
            "pdfs-2024-09-25",
            "prompt-caching-2024-07-31",
            "structured-outputs-2025-11-13",
            "task-budgets-2026-03-13",
            "thinking-display-updates-2026-08-18",
            "thinking-token-count-2026-05-13",
            "token-counting-2024-11-01",
            "token-efficient-tools-2025-02-19",
        }
    )
    | TOOL_CHANGES
    | FALLBACKS
)

_COUNTED: Final = frozenset(
    {
        "cache_control",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
_CREATED: Final = _COUNTED | {
    "container",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "metadata",
    "service_tier",
    "stop_sequences",
    "stream",
}
PARAMETERS: Final[Mapping[bool, frozenset[str]]] = {True: _COUNTED, False: _CREATED}
"""Top-level fields that need no beta; the key says whether only tokens are counted."""

BETA_PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    "compaction": frozenset({COMPACT}),
    "context_management": frozenset({COMPACT_AT_THRESHOLD, "context-management-2025-06-27"}),
    "fallbacks": FALLBACKS,
    "fallback_credit_token": frozenset({"fallback-credit-2026-06-01", "fallback-credit-2026-07-01"}),
    "mcp_servers": frozenset({"mcp-client-2025-11-20", "mcp-client-2026-09-15"}),
    "thread": frozenset({"message-threads-2026-08-12"}),
}
"""Top-level fields and the beta headers of which one must be sent with them."""


def describe_model(name: str, spec: Spec, betas: frozenset[str]) -> Json:
    """`ModelInfo` as GET /v1/models answers it; `capabilities.compaction` only shows under its beta."""
    parts = name.split("-")
    capabilities: Json = {
        name: {"supported": True} for name in ("batch", "citations", "image_input", "pdf_input", "structured_outputs")
    }
    capabilities |= {
        "code_execution": {"supported": False},
        "context_management": {"supported": True, "compact_20260112": {"supported": spec.compacts}}
        | {edit: {"supported": True} for edit in ("clear_thinking_20251015", "clear_tool_uses_20250919")},
        "effort": {"supported": True} | {effort: {"supported": True} for effort in EFFORTS},
        "server_tools": {"supported": True, "web_search": {"supported": True}, "code_execution": {"supported": True}},
        "thinking": {
            "supported": True,
            "types": {
                kind: {"supported": kind in spec.thinking}
                for kind in ("adaptive", "between_tools", "disabled", "enabled")
            },
        },
    }
    if COMPACT in betas:
        capabilities["compaction"] = {"supported": spec.compacts, "summarize": {"supported": spec.compacts}}
    return {
        "id": name,
        "type": "model",
        "display_name": " ".join(part.capitalize() for part in parts),
        "line": parts[1],
        "lifecycle": "active",
        "created_at": f"{spec.released}T00:00:00Z",
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": spec.window,
        "max_tokens": spec.max_output,
        "capabilities": capabilities,
    }
