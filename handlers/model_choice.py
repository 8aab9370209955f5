"""Which model answers a message: pure. Trivial and ordinary ones go to the default model, complex ones to smart.

Rule: a change of model has to pay for what has to be read anew. A prompt cache belongs to one model: after a switch
the whole history is written to another one (1-hour writes cost twice the input price, reads a twentieth of it).
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from handlers import model_words as data
from memory.language.vocabulary import SMALL_TALK
from memory.language.words import stems, telling_words, tokens
from memory.ports import Tier


class Kind(StrEnum):
    TRIVIAL = "trivial"
    DEFAULT = "default"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a message shows of itself."""

    text: str
    documents: int = 0
    """Files that came with it."""
    work_failed: bool = False
    """Something went wrong with the open piece of work before."""


@dataclass(frozen=True, slots=True)
class Judgement:
    kind: Kind
    reason: str
    """A code."""
    confidence: float
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class Routing:
    """What else bears on the choice."""

    pinned: Tier | None = None
    last: Tier | None = None
    """Which model the matter in hand was given to."""
    history_tokens: int = 0
    """What another model would have to read anew, about."""
    trivial_to_small: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    tier: Tier
    kind: Kind
    reason: str
    confidence: float
    matter: Tier
    """Which model the matter in hand belongs to after this: small talk in between changes nothing."""


COMPLEX_SCORE = 2.0
LONG, VERY_LONG, ENDLESS = 28, 70, 140
"""Words of a message."""
FEW_WORDS = 10
SMALL_HISTORY = 2000
"""Tokens. Beyond, a word of thanks is answered at less cost by whoever has the history in cache: on the default model
it saves some 50 output tokens at 10 dollars a million, and costs the history at 4."""
LARGE_HISTORY = 50_000
"""Tokens. From here on a switch costs as much as several answers."""

_LISTED = re.compile(r"(?:^|\s)(?:\d{1,2}[.)]|[-•*])\s+\S", re.MULTILINE)
_CODE = re.compile(r"```|^\s+at [\w.$]+\(|Traceback \(most recent|\w+(?:Error|Exception)\b", re.MULTILINE)
_QUOTED = re.compile(r"""(?<!\w)['"„“«‘][^'"“”»’]{1,80}['"“”»’](?!\w)""")
_WEIGHTY = frozenset(stem for word in data.WEIGHTY for stem in stems(word))
_THOUGHTFUL = frozenset(stem for word in data.THOUGHTFUL for stem in stems(word)) - _WEIGHTY
_PHATIC = frozenset(stem for word in data.PHATIC | SMALL_TALK for stem in stems(word))


def judge(asked: Asked) -> Judgement:
    """The class of a message by itself."""
    if asked.documents:
        return Judgement(Kind.COMPLEX, "documents", 0.9)
    if asked.work_failed:
        return Judgement(Kind.COMPLEX, "work_failed", 0.8)
    words = tokens(asked.text)
    if small := _small_talk(asked.text, words):
        return small
    score, reason = _score(asked.text, words)
    if score >= COMPLEX_SCORE:
        return Judgement(Kind.COMPLEX, reason, min(0.95, 0.6 + 0.1 * (score - COMPLEX_SCORE)))
    if len(words) < FEW_WORDS and words[0] in data.FOLLOWING:
        return Judgement(Kind.DEFAULT, "follow_up", 0.5)
    return Judgement(Kind.DEFAULT, "ordinary", min(0.9, max(0.5, 0.9 - 0.2 * score)))


def choose(asked: Asked, routing: Routing) -> Choice:
    """The model for a message, in its session."""
    if routing.pinned is not None:
        return Choice(routing.pinned, judge(asked).kind, "pinned", 1.0, routing.last or Tier.DEFAULT)
    judged = judge(asked)
    last = routing.last or Tier.DEFAULT
    if judged.kind is Kind.TRIVIAL:
        tier, reason = _for_small_talk(judged, routing, last)
        return Choice(tier, judged.kind, reason, judged.confidence, last)
    wanted = Tier.SMART if judged.kind is Kind.COMPLEX else Tier.DEFAULT
    if wanted is not last and judged.confidence < _needed(wanted, routing.history_tokens):
        return Choice(last, judged.kind, "sticky", judged.confidence, last)
    return Choice(wanted, judged.kind, judged.reason, judged.confidence, wanted)


