"""An observation as a value: what was noticed, of whom, since when, and in whose words. A record, never an instruction.

Rule: what is stored went through `kept`: cleaned, without secrets, of bounded length; its hash is that of its content.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from memory.language.text import clean, content_hash, normal_form, one_line, shorten
from memory.language.words import Language, content_words, stems
from memory.scope import Scope
from memory.secrets import redact_secrets

MARK_OF = "[o{id}]"
"""How an answer cites an observation; `handlers.answering.citing` takes it out before anybody sees it."""

_TITLE, _NARRATIVE, _FACT, _CONCEPT, _SLOT = 80, 600, 240, 60, 80  # characters
_MOST_FACTS, _MOST_CONCEPTS = 8, 12


class Type(StrEnum):
    FACT = "fact"
    DECISION = "decision"
    EVENT = "event"
    CONCEPT = "concept"
    PREFERENCE = "preference"
    TASK = "task"


class Trigger(StrEnum):
    """What made it."""

    CHAT = "chat"
    HOOK = "hook"
    MANUAL = "manual"
    CONSOLIDATION = "consolidation"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where somebody said it, word for word. Without a message it is what a hook reported."""

    message_id: int | None
    quote: str
    user_id: int | None = None
    """Who said it."""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What an observation says, before it has a place."""

    type: Type
    title: str
    narrative: str
    language: Language = "en"
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """The concepts in the other languages of the room: keys under which it is found."""
    subject: str = ""
    """With `attribute`: the slot. `person:7` is somebody speaking of themselves."""
    attribute: str = ""
    value: str = ""
    confidence: float = 1.0

    @property
    def has_slot(self) -> bool:
        return bool(self.subject and self.attribute and self.value)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that a person or a model may read of it."""
        return (self.title, self.narrative, *self.facts, *self.concepts, *self.aliases, self.value)

    @property
    def body(self) -> str:
        """What it is compared by."""
        return "\n".join(dict.fromkeys(part for part in (self.title, self.narrative, *self.facts) if part))

    def hash_for(self, owner: str, user_id: int | None) -> str:
        """SHA-256 of the normalised content; with its scope key it is unique among what holds.

        Among others the same words of two people are two observations, unless they are about a third thing.
        """
        is_shared = not owner.startswith(("u", "s"))
        is_of_a_thing = bool(self.subject) and not self.subject.startswith("person:")
        whose = str(user_id) if is_shared and not is_of_a_thing else ""
        if self.has_slot:
            return content_hash(self.value, whose, self.subject, self.attribute)
        return content_hash(self.narrative or self.title, whose)

    def discovery_tokens(self) -> list[str]:
        """Stems of concepts and aliases, in every language of their script: the words it is also found under."""
        words = (word for text in (*self.concepts, *self.aliases) for word in content_words(text))
        return sorted({form for word in words for form in stems(word)})


@dataclass(frozen=True, slots=True)
class Observation:
    """One stored observation with its evidence."""

    id: int
    owner: str
    scope: Scope
    user_id: int | None
    session_id: int | None
    content: Content
    trigger_source: Trigger
    evidence: tuple[Evidence, ...]
    content_hash: str
    prompt_version: str | None
    relevance_count: int
    proof_count: int
    cost_tokens: int
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: int | None
    rival_id: int | None
    is_hidden: bool
    created_at: datetime
    updated_at: datetime

    @property
    def type(self) -> Type:
        return self.content.type

    @property
    def title(self) -> str:
        return self.content.title

    @property
    def narrative(self) -> str:
        return self.content.narrative

    @property
    def mark(self) -> str:
        return mark(self.id)

    def holds_at(self, now: datetime) -> bool:
        """Say whether it is in force."""
        is_over = self.valid_to is not None and self.valid_to <= now
        return not (is_over or self.is_hidden or self.superseded_by is not None)


def mark(observation_id: int) -> str:
    return MARK_OF.format(id=observation_id)


def kept(content: Content) -> Content:
    """The content fit to be stored. Empty where nothing is left of it: `is_empty`."""
    title = _kept(content.title, _TITLE)
    narrative = _kept(content.narrative, _NARRATIVE)
    return replace(
        content,
        title=title or shorten(narrative, _TITLE),
        narrative=narrative or title,
        facts=_all_kept(content.facts, _FACT, _MOST_FACTS),
        concepts=_all_kept(content.concepts, _CONCEPT, _MOST_CONCEPTS),
        aliases=_all_kept(content.aliases, _CONCEPT, 2 * _MOST_CONCEPTS),
        subject=normal_form(_kept(content.subject, _SLOT)),
        attribute=normal_form(_kept(content.attribute, _SLOT)).replace(" ", "_"),
        value=_kept(content.value, _FACT),
        confidence=min(max(content.confidence, 0.0), 1.0),
    )


def kept_quote(quote: str) -> str:
    """A quote as it is stored: verbatim but for white space and secrets."""
    return redact_secrets(" ".join(quote.split()))[0]


def is_empty(content: Content) -> bool:
    return not content_words(content.body)


def _kept(text: str, limit: int) -> str:
    return shorten(redact_secrets(one_line(clean(text)))[0], limit)


def _all_kept(texts: Iterable[str], limit: int, most: int) -> tuple[str, ...]:
    found = {normal_form(each): each for each in (_kept(text, limit) for text in texts) if each}
    return tuple(found.values())[:most]
