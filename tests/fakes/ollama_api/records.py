"""What the stand-in for Ollama knows: installed models, requests, faults, errors."""

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from tests.fakes.messages_api.rules import Reply
from tests.fakes.messages_api.scene import Scene
from tests.fakes.messages_api.wire import Json, dumps, listing, mapping, mappings


@dataclass(frozen=True)
class OllamaModel:
    """An installed model. `context` in tokens; `dimensions` of its vectors if it embeds."""

    name: str
    capabilities: tuple[str, ...] = ("completion", "tools")
    context: int = 32_768
    dimensions: int = 256

    def can(self, capability: str) -> bool:
        return capability in self.capabilities


INSTALLED: Final = (
    OllamaModel("qwen3:8b", ("completion", "tools", "thinking")),
    OllamaModel("gemma3:4b", ("completion",), 8_192),
    OllamaModel("nomic-embed-text:latest", ("embedding",), 2_048, 768),
)

FaultKind = Literal["busy", "server_error", "stream_error", "disconnect", "truncate", "stall", "slow_start"]
ERRORS: Final[dict[str, tuple[int, str]]] = {
    "busy": (503, "server busy, please try again.  maximum pending requests exceeded"),
    "server_error": (500, "model runner has unexpectedly stopped, this may be due to resource limitations"),
}
BREAKS: Final = ("stream_error", "disconnect", "truncate", "stall")


@dataclass
class OllamaFault:
    """What goes wrong for `times` requests (None: for ever) whose path contains `path`.

    `seconds` goes with slow_start, `after` is the number of pieces that arrive before a stream breaks.
    """

    kind: FaultKind
    times: int | None = 1
    path: str = ""
    seconds: float = 0.5
    after: int = 2
    hits: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise ValueError(f"unknown fault {self.kind!r}; known are {', '.join(get_args(FaultKind))}")

    def take(self, path: str) -> bool:
        """Whether it hits a request to this path, counted if so."""
        hits = (self.times is None or self.hits < self.times) and self.path in path
        self.hits += hits
        return hits


class OllamaError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, end: str = "refused") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.end = end


@dataclass
class OllamaRequest:
    """One POST to chat or embed, and how it went.

    `seen` is what was left of the messages when they had been cut to the context. `end` is `open`, `complete`,
    `refused`, `client left` or `fault: KIND`.
    """

    path: str
    body: Json
    seen: list[Json] = field(default_factory=list[Json])
    prompt_tokens: int = 0
    status: int = 0
    end: str = "open"
    reply: Reply | None = None

    @property
    def messages(self) -> list[Json]:
        return mappings(self.body.get("messages"))

    @property
    def is_cut(self) -> bool:
        return len(self.seen) < len(self.messages)

    @property
    def options(self) -> Json:
        return mapping(self.body.get("options")) or {}

    @property
    def num_ctx(self) -> int | None:
        return self.options.get("num_ctx")

    @property
    def inputs(self) -> list[str]:
        """The texts to embed, prefixes and all."""
        given = self.body.get("input", [])
        return [given] if isinstance(given, str) else [str(text) for text in listing(given) or []]

    @property
    def tool_result(self) -> str | None:
        """What tools have just answered, None if the newest message is not theirs."""
        results: list[str] = []
        for message in reversed(self.seen):
            if message.get("role") != "tool":
                break
            results.insert(0, str(message.get("content", "")))
        return "\n".join(results) if results else None

    @property
    def scene(self) -> Scene:
        tools = (mapping(tool.get("function")) or {} for tool in mappings(self.body.get("tools")))
        return Scene(
            model=str(self.body.get("model", "")),
            user=self._said("user")[-1] if self._said("user") else "",
            system="\n".join(self._said("system")),
            tool_result=self.tool_result,
            tools=frozenset(str(tool.get("name")) for tool in tools),
            is_background=bool(self.body.get("format")),
        )

    def texts(self) -> str:
        """All text the model saw, tool calls included."""
        calls = [dumps(message["tool_calls"]) for message in self.seen if message.get("tool_calls")]
        return "\n".join([*(str(message.get("content", "")) for message in self.seen), *calls])

    def _said(self, role: str) -> list[str]:
        return [str(message.get("content", "")) for message in self.seen if message.get("role") == role]

    def record(self) -> Json:
        """The request for a reader in another process."""
        return {
            "path": self.path,
            "body": self.body,
            "seen": self.seen,
            "prompt_tokens": self.prompt_tokens,
            "status": self.status,
            "end": self.end,
        }
