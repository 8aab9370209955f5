"""From what people typed to drafts of observations: one call of a model, and what code refuses of its answer.

Rule: quote-lock. A draft stands on words that are found verbatim, white space apart, in a message that its author
typed; nothing else makes an observation, whatever the model says.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from memory.kinds.observations import junk, prompt
from memory.kinds.observations.observation import Content, Type, is_empty, kept
from memory.kinds.observations.validity import ends_at
from memory.language.text import MARK, one_line, shorten
from memory.language.words import content_words, is_cyrillic, keys_of, language_of, tokens, told_language
from memory.ports import (
    Account,
    ChatMessage,
    LanguageModel,
    ModelRequest,
    Purpose,
    TextBlock,
    Tier,
    Usage,
    complete,
)
from memory.secrets import SECRET_MARK

_ANSWER_TOKENS = 2000
_MOST_DRAFTS = 12
"""Of one call; a model that writes more has lost its way."""
_LEAST_QUOTE = 2  # words
_SURE_LANGUAGE = 4  # words from which a language can be told
_TYPES = frozenset(Type)
_PASSING_TYPES = frozenset((Type.FACT, Type.PREFERENCE, Type.TASK))
_SPEAKER = frozenset(("speaker", "user", "me", "i", "self", "ich", "я"))
_MANY_VALUED = frozenset(
    (
        *("like", "likes", "dislike", "dislikes", "love", "loves", "hate", "hates", "hobby", "hobbies", "interest"),
        *("interests", "preference", "preferences", "event", "events", "task", "tasks", "friend", "friends", "pet"),
        *("pets", "child", "children", "language", "languages", "skill", "skills", "plan", "plans", "note", "fact"),
        *("owns", "has", "visited", "bought", "knows", "allergy", "allergies"),
    )
)
"""Attributes that can hold several values side by side: they are no slots, whatever a model thinks."""


class AnswerError(Exception):
    """The model answered with something that is no list of observations."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message as learning reads it: only what its author typed."""

    id: int
    user_id: int
    speaker: str
    text: str
    at: datetime
    """In the speaker's time zone."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An observation that may be stored: what it says, on which words, and until when it holds."""

    content: Content
    said: Said
    quote: str
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
    """What one call yields."""

    drafts: tuple[Draft, ...] = ()
    refused: tuple[str, ...] = ()
    """Why drafts of the model were not taken, as codes."""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    nano_usd: int | None = None


def worth_reading(lines: Iterable[Said]) -> list[Said]:
    """The messages that may hold something."""
    return [line for line in lines if junk.why_not(line.text) is None]


async def extract(model: LanguageModel, lines: Sequence[Said], account: Account | None = None) -> Extracted:
    """Ask for the observations in these messages. Raises `ModelError` and `AnswerError`."""
    request = ModelRequest(
        system=(TextBlock(prompt.SYSTEM),),
        messages=(ChatMessage("user", (TextBlock(prompt.material(lines)),)),),
        tier=Tier.SMALL,
        max_tokens=_ANSWER_TOKENS,
        schema=prompt.SCHEMA,
        account=account or Account(Purpose.EXTRACTION),
    )
    finished = await complete(model, request)
    drafts: list[Draft] = []
    refused: list[str] = []
    for item in _items(finished.text):
        made = _draft(item, lines)
        if isinstance(made, Draft):
            drafts.append(made)
        else:
            refused.append(made)
    return Extracted(tuple(drafts), tuple(refused), finished.usage, finished.model, finished.nano_usd)


def find_quote(quote: str, text: str) -> str | None:
    """The quote as it stands in the text, with single spaces; None where it does not, or says nothing."""
    wanted = " ".join(quote.split())
    if len(tokens(wanted)) < _LEAST_QUOTE or not content_words(wanted) or MARK in wanted:
        return None
    return wanted if wanted in " ".join(text.split()) else None


