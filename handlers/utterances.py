"""From what came in to what is logged: one text with quote and attachments named, and where each piece stands in it.

Pure. The pieces are kept so that an edit of one of them changes that one and nothing else.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from handlers.types import Incoming
from memory.types import Message, Origin


@dataclass(frozen=True, slots=True)
class Written:
    text: str
    origin: Origin
    pieces: list[dict[str, Any]]
    """Per message of the transport: ref, at and length in `text`, hash of its words."""


def write_down(incoming: Incoming) -> Written:
    """The text of the log."""
    text, origin = incoming.text, incoming.origin
    if incoming.attachments:
        named = ", ".join(item.name or item.kind for item in incoming.attachments)
        text = f"[{named}]\n{text}".strip()
    if incoming.quote:
        author = f"{incoming.quote_author}: " if incoming.quote_author else ""
        quoted = "\n".join(f"> {line}" for line in (author + incoming.quote).splitlines())
        text = f"{quoted}\n\n{text}"
        origin = Origin.QUOTED if origin is Origin.TYPED else origin
    pieces: list[dict[str, Any]] = []
    at = len(text) - len(incoming.text)
    for ref, words in incoming.pieces or ((incoming.ref, incoming.text),):
        at = max(text.find(words, at), 0)
        pieces.append({"ref": ref, "at": at, "length": len(words), "hash": _hash(words)})
        at += len(words)
    return Written(text, origin, pieces)


def edited(message: Message, ref: str, words: str) -> str | None:
    """The logged text with one piece in other words; None when nothing that was said has changed."""
    piece = next((piece for piece in message.blocks or () if piece.get("ref") == ref), None)
    if piece is None or piece["hash"] == _hash(words):
        return None
    start, end = piece["at"], piece["at"] + piece["length"]
    if _hash(message.text[start:end]) != piece["hash"]:  # something was forgotten in it since: only the new words stand
        return words
    return message.text[:start] + words + message.text[end:]


def _hash(words: str) -> str:
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]
