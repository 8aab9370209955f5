"""Whether two observations say the same, and what a new value does to an old one. Pure but for one question to a model.

Rule: nothing outside the same slot is ever ended, and what is only similar is kept beside it.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from memory.kinds.observations import prompt
from memory.kinds.observations.observation import Content
from memory.language.text import normal_form
from memory.language.words import content_words, keys, keys_of, tokens
from memory.ports import (
    Account,
    ChatMessage,
    Finished,
    LanguageModel,
    ModelRequest,
    Purpose,
    TextBlock,
    Tier,
    complete,
)

HIGH, LOW = 0.9, 0.55
"""Cosine: from HIGH on the same, where the words agree; below LOW different, where they do not."""
_ALIKE, _UNLIKE = 0.7, 0.4
"""Share of the words in common."""
SURE = 0.7
"""Confidence from which a new value takes the old one's place without asking."""

_ANSWER_TOKENS = 100
_NEGATIONS = frozenset(
    (
        *("not", "no", "never", "none", "without", "isn't", "doesn't", "don't", "didn't", "won't", "can't", "hates"),
        *("hate", "dislikes", "dislike", "nicht", "kein", "keine", "keinen", "keiner", "nie", "niemals", "ohne"),
        *("hasst", "не", "нет", "никогда", "без", "ненавидит", "ненавижу"),
    )
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


class Likeness(StrEnum):
    SAME = "same"
    DOUBTFUL = "doubtful"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Words:
    """What is compared of a text, worked out once."""

    keys: tuple[frozenset[str], ...]
    numbers: frozenset[str]
    negations: int

    @classmethod
    def of(cls, text: str) -> "Words":
        words = tokens(text)
        return cls(
            tuple(keys(word) for word in dict.fromkeys(content_words(text))),
            frozenset(_NUMBER.findall(text)),
            sum(word in _NEGATIONS for word in words) % 2,
        )


def compare(new: Content, old: Content, cosine: float | None) -> Likeness:
    """Whether two observations of one scope and one person say the same. `cosine` is None without an embedder."""
    if new.has_slot and old.has_slot:
        is_same_slot = (new.subject, new.attribute) == (old.subject, old.attribute)
        return Likeness.SAME if is_same_slot and agree(new.value, old.value) else Likeness.DIFFERENT
    mine, theirs = Words.of(new.body), Words.of(old.body)
    if mine.numbers != theirs.numbers or mine.negations != theirs.negations:
        return Likeness.DIFFERENT
    here, there = _found(mine, theirs), _found(theirs, mine)
    share = min(here / max(len(mine.keys), 1), there / max(len(theirs.keys), 1))
    says_more = here < len(mine.keys) and there < len(theirs.keys)  # each has a word that the other lacks
    if share >= _ALIKE and not says_more and (cosine is None or cosine >= HIGH):
        return Likeness.SAME
    if share < _UNLIKE and (cosine is None or cosine < LOW):
        return Likeness.DIFFERENT
    return Likeness.DOUBTFUL


def agree(value: str, other: str) -> bool:
    """Say whether two values of a slot can both hold: "Berlin" and "in Berlin, Kreuzberg"."""
    if normal_form(value) == normal_form(other):
        return True
    if set(_NUMBER.findall(value)) != set(_NUMBER.findall(other)):
        return False
    words, others = keys_of(content_words(value)), keys_of(content_words(other))
    return bool(words and others) and (words <= others or others <= words)


async def ask(model: LanguageModel, one: Content, other: Content) -> tuple[bool, Finished]:
    """Let a model decide the doubtful middle. Raises `ModelError`; an answer that cannot be read is a no."""
    request = ModelRequest(
        system=(TextBlock(prompt.SAME_SYSTEM),),
        messages=(ChatMessage("user", (TextBlock(prompt.comparison(one.body, other.body)),)),),
        tier=Tier.SMALL,
        max_tokens=_ANSWER_TOKENS,
        schema=prompt.SAME_SCHEMA,
        account=Account(Purpose.CONSOLIDATION),
    )
    finished = await complete(model, request)
    try:
        answer: Any = json.loads(finished.text)
    except ValueError:
        return False, finished
    return isinstance(answer, dict) and cast("dict[str, Any]", answer).get("same") is True, finished


def _found(words: Words, others: Words) -> int:
    return sum(any(not word.isdisjoint(other) for other in others.keys) for word in words.keys)
