"""Every text that people read, in English, German and Russian: one gettext catalogue a language.

Keys are words of ours (`fact-kept`), so that a change of wording is a change of the .po file alone.
"""

import gettext
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

LANGUAGES = ("en", "de", "ru")


@dataclass(frozen=True, slots=True)
class _Catalogue:
    texts: dict[str, tuple[str, ...]]
    plural: Callable[[int], int]


class Phrases:
    """The texts of one language. Called with a key and the values of its fields; `n=` chooses the plural form."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._catalogue = _load(language)

    def __call__(self, key: str, /, *, n: int | None = None, **values: object) -> str:
        """Raise KeyError for a key that the catalogue lacks."""
        forms = self._catalogue.texts[key]
        form = forms[0] if n is None else forms[self._catalogue.plural(n)]
        return form.format(n=n, **values) if n is not None else form.format(**values)

    def keys(self) -> frozenset[str]:
        return frozenset(self._catalogue.texts)

    def __contains__(self, key: object) -> bool:
        return key in self._catalogue.texts

    def forms(self, key: str) -> tuple[str, ...]:
        return self._catalogue.texts[key]


def phrases(language: str) -> Phrases:
    """The texts nearest to a BCP 47 tag; English where there is nothing nearer."""
    return _phrases(nearest(language))


def nearest(language: str) -> str:
    short = language.replace("_", "-").split("-")[0].lower()
    return short if short in LANGUAGES else "en"


@cache
def _phrases(language: str) -> Phrases:
    return Phrases(language)


@cache
def _load(language: str) -> _Catalogue:
    with (Path(__file__).parent / f"{language}.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    texts: dict[str, tuple[str, ...]] = {}
    for message in catalogue:
        if message.id:
            key = message.id if isinstance(message.id, str) else message.id[0]
            forms = message.string or ""
            texts[key] = (forms,) if isinstance(forms, str) else tuple(forms)
    return _Catalogue(texts, gettext.c2py(catalogue.plural_expr))


__all__ = ["LANGUAGES", "Phrases", "nearest", "phrases"]
