"""In which forms names, numbers and dates stand in a text: joined, split, fond, or as a word that means something else.

Pure. telling.py decides with it what gives a fact away.
"""

import re
from collections.abc import Iterable
from typing import Final

from memory.language.text import sentences
from memory.language.vocabulary import ARTICLES, MONTHS, NAMES_THAT_ARE_WORDS
from memory.language.words import concept_of, is_cyrillic, name_keys, tokens

_DIGIT: Final = re.compile(r"\d")
_COMPOUND: Final = re.compile(r"[^\W\d_]{2,}(?:[-‐‑][^\W\d_]{2,})+")
_THOUSANDS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:([.,'’\u00a0\u202f\u2009 ])\d{3})(?:\1\d{3})*(?![\d])")
_DIGITS: Final = re.compile(r"\+?\(?\d(?:[ /().\u00a0-]{0,2}\d){6,}")
_ORDINAL: Final = r"(?:st|nd|rd|th|-?го|-?е|\.)?"
_DAY_MONTH: Final = re.compile(rf"(?<![\d.,])(\d{{1,2}}){_ORDINAL}(?:\s+of)?\s+([^\W\d_]{{3,}})", re.IGNORECASE)
_MONTH_DAY: Final = re.compile(r"([^\W\d_]{3,})\s+(?:the\s+)?(\d{1,2})(?:st|nd|rd|th)?(?![\d:])", re.IGNORECASE)
_NUMERIC: Final = re.compile(r"(?<![\d.])(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.(?!\d{5})")
_DATE: Final = "date"
_WORD: Final = re.compile(r"[^\W_]+")

_SHORTEST: Final = 4
"""Letters of a name, without its last vowel, from which fond forms are known."""
_VOWELS: Final = "aeiouyаеиоуыюяэ"
_TAILS: Final = {
    True: r"[оеиуюаыя]?(?:(?:ш|шк|чк|ньк|льк)(?:а|и|е|у|о|ой|ей|ою|ею|ам|ами|ах)?|(?:чик|ик|ок|ек)(?:а|у|ом|е|и|ов)?)",
    False: r"(?:y|ie|ey|chens?|leins?|it[oa]|kins?|ka|chik|u?shk?a)",
}


def written_words(text: str) -> list[str]:
    """The tokens of a text, and what they are taken together: "Anna-Lena" also annalena, "5.200" also 5200, "3rd of
    May" also one word for that day.
    """
    return [*tokens(text), *joined_words(text), *dates(text)]


def joined_words(text: str) -> list[str]:
    """Compounds without their hyphens, numbers without what separates their digits."""
    found = [word for match in _COMPOUND.finditer(text) for word in tokens(re.sub(r"[-‐‑]", "", match.group()))]
    if not _has_digits(text):
        return found
    numbers = [match.group() for pattern in (_THOUSANDS, _DIGITS) for match in pattern.finditer(text)]
    return found + [re.sub(r"\D", "", number) for number in numbers]


def dates(text: str) -> list[str]:
    """A word for every day of the year that is named, the same in any order and language."""
    if not _has_digits(text):
        return []
    pairs = [(day, _month(name)) for day, name in _DAY_MONTH.findall(text)]
    pairs += [(day, _month(name)) for name, day in _MONTH_DAY.findall(text)]
    pairs += [(day, MONTHS[int(month) - 1]) for day, month in _NUMERIC.findall(text)]
    return [f"{_DATE}{int(day)}{month}" for day, month in pairs if month]


def fond_forms(names: Iterable[str]) -> re.Pattern[str] | None:
    """What matches the fond forms of names in lower case, whole words: "брунчик" and "бруноша" of "бруно"."""
    forms: list[str] = []
    for name in names:
        for whole in filter(str.isalpha, _spellings(name)):
            bases = {whole, whole[:-1]} if whole[-1] in _VOWELS else {whole}
            forms += [re.escape(base) + _TAILS[is_cyrillic(base)] for base in bases if len(base) >= _SHORTEST]
    return re.compile("|".join(sorted(forms))) if forms else None


def has_fond_form(forms: re.Pattern[str], text: str) -> bool:
    """Say whether a fond form stands there as a name does: with a capital, or where nothing has one."""
    is_plain = text == text.lower()
    return any(
        (is_plain or match.group()[0].isupper()) and forms.fullmatch(_plain(match.group()))
        for match in _WORD.finditer(text)
    )


def is_word_too(name: str, texts: Iterable[str]) -> bool:
    """Say whether a name is also a word: by the vocabulary, or because it stands in lower case after an article."""
    if name in NAMES_THAT_ARE_WORDS:
        return True
    after_article = re.compile(rf"\b(?:a|an|the)\s+{re.escape(name)}\b")
    return any(after_article.search(text) for text in texts)


def stands_as_name(forms: frozenset[str], text: str) -> bool:
    """Say whether a name that is also a word stands there as a name: with a capital, and without an article."""
    before = before_that = ""
    for match in _WORD.finditer(text):
        word = match.group()
        is_noun = {before, before_that} & ARTICLES  # "the mark", "ein großer Bär"
        if word[0].isupper() and not is_noun and any(not name_keys(each).isdisjoint(forms) for each in tokens(word)):
            return True
        before, before_that = word.lower(), before
    return False


def stands_capital(word: str, text: str) -> bool:
    """Say whether it is written with a capital where no sentence begins."""
    for part in sentences(text):
        for match in list(re.finditer(r"[^\W_]+", part))[1:]:
            if match.group()[0].isupper() and match.group().lower().replace("ё", "е") == word:
                return True
    return False


def _has_digits(text: str) -> bool:
    return _DIGIT.search(text) is not None


def _month(name: str) -> str | None:
    concept = concept_of(_plain(name))
    return concept if concept in MONTHS else None


def _spellings(name: str) -> set[str]:
    """The name in its own letters and, of Cyrillic ones, in Latin."""
    return {form for form in name_keys(name) if form == name or not is_cyrillic(form)} if is_cyrillic(name) else {name}


def _plain(word: str) -> str:
    return word.lower().replace("ё", "е")
