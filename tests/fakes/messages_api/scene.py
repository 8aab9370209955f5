"""What was asked, as rules and tests read it: one record per request and the readers of its words."""

import time
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.messages_api.wire import Json, blocks, join_texts, mapping, mappings, text_of


@dataclass(frozen=True)
class Scene:
    """The part of a request that a rule can look at. `tool_result` is None unless a tool has just answered."""

    model: str
    user: str
    system: str
    tool_result: str | None
    tools: frozenset[str]
    is_background: bool


@dataclass
class Request:
    """One POST as it came in, and how it went.

    `end` is `open`, `complete`, `refused` (a rule of the API was broken), `client left`, or `fault: KIND`. `reply` is
    the whole message the model meant to send, also where a fault kept part of it back.
    """

    number: int
    path: str
    headers: dict[str, str]
    body: Json
    betas: frozenset[str] = frozenset()
    status: int = 0
    end: str = "open"
    reply: Json | None = None
    at: float = field(default_factory=time.time)

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[Json]:
        return mappings(self.body.get("messages"))

    @property
    def tools(self) -> list[Json]:
        return mappings(self.body.get("tools"))

    @property
    def is_stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def is_beta(self) -> bool:
        return bool(self.betas) or "beta=true" in self.path

    @property
    def schema(self) -> Json | None:
        """The JSON schema of a structured-output request."""
        config = mapping(self.body.get("output_config")) or {}
        return mapping((mapping(config.get("format")) or {}).get("schema"))

    @property
    def usage(self) -> Json:
        return mapping((self.reply or {}).get("usage")) or {}

    @property
    def scene(self) -> Scene:
        return Scene(
            model=self.model,
            user=newest_user(self),
            system=system_text(self),
            tool_result=tool_result(self),
            tools=frozenset(str(tool.get("name")) for tool in self.tools),
            is_background=is_background(self),
        )

    def record(self) -> dict[str, Any]:
        """The request for a reader in another process."""
        return {
            "number": self.number,
            "path": self.path,
            "headers": {name: value for name, value in self.headers.items() if name != "authorization"},
            "body": self.body,
            "status": self.status,
            "end": self.end,
            "reply": self.reply,
            "newest_user": newest_user(self),
            "is_background": self.scene.is_background,
            "at": self.at,
        }


def newest_user(request: Request) -> str:
    """The last text block of the newest user message that has one: what the person wrote, behind what was injected."""
    for message in reversed(request.messages):
        if message.get("role") == "user":
            written = [text_of(block) for block in blocks(message.get("content")) if block.get("type") == "text"]
            if written:
                return written[-1]
    return ""


def system_text(request: Request) -> str:
    return "\n".join(text_of(block) for block in blocks(request.body.get("system")))


def tool_result(request: Request) -> str | None:
    """The text of the tool results that the request answers with, None if its newest message holds none."""
    spoken = [message for message in request.messages if message.get("role") != "system"]
    newest = blocks(spoken[-1].get("content")) if spoken else []
    results = [block for block in newest if block.get("type") == "tool_result"]
    return "\n".join(join_texts(block) for block in results) if results else None


def conversation(request: Request) -> str:
    """All that was said in `messages`, without the system prompt."""
    return "\n".join(join_texts(message) for message in request.messages)


def texts(request: Request) -> str:
    """All text the model saw: system, messages, tool calls and results. Tool definitions are left out."""
    return f"{system_text(request)}\n{conversation(request)}"


def is_background(request: Request) -> bool:
    """No person waits: structured output, a compaction, a forced tool, or a small model without tools."""
    choice = mapping(request.body.get("tool_choice")) or {}
    return (
        request.schema is not None
        or mapping(request.body.get("compaction")) is not None
        or choice.get("type") in ("any", "tool")
        or ("haiku" in request.model and not request.tools)
    )
