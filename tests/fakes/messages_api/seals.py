"""Signatures of thinking and compaction blocks: they carry what they are bound to, so nothing has to be stored."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.wire import Json, bare, blocks, turns

THINKING = ("thinking", "redacted_thinking")


@dataclass
class Seals:
    """`thought_calls` are ids of tool calls that came with thinking: their open loop must keep it."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    thought_calls: set[str] = field(default_factory=set[str])

    def _mac(self, *parts: str) -> str:
        text = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()[:32]

    def sign_thinking(self, text: str, prefix: str) -> str:
        return self._mac("thinking", text) + self._mac("prefix", prefix)

    def is_genuine(self, block: Json) -> bool:
        """Whether the block is one of ours, unchanged."""
        signature = str(block.get("signature", ""))
        return hmac.compare_digest(signature[:32].encode(), self._mac("thinking", str(block["thinking"])).encode())

    def is_bound_to(self, block: Json, prefix: str) -> bool:
        """Whether a genuine block was made after exactly this prefix."""
        signature = str(block.get("signature", ""))
        return hmac.compare_digest(signature[32:].encode(), self._mac("prefix", prefix).encode())

    def sign_compaction(self, content: str) -> str:
        return self._mac("compaction", content)

    def is_compaction(self, block: Json) -> bool:
        """Whether a compaction block is one of ours, unchanged; one without content was never signed."""
        seal = block.get("signature", block.get("encrypted_content"))
        return block.get("content") is None or seal == self.sign_compaction(str(block["content"]))


def prefix(request: Request, messages: Sequence[Json]) -> str:
    """What thinking is bound to: system, tools, and the messages before it without their thinking."""
    said = [
        (turn.role, kept)
        for turn in turns(messages)
        if (kept := [bare(block) for block in turn.blocks if block.get("type") not in THINKING])
    ]
    system = [bare(block) for block in blocks(request.body.get("system"))]
    return json.dumps([system, [bare(tool) for tool in request.tools], said], sort_keys=True)