def _items(answer: str) -> list[dict[str, Any]]:
    try:
        found: Any = json.loads(answer)
    except ValueError as error:
        raise AnswerError("the answer is no JSON") from error
    listed: Any = cast("dict[Any, Any]", found).get("observations") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise AnswerError("the answer holds no list")
    items = cast("list[Any]", listed)[:_MOST_DRAFTS]
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _draft(item: dict[str, Any], lines: Sequence[Said]) -> Draft | str:
    """A draft, or the code of why it is refused."""
    number = item.get("message")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(lines):
        return "no_message"
    said = lines[number - 1]
    quote = find_quote(_text(item, "quote"), said.text)
    if quote is None:
        return "no_quote"
    kind = _text(item, "type")
    if kind not in _TYPES:
        return "no_type"
    content = kept(_in_its_language(_content(item, Type(kind), said, quote), said, quote))
    return _why_refused(content, quote) or Draft(content, said, quote, _valid_to(item, content.type, said, quote))


def _why_refused(content: Content, quote: str) -> str | None:
    if SECRET_MARK in quote or SECRET_MARK in " ".join(content.texts):
        return "secret"
    if junk.why_not(quote) in ("injection", "boot_prompt", "recalled"):
        return "junk"
    return "empty" if is_empty(content) else None


def _content(item: dict[str, Any], kind: Type, said: Said, quote: str) -> Content:
    subject, attribute, value = (_text(item, name) for name in ("subject", "attribute", "value"))
    if not _is_slot(attribute, value, quote):
        subject = attribute = value = ""
    elif subject.casefold() in _SPEAKER or subject.casefold() == one_line(said.speaker).casefold():
        subject = person(said.user_id)
    elif subject.casefold().startswith("person:"):
        subject = attribute = value = ""  # nobody but code says who somebody is
    return Content(
        type=kind,
        title=_text(item, "title"),
        narrative=_text(item, "narrative"),
        language=language_of(said.text),
        facts=_texts(item, "facts"),
        concepts=_texts(item, "concepts"),
        aliases=_texts(item, "aliases"),
        subject=subject,
        attribute=attribute,
        value=value,
        confidence=_confidence(item),
    )


def person(user_id: int) -> str:
    """The subject of what somebody says of themselves."""
    return f"person:{user_id}"


def _is_slot(attribute: str, value: str, quote: str) -> bool:
    """Say whether the value was really said: else nothing may be replaced by it."""
    if not attribute or attribute.casefold().strip() in _MANY_VALUED:
        return False
    words = [word for word in tokens(value) if len(word) > 1 or word.isdigit()]
    there = keys_of(tokens(quote))
    return bool(words) and all(not keys_of([word]).isdisjoint(there) for word in words)


def _in_its_language(content: Content, said: Said, quote: str) -> Content:
    """What was written in another language than it was said in gives way to the words that were said."""
    spoken = content.language
    own = tuple(fact for fact in content.facts if not _drifted(fact, spoken))
    if not (_drifted(content.narrative, spoken) or _drifted(content.title, spoken)):
        return replace(content, facts=own)
    concepts = tuple(each for each in content.concepts if each.casefold() in said.text.casefold())
    aliases = (*content.concepts, *content.aliases)
    title = shorten(quote, 60)
    return replace(content, title=title, narrative=quote, facts=own, concepts=concepts, aliases=aliases)


def _drifted(text: str, language: str) -> bool:
    words = tokens(text)
    if not words:
        return False
    is_russian = sum(map(is_cyrillic, words)) * 2 > len(words)
    if is_russian != (language == "ru"):
        return is_russian or len(words) > 1  # a name may be written in Latin
    is_sure = len(content_words(text)) < len(words) and len(words) >= _SURE_LANGUAGE
    return is_sure and told_language(text) not in (None, language)


def _valid_to(item: dict[str, Any], kind: Type, said: Said, quote: str) -> datetime | None:
    """By the words that were said; by the model only as far as it points at some of them."""
    until = find_part(_text(item, "until"), said.text)
    if until and (found := ends_at(until, said.at, is_passing=True)):
        return found
    return ends_at(quote, said.at) if kind in _PASSING_TYPES else None


def find_part(part: str, text: str) -> str:
    wanted = " ".join(part.split())
    return wanted if wanted and wanted in " ".join(text.split()) else ""


def _confidence(item: dict[str, Any]) -> float:
    value = item.get("confidence")
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(cast("float", value)) if is_number else 0.5


def _text(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


def _texts(item: dict[str, Any], name: str) -> tuple[str, ...]:
    value = item.get(name)
    return tuple(each for each in cast("list[Any]", value) if isinstance(each, str)) if isinstance(value, list) else ()
