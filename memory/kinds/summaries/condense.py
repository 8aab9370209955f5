"""A session condensed by a language model, piece by piece, with a JSON schema. The words of the prompt: prompt.md."""

import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from memory.kinds.summaries.summary import FIELDS, Condensed, Summary, kept, kept_title
from memory.kinds.summaries.transcript import Entry, pieces
from memory.language.words import language_of
from memory.ports import (
    Account,
    ChatMessage,
    Json,
    LanguageModel,
    ModelRequest,
    ModelTraits,
    Purpose,
    TextBlock,
    Tier,
    complete,
)

_PROMPT = Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")
_LANGUAGES = {"en": "English", "de": "German", "ru": "Russian"}
_SCHEMA: Json = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("title", *FIELDS)},
    "required": ["title", *FIELDS],
    "additionalProperties": False,
}
_ANSWER_TOKENS = 1200
_OWN_TOKENS = 1200  # the prompt, the summary so far and the frame
_LEAST, _MOST = 1500, 48_000  # characters of messages in one call
_CHARACTERS_A_TOKEN = 2  # Cyrillic; English would bear four


class AnswerError(Exception):
    """The model answered with something that is no summary."""


async def condense(
    model: LanguageModel, traits: ModelTraits, lines: Sequence[Entry], before: Summary | None
) -> Condensed:
    """Carry a summary on over further messages. Raises `ModelError` and `AnswerError`."""
    room = (traits.context_tokens - _ANSWER_TOKENS - _OWN_TOKENS) * _CHARACTERS_A_TOKEN
    language = language_of(" ".join(entry.text for entry in lines if entry.is_person))
    made: Condensed | None = None
    for piece in pieces(lines, min(max(room, _LEAST), _MOST)):
        made = await _pass(model, piece, made.summary if made else before, _LANGUAGES[language])
    assert made is not None, "there is at least one exchange"
    return made


async def _pass(model: LanguageModel, lines: Sequence[Entry], before: Summary | None, language: str) -> Condensed:
    request = ModelRequest(
        system=(TextBlock(_PROMPT.replace("{language}", language)),),
        messages=(ChatMessage("user", (TextBlock(_material(lines, before)),)),),
        tier=Tier.SMALL,
        max_tokens=_ANSWER_TOKENS,
        schema=_SCHEMA,
        account=Account(Purpose.SUMMARY),
    )
    finished = await complete(model, request)
    values = _fields(finished.text)
    return Condensed(kept(values), kept_title(values.get("title", "")), finished.model or "unnamed")


def _material(lines: Sequence[Entry], before: Summary | None) -> str:
    mark = f"=== {secrets.token_hex(6)} ==="  # nobody who writes a message can know it
    parts: list[str] = []
    if before is not None:
        parts += ["The summary so far:", mark, json.dumps(_as_dict(before), ensure_ascii=False), mark, ""]
    parts += ["The messages:", mark, *map(str, lines), mark]
    return "\n".join(parts)


def _as_dict(summary: Summary) -> dict[str, str]:
    return {name: getattr(summary, name) for name in FIELDS}


def _fields(answer: str) -> dict[str, str]:
    try:
        found: Any = json.loads(answer)
    except ValueError as error:
        raise AnswerError("the answer is no JSON") from error
    if not isinstance(found, dict):
        raise AnswerError("the answer is no object")
    values = {str(name): value for name, value in cast("dict[Any, Any]", found).items() if isinstance(value, str)}
    if not values.get("text", "").strip():
        raise AnswerError("the answer has no text")
    return values