def _for_small_talk(judged: Judgement, routing: Routing, last: Tier) -> tuple[Tier, str]:
    """Never worth a switch by itself; only where there is little to read anew does it leave the smart model."""
    if last is Tier.SMART and (judged.reason == "assent" or routing.history_tokens >= SMALL_HISTORY):
        return Tier.SMART, "sticky"
    if routing.trivial_to_small and routing.history_tokens < SMALL_HISTORY:
        return Tier.SMALL, judged.reason
    return Tier.DEFAULT, judged.reason


def _needed(wanted: Tier, history_tokens: int) -> float:
    """How sure one must be to leave for another model. A hard question gets there more easily than one leaves it."""
    burden = min(1.0, history_tokens / LARGE_HISTORY)
    return 0.5 + 0.25 * burden if wanted is Tier.SMART else 0.7 + 0.2 * burden


def _small_talk(text: str, words: list[str]) -> Judgement | None:
    """Nothing of substance is said or asked."""
    if not words:
        return Judgement(Kind.TRIVIAL, "small_talk", 0.95)
    if len(words) >= FEW_WORDS or any(word.isdigit() for word in words):
        return None
    lowered = _plain(text)
    if any(phrase in lowered for phrase in data.PHATIC_QUESTIONS):
        return Judgement(Kind.TRIVIAL, "small_talk", 0.9)
    if words[0] in data.FOLLOWING and "?" in text:
        return None
    telling = telling_words(text)
    if not all(_is_phatic(word) for word in telling) or (not telling and words[0] in data.FOLLOWING):
        return None
    is_assent = words[0] in data.ASSENT and all(word in data.ASSENT for word in words)
    return Judgement(Kind.TRIVIAL, "assent", 0.6) if is_assent else Judgement(Kind.TRIVIAL, "small_talk", 0.95)


def _is_phatic(word: str) -> bool:
    return word in SMALL_TALK or not stems(word).isdisjoint(_PHATIC)


def _score(text: str, words: list[str]) -> tuple[float, str]:
    """How much thought is asked for, and what shows it most."""
    lowered = _plain(text)
    unquoted = tokens(_QUOTED.sub(" ", text))  # a word that is spoken of asks for nothing
    weighty = {word for word in unquoted if _is_weighty(word)}
    thoughtful = {word for word in unquoted if word not in weighty and not stems(word).isdisjoint(_THOUGHTFUL)}
    strong = sum(phrase in lowered for phrase in data.WEIGHTY_PHRASES)
    weighing = sum(phrase in lowered for phrase in data.WEIGHING)
    shares = {
        "words": 2.0 * (len(weighty) + strong) + 0.75 * len(thoughtful) + 0.75 * weighing,
        "long": (len(words) >= LONG) + (len(words) >= VERY_LONG) + (len(words) >= ENDLESS),
        "parts": _parts(text),
        "figures": 0.5 if sum(word.isdigit() for word in words) > 1 else 0.0,
        "code": 2.0 if _CODE.search(text) else 0.0,
    }
    favour = sum(phrase in lowered for phrase in data.SIMPLE) and len(words) < LONG
    return sum(shares.values()) - (1.5 if favour else 0.0), max(shares, key=lambda name: shares[name])


def _parts(text: str) -> float:
    listed, questions = len(_LISTED.findall(text)), text.count("?")
    return (1.5 if listed >= 3 else 0.0) + (1.0 if questions >= 3 else 0.5 if questions == 2 else 0.0)  # noqa: PLR2004 - several parts begin there


def _is_weighty(word: str) -> bool:
    return not stems(word).isdisjoint(_WEIGHTY) or word.startswith(data.BEGINNINGS)


def _plain(text: str) -> str:
    return text.lower().replace("ё", "е").replace("’", "'")
