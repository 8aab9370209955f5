"""Words of a text in English, German and Russian: tokens, stems, and the keys by which two words are the same.

Pure. Stored text is stemmed in its own language; a question is stemmed in every language of its script.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal, Protocol

import Stemmer

from memory.language.vocabulary import CONCEPTS, FUNCTION_WORDS, ORDINARY_VALUES, SMALL_TALK, STOP_WORDS

Language = Literal["en", "de", "ru"]


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 - the library's name


def _stemmer(language: str) -> _Stemmer:
    library: Any = Stemmer  # it has no types
    return library.Stemmer(language)


_STEMMERS = {"en": _stemmer("english"), "de": _stemmer("german"), "ru": _stemmer("russian")}
_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_POSSESSIVE = re.compile(r"['’ʼ]s$")
_LETTERS_OF = {"de": frozenset("äöüß")}
_LATIN_OF = dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziiklmnoprstufye", strict=True)) | {
    "ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": "", "ю": "yu", "я": "ya",
}  # fmt: skip
_ALL_STOP_WORDS = frozenset(word for words in STOP_WORDS.values() for word in words)


def tokens(text: str) -> list[str]:
    """Lower-case words of letters and digits, in order; a possessive 's is cut, "Lieblings-" stands apart."""
    found: list[str] = []
    for match in _WORD.finditer(text):
        word = _lower(match.group())
        if word.startswith("lieblings") and len(word) > len("lieblings"):
            found += ["lieblings", word.removeprefix("lieblings")]
        else:
            found.append(word)
    return found


def is_cyrillic(word: str) -> bool:
    return _CYRILLIC.search(word) is not None


@lru_cache(maxsize=100_000)
def stem(word: str, language: Language) -> str:
    """The stem of one token of `tokens`."""
    return _STEMMERS[language].stemWord(word)


@lru_cache(maxsize=100_000)
def stems(word: str) -> frozenset[str]:
    """The stems of a token in every language of its script."""
    if is_cyrillic(word):
        return frozenset((stem(word, "ru"),))
    return frozenset((stem(word, "en"), stem(word, "de")))


@lru_cache(maxsize=100_000)
def keys(word: str) -> frozenset[str]:
    """What a token has in common with other forms of it, and (as "~concept") with its counterparts elsewhere."""
    found = stems(word)
    concept = concept_of(word)
    return found | {f"~{concept}"} if concept else found


@lru_cache(maxsize=100_000)
def name_keys(word: str) -> frozenset[str]:
    """The keys of a name: its forms in either script ("Барсика" and "Barsik")."""
    found = keys(word) | {_unaccented(word)}
    if is_cyrillic(word):
        found |= {_latin(form) for form in (word, *stems(word))}
    return found


def concept_of(word: str) -> str | None:
    """What the word means, where the vocabulary knows it."""
    return next((_CONCEPT_STEMS[form] for form in sorted(stems(word)) if form in _CONCEPT_STEMS), None)


def is_ordinary(word: str) -> bool:
    """A colour, a month, a size: says nothing by itself."""
    return not stems(word).isdisjoint(_ORDINARY_STEMS)


def is_stop_word(word: str) -> bool:
    return word in _ALL_STOP_WORDS or (len(word) == 1 and not word.isdigit())


def content_words(text: str) -> list[str]:
    """The tokens that carry meaning: no stop words, greetings or thanks. Empty = nothing to ask memory about."""
    return [word for word in tokens(text) if not is_stop_word(word) and word not in SMALL_TALK]


def telling_words(text: str) -> list[str]:
    """The tokens that are no stop words; unlike `content_words` it keeps words like "day"."""
    return [word for word in tokens(text) if not is_stop_word(word)]


def keys_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset(key for word in words for key in keys(word))


def language_of(text: str) -> Language:
    """The language of a text; English when nothing tells."""
    return told_language(text) or "en"


def told_language(text: str) -> Language | None:
    """The language that a text's script, or its stop words and letters, tell; None where they do not."""
    words = tokens(text)
    cyrillic = sum(is_cyrillic(word) for word in words)
    if cyrillic * 2 > len(words):
        return "ru"
    german = sum((word in STOP_WORDS["de"]) + (not _LETTERS_OF["de"].isdisjoint(word)) for word in words)
    english = sum(word in STOP_WORDS["en"] for word in words)
    if german == english:  # "Ada wohnt in Leipzig": the one stop word is of both
        return None
    return "de" if german > english else "en"


def index_terms(text: str) -> list[str]:
    """The terms under which a stored text is found: its content words, stemmed in its own language."""
    language = language_of(text)
    return [_term(word, language) for word in content_words(text)]


def query_terms(text: str) -> list[frozenset[str]]:
    """One set of alternatives for every different content word of a question."""
    return [stems(word) for word in dict.fromkeys(content_words(text))]


def evidence_words(text: str) -> list[str]:
    """The tokens of a message or of a question about messages, without those that only hold a sentence together."""
    return [word for word in tokens(text) if word not in FUNCTION_WORDS and (len(word) > 1 or word.isdigit())]


def evidence_terms(text: str, language: Language) -> list[str]:
    """The terms under which a message is found, in order, stemmed in its own language."""
    return [_term(word, language) for word in evidence_words(text)]


def _term(word: str, language: Language) -> str:
    if is_cyrillic(word):
        return stem(word, "ru")
    return stem(word, "en" if language == "ru" else language)


@lru_cache(maxsize=100_000)
def _lower(word: str) -> str:
    folded = unicodedata.normalize("NFC", word).lower().replace("ё", "е").replace("’", "'").replace("ʼ", "'")
    return _POSSESSIVE.sub("", folded)


def _unaccented(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _latin(word: str) -> str:
    return "".join(_LATIN_OF.get(letter, letter) for letter in word)


def _by_stem(table: dict[str, str]) -> dict[str, str]:
    return {form: concept for concept, words in table.items() for word in words.split() for form in stems(_lower(word))}


_ORDINARY_STEMS = _by_stem(ORDINARY_VALUES)
_CONCEPT_STEMS = _ORDINARY_STEMS | _by_stem(CONCEPTS)
