"""What a plain statement is about and which value it gives: "My dog is called Bruno" -> name:dog, "Bruno".

Pure. What fits no frame, or only doubtfully, has no slot.
"""

import re
from dataclasses import dataclass

from memory.language.frames import FRAMES, Frame, Kind
from memory.language.vocabulary import CONCEPTS, PEOPLE_AND_PETS, PETS, SINGLE_VALUED
from memory.language.words import Language, concept_of, is_stop_word, keys, keys_of, stem, telling_words, tokens


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sentence in the first or second person states."""

    kind: Kind
    about: str
    """The words that say what it is about."""
    value: str
    language: Language
    slot: str | None
    """None where several values can hold side by side."""


_CLAUSE_END = (
    r"(?<!\d)(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bSt)\.(?=\s|$)|\.$|[,;:!?\n()]|\s[-–—]\s|"
    r"(?:^|\s)(?:and|but|because|since|last|so|who|und|aber|weil|denn|seit|и|а|но|потому|уже)\s"
)
_END = re.compile(_CLAUSE_END)
_ENDS = {
    "name": re.compile(rf"{_CLAUSE_END}|\s(?:is|was|has|ist|war|hat|in|at|from|aus|von|из)\s"),
    "object": re.compile(r"\.(?=\s|$)|[;:!?\n()]|\s(?:but|because|aber|weil|но|потому)\s"),  # lists stay whole
}
_QUOTES = " \t\"'„“”«»*_"
_LONGEST_NAME = 4  # words
_CONDITION = re.compile(r"^\W*(?:if|when|wenn|falls|если|когда)\b", re.IGNORECASE)
_NEGATIONS = frozenset(("not", "no", "never", "nicht", "kein", "keine", "keinen", "nie", "не", "нет"))
_FILLERS = frozenset(("number",))


def statement(sentence: str) -> Statement | None:
    """What a sentence states; None for questions, conditions and whatever fits no frame."""
    sentence = sentence.strip()
    if sentence.rstrip(_QUOTES + ")").endswith("?") or _CONDITION.match(sentence):
        return None
    for frame in FRAMES:
        match = frame.pattern.search(sentence)
        if match and (found := _read(frame, match)):
            return found
    return None


def slot(text: str) -> str | None:
    """The slot that a statement fills, such as "name:dog"; two values in one slot are rivals."""
    found = statement(text)
    return found.slot if found else None


def are_rivals(one: str, other: str) -> bool:
    """Say whether two statements give the same slot values of which only one can hold."""
    first, second = statement(one), statement(other)
    if first is None or second is None or first.slot is None or first.slot != second.slot:
        return False
    values, others = keys_of(telling_words(first.value)), keys_of(telling_words(second.value))
    return not (values <= others or others <= values)  # "in Berlin" and "in Berlin with Anna" agree


def say_the_same(one: str, other: str) -> bool:
    """Say whether two statements of one slot differ in nothing but form or language."""
    words, others = ([keys(word) for word in telling_words(text)] for text in (one, other))
    return _are_all_in(words, others) and _are_all_in(others, words)


def are_about_different_things(one: str, other: str) -> bool:
    """Certain only where the vocabulary knows both: "name:dog" and "name:brother", not "name:dog" and "name:pet"."""
    return (
        one != other and all(part in CONCEPTS for part in _parts(one) | _parts(other)) and _class(one) != _class(other)
    )


def _class(slot: str) -> str:
    kind, _, about = slot.partition(":")
    return f"{kind}:pet" if set(about.split("-")) <= PETS else slot


def _parts(slot: str) -> set[str]:
    return set(slot.partition(":")[2].split("-")) - {"self"}


def _are_all_in(words: list[frozenset[str]], others: list[frozenset[str]]) -> bool:
    return all(any(not word.isdisjoint(other) for other in others) for word in words)


def _read(frame: Frame, match: re.Match[str]) -> Statement | None:
    about = (match.groupdict().get("x") or "").strip()
    value = _cut(match["v"], _ENDS.get(frame.kind, _END))
    words = tokens(value)
    if (
        not words
        or words[0] in _NEGATIONS
        or not (telling_words(value) or (frame.kind == "name" and value[0].isupper()))
    ):
        return None
    kind = _kind_of_trait(about, value) if frame.kind == "trait" else frame.kind
    if kind == "name" and len(value.split()) > _LONGEST_NAME:
        return None
    if about and all(is_stop_word(word) for word in tokens(about)):
        return None
    return Statement(kind, about or frame.attribute, value, frame.language, _slot(kind, about, frame.language))


def _kind_of_trait(about: str, value: str) -> Kind:
    """Only for a few X does "my X is Y" tell something exclusive."""
    concepts = {concept for word in tokens(about) if (concept := concept_of(word))}
    if concepts & SINGLE_VALUED:
        return "trait"
    is_named = value[:1].isupper() and value[1:].islower() and len(value.split()) == 1
    return "name" if concepts & PEOPLE_AND_PETS and is_named else "state"


def _slot(kind: Kind, about: str, language: Language) -> str | None:
    if kind in ("object", "state"):
        return None
    parts = {concept_of(word) or stem(word, language) for word in tokens(about) if not is_stop_word(word)}
    return f"{kind}:{'-'.join(sorted(parts - _FILLERS)) or 'self'}"


def _cut(value: str, end: re.Pattern[str]) -> str:
    value = value.lstrip(_QUOTES)
    match = end.search(value)
    return (value[: match.start()] if match else value).strip(_QUOTES + "….")
