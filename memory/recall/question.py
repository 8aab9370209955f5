"""A question taken apart: its words and their forms, whom it names, whom it is about and when. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from memory.language.vocabulary import FIRST_PERSON, SAYING, SECOND_PERSON
from memory.language.words import evidence_words, language_of, name_keys, stems, tokens
from memory.recall.dates import MONTH_OF, Span, spans
from memory.storage.index.message_words import LANGUAGES

_DIGITS = 5
"""Of a number that may be a day or a year."""
_MOST_WORDS = 24
"""Of a question; a longer one asks about its first words or about nothing."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    words: tuple[str, ...]
    """Different ones, without those that only hold it together."""
    language: int
    """In the order of `LANGUAGES`."""
    spans: tuple[Span, ...]
    months: tuple[int, ...]
    """For each word the month that it names, else 0."""
    numbers: tuple[int, ...]
    """For each word the number that it is, else -1."""
    is_about_asker: bool
    is_about_answers: bool
    """What the assistant said: "what did you recommend"."""

    @property
    def forms(self) -> list[frozenset[str]]:
        """For each word the stems under which it may stand."""
        return [stems(word) for word in self.words]


def take_apart(text: str, today: date) -> Question:
    words = tuple(dict.fromkeys(evidence_words(text)))[:_MOST_WORDS]
    said = set(tokens(text))
    return Question(
        text=text,
        words=words,
        language=LANGUAGES.index(language_of(text)),
        spans=tuple(spans(text, today)),
        months=tuple(MONTH_OF.get(word, 0) for word in words),
        numbers=tuple(int(word) if word.isdecimal() and len(word) <= _DIGITS else -1 for word in words),
        is_about_asker=not said.isdisjoint(FIRST_PERSON),
        is_about_answers=not said.isdisjoint(SECOND_PERSON) and not said.isdisjoint(SAYING),
    )


def named_in(question: Question, names: Mapping[int, str]) -> tuple[frozenset[int], frozenset[str]]:
    """Who of these people is named, and by which words."""
    by_key: dict[str, set[int]] = {}
    for person, name in names.items():
        for token in tokens(name):
            for key in name_keys(token):
                by_key.setdefault(key, set()).add(person)
    people: set[int] = set()
    words: set[str] = set()
    for word in question.words:
        meant = {person for key in name_keys(word) for person in by_key.get(key, ())}
        if meant:
            people |= meant
            words.add(word)
    return frozenset(people), frozenset(words)
