"""Which sentences tell a forgotten fact, and the text without them. Pure: texts in, texts out.

Rule: a name of the fact tells it anywhere; an ordinary value only beside what it is about, or as the answer to a
question about it. What a person states of something else, or of themselves in a group, is not this fact.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memory.language.forms import (
    dates,
    fond_forms,
    has_fond_form,
    is_word_too,
    joined_words,
    stands_as_name,
    stands_capital,
    written_words,
)
from memory.language.slots import Statement, are_about_different_things, statement
from memory.language.text import MARK, normal_form, sentences
from memory.language.vocabulary import FIRST_PERSON
from memory.language.words import (
    content_words,
    is_ordinary,
    is_stop_word,
    keys,
    language_of,
    name_keys,
    telling_words,
    tokens,
)

Keys = frozenset[str]
_NONE: Keys = frozenset()

_RARE = 5  # sentences that use a word for something else; a word used more often says nothing by itself
_VERY_RARE = 2
_ENOUGH = 0.5  # share of the words of a fact without a frame that tells it
_LONG_NUMBER = 4  # digits
_LITERAL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+|https?://\S+|(?<!\w)@\w{3,}|#\w{3,}")
_PROPER = ("name", "home", "employer", "birthplace")  # their values are proper names: a dog called Fish is no fish
_YEAR = re.compile(r"(?:19|20)\d\d")
_LIST = re.compile(r",|\b(?:and|or|und|oder|и|или)\b")
_COMMAND = re.compile(r"\s*/[a-z_]+(?:@\w+)?\s+")
_QUESTION = re.compile(r"[?？]")


@dataclass(frozen=True, slots=True)
class Line:
    """A message of the log as far as forgetting needs it, in the order of the log."""

    id: int
    session_id: int
    user_id: int | None
    role: str
    text: str
    is_ephemeral: bool = False


class Log:
    """The lines of one owner, told apart quickly: most have no word in common with what is forgotten."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self._words = [frozenset(written_words(line.text)) for line in lines]
        self._vocabulary = _NONE.union(*self._words)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def with_any(self, wanted: Keys) -> set[int]:
        """The ids of the lines that have a word with one of these keys."""
        return self._with(word for word in self._vocabulary if not wanted.isdisjoint(name_keys(word)))

    def matching(self, forms: re.Pattern[str]) -> set[int]:
        """The ids of the lines that have a word of this form."""
        return self._with(word for word in self._vocabulary if forms.fullmatch(word))

    def _with(self, wanted: Iterable[str]) -> set[int]:
        words = set(wanted)
        return {line.id for line, there in zip(self.lines, self._words, strict=True) if not words.isdisjoint(there)}


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is to be forgotten, who said it and in which messages."""

    text: str
    user_id: int | None = None
    source_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Telling:
    """What gives a fact away."""

    fact: Forgotten
    found: Statement | None
    names: Keys
    """Any of these, anywhere."""
    values: tuple[Keys, ...]
    """One of these beside an attribute, or in an answer; all of them anywhere where there are three."""
    attributes: Keys
    content: tuple[Keys, ...]
    """The words of the fact, for statements that fit no frame."""
    literals: tuple[str, ...] = ()
    doubtful: Keys = _NONE
    """Those of the names that are words of every day, too: written as a name, or beside an attribute."""
    fond: re.Pattern[str] | None = None
    """Fond forms of the names."""
    kept: tuple[tuple[Keys, ...], ...] = ()
    """Per fact that stays: its words. A sentence that states it stays."""

    @property
    def triggers(self) -> Keys:
        return self.names.union(*self.values, *self.content)


@dataclass(frozen=True, slots=True)
class _Setting:
    """What a sentence stands in."""

    answers: bool = False
    """It follows a question about the attribute."""
    is_confirmed: bool = False
    """The assistant takes up the message in which a person stated it."""
    is_on_topic: bool = False
    """The message before it spoke of the fact: "Yes, green!" repeats it, "Green frogs" does not."""
    is_strict: bool = False
    """The place is known to hold the fact: a value alone tells it."""


def tell(fact: Forgotten, kept: Iterable[str], log: Log) -> Telling:
    """Work out what gives a fact away, given the facts that stay and the person's own log."""
    found = statement(fact.text)
    kept_words = tuple(tuple(name_keys(word) for word in telling_words(text)) for text in kept)
    kept_keys = _NONE.union(*(word for words in kept_words for word in words))
    words = _value_words(fact.text, found)
    attributes = _attributes(found)
    uses = _uses([word for word in words if not is_ordinary(word)], attributes, log)
    names = {
        word for word in words if _is_name(word, fact.text, found, uses[word]) and kept_keys.isdisjoint(keys(word))
    }
    is_proper = found is not None and found.kind in _PROPER
    keys_of_names = {word: _own_keys(word, is_proper=is_proper) for word in names}
    doubtful = [word for word in names if is_proper and is_word_too(word, (line.text for line in log))]
    return Telling(
        fact,
        found,
        names=_NONE.union(*keys_of_names.values(), *map(name_keys, _taken_together(fact.text, found))),
        doubtful=_NONE.union(*(keys_of_names[word] for word in doubtful)),
        fond=fond_forms(names) if found is not None and found.kind == "name" else None,
        values=tuple(name_keys(word) for word in words if word not in names) if found else (),
        attributes=attributes,
        content=tuple(name_keys(word) for word in _content(fact.text)),
        literals=tuple(match.lower() for match in _LITERAL.findall(fact.text)),
        kept=tuple(word for word in kept_words if word),
    )


def redactions(tellings: Sequence[Telling], log: Log) -> dict[int, str]:
    """The new texts of the messages that tell any of the facts, by message id; all others stay as they are."""
    changed: dict[int, str] = {}
    near = [_lines_near(telling, log) for telling in tellings]
    settings: dict[tuple[int, int], _Setting] = {}
    for line in log:
        doomed: set[int] = set()
        if not any(line.id in each for each in near):
            settings |= {(line.session_id, n): _Setting() for n in range(len(near)) if not line.is_ephemeral}
            continue
        parts = _pieces(line.text)
        for number, telling in enumerate(tellings):
            place = (line.session_id, number)
            told, setting = set[int](), _Setting()
            if line.id in near[number]:
                told, setting = _read(telling, line, parts, settings.get(place, _Setting()))
                doomed |= told
            if not line.is_ephemeral:
                settings[place] = setting
            if not told and line.id in telling.fact.source_ids:
                doomed |= _source_sentences(telling, parts)
        if doomed:
            changed[line.id] = _without(parts, doomed)
    return changed


def redact(tellings: Sequence[Telling], text: str, *, is_strict: bool = False) -> str:
    """A text that stands alone (a title, a payload) without the sentences that tell the facts."""
    parts = _pieces(text)
    setting = _Setting(is_strict=is_strict)
    doomed = {i for i, part in enumerate(parts) for telling in tellings if _tells(telling, part, setting)}
    return _without(parts, doomed) if doomed else text


def is_told(tellings: Sequence[Telling], text: str) -> bool:
    """Say whether a derived text gives any of the facts away, its sentences taken together."""
    return any(_gives_away(telling, text, _Setting()) for telling in tellings)


# --- what tells -------------------------------------------------------------------------------------


def _value_words(text: str, found: Statement | None) -> list[str]:
    if found is None:
        return telling_words(text)
    if found.kind in ("name", "birthday"):
        return [word for word in tokens(found.value) if len(word) > 1 or word.isdigit()]
    return telling_words(found.value)


def _own_keys(word: str, *, is_proper: bool) -> Keys:
    return frozenset(key for key in name_keys(word) if not (is_proper and key.startswith("~")))


def _taken_together(text: str, found: Statement | None) -> list[str]:
    """What tells the fact when its parts are written as one; of a birthday the day, where no year is part of it."""
    value = text if found is None else found.value
    whole = [word for word in joined_words(value) if len(word) >= _LONG_NUMBER and (found or word.isdigit())]
    if found is not None and found.kind == "birthday" and not re.search(r"\d{3}", value):
        whole += dates(value)
    return [word for word in whole if not _YEAR.fullmatch(word)]


def _content(text: str) -> list[str]:
    """The words that could tell a fact without a frame; months, colours and small numbers where there are no others."""
    words = telling_words(text)
    return [word for word in words if not is_ordinary(word) and not _is_small_number(word)] or words


def _is_small_number(word: str) -> bool:
    return word.isdigit() and len(word) < _LONG_NUMBER


def _attributes(found: Statement | None) -> Keys:
    if found is None:
        return frozenset()
    words = [word for word in tokens(found.about) if not is_stop_word(word)] or tokens(found.about)
    if found.kind == "favourite":
        words = [*words, "favourite"]
    return frozenset(key for word in words for key in keys(word))


def _uses(words: list[str], attributes: Keys, log: Log) -> Counter[str]:
    """In how many sentences a word stands without anything else of the fact: for something else, that is."""
    wanted = {word: name_keys(word) for word in words}
    near = log.with_any(_NONE.union(*wanted.values()))
    uses: Counter[str] = Counter()
    for line in log:
        if line.id not in near:
            continue
        for part in sentences(line.text):
            there = _keys(part)
            here = [word for word, forms in wanted.items() if not forms.isdisjoint(there)]
            if len(here) == 1 and attributes.isdisjoint(there):
                uses[here[0]] += 1
    return uses


def _is_name(word: str, text: str, found: Statement | None, uses: int) -> bool:
    """Say whether the word gives the fact away by itself."""
    if is_ordinary(word) or is_stop_word(word):
        return False
    if any(map(str.isdigit, word)):
        return not word.isdigit() or (len(word) >= _LONG_NUMBER and not _YEAR.fullmatch(word))
    if found is not None and found.kind == "object":
        return uses <= _RARE and any(tokens(thing) == [word] for thing in _LIST.split(found.value))
    if found is not None and found.slot is not None:
        is_single = len(found.value.split()) == 1 and found.kind in ("home", "employer", "birthplace")
        if found.kind == "name" or is_single or uses <= _VERY_RARE:  # an uncommon word that is used for nothing else
            return True
    # every German noun has a capital: there it must be rare, too
    return stands_capital(word, text) and (language_of(text) != "de" or uses <= (_RARE if found else _VERY_RARE))


# --- which sentences --------------------------------------------------------------------------------


def _lines_near(telling: Telling, log: Log) -> set[int]:
    """The lines that have to be read: those with one of the fact's words, and its sources."""
    near = log.with_any(telling.triggers | telling.attributes) | telling.fact.source_ids
    if telling.fond:
        near |= log.matching(telling.fond)
    if telling.literals:
        near |= {line.id for line in log if any(literal in line.text.lower() for literal in telling.literals)}
    return near


def _read(telling: Telling, line: Line, parts: list[str], before: _Setting) -> tuple[set[int], _Setting]:
    """The sentences of a message that tell the fact, and what the next message stands in."""
    told: set[int] = set()
    asks = False
    is_confirmed = before.is_confirmed and line.role == "assistant"
    for i, part in enumerate(parts):
        if _tells(telling, part, replace(before, answers=before.answers or asks, is_confirmed=is_confirmed), line):
            told.add(i)
        elif _QUESTION.search(part) and not telling.attributes.isdisjoint(_keys(part)):
            asks = True
    is_on_topic = bool(told) or not telling.attributes.isdisjoint(_keys(line.text))
    return told, _Setting(answers=asks, is_confirmed=bool(told) and line.role == "user", is_on_topic=is_on_topic)


def _tells(telling: Telling, sentence: str, setting: _Setting, line: Line | None = None) -> bool:
    there = _keys(sentence)
    told_by = _told_by(telling, sentence, there, setting)
    if not told_by or any(_states(kept, there, told_by) for kept in telling.kept):
        return _repeats(telling, sentence) and not _is_anothers_own(telling, sentence, line)
    return not (_is_anothers_own(telling, sentence, line) or _is_of_something_else(telling, sentence))


def _gives_away(telling: Telling, text: str, setting: _Setting) -> bool:
    return _repeats(telling, text) or bool(_told_by(telling, text, _keys(text), setting))


def _repeats(telling: Telling, text: str) -> bool:
    """Say whether it holds the fact's own wording, or an address out of it."""
    own = rf"(?<!\w){re.escape(normal_form(telling.fact.text))}(?!\w)"
    return any(literal in text.lower() for literal in telling.literals) or re.search(own, normal_form(text)) is not None


def _told_by(telling: Telling, sentence: str, there: Keys, setting: _Setting) -> Keys:
    """The keys that give the fact away in this sentence; empty when none do."""
    if names := _names_in(telling, sentence, there, setting):
        return names
    if telling.found is None:
        words = [word for word in telling.content if not word.isdisjoint(there)]
        least = min(len(telling.content), max(2, round(_ENOUGH * len(telling.content))))
        return _NONE.union(*words) & there if telling.content and len(words) >= least else frozenset()
    values = [word for word in telling.values if not word.isdisjoint(there)]
    is_complete = len(values) == len(telling.values) > _VERY_RARE
    every = _NONE.union(*telling.values)
    is_echo = setting.is_on_topic and all(not every.isdisjoint(keys(word)) for word in content_words(sentence))
    if values and (
        is_complete
        or is_echo
        or setting.answers
        or setting.is_confirmed
        or setting.is_strict
        or not telling.attributes.isdisjoint(there - _NONE.union(*values))
    ):
        return _NONE.union(*values) & there
    return frozenset()


def _names_in(telling: Telling, sentence: str, there: Keys, setting: _Setting) -> Keys:
    names = telling.names & there
    if names and names <= telling.doubtful:
        is_near = not telling.attributes.isdisjoint(there - telling.doubtful)
        is_sure = is_near or setting.answers or setting.is_confirmed or setting.is_strict
        return names if is_sure or stands_as_name(telling.doubtful, sentence) else _NONE
    if not names and telling.fond and has_fond_form(telling.fond, sentence):
        return telling.names
    return names


def _states(kept: tuple[Keys, ...], there: Keys, told_by: Keys) -> bool:
    """Say whether a sentence carries every word of a fact that stays, and tells nothing beyond it."""
    return told_by <= _NONE.union(*kept) and all(not word.isdisjoint(there) for word in kept)


def _is_anothers_own(telling: Telling, sentence: str, line: Line | None) -> bool:
    """Say whether somebody else in the group states it of themselves."""
    if line is None or line.role != "user" or telling.fact.user_id in (None, line.user_id):
        return False
    other = statement(sentence)
    is_plain = other is not None and other.kind != "object"
    return is_plain and not FIRST_PERSON.isdisjoint(tokens(sentence))


def _is_of_something_else(telling: Telling, sentence: str) -> bool:
    """Say whether it gives the name to another thing: a brother called like the dog."""
    other = statement(sentence)
    if telling.found is None or telling.found.slot is None or other is None or other.slot is None:
        return False
    is_its_name = not telling.names.isdisjoint(_keys(other.value))
    return is_its_name and are_about_different_things(telling.found.slot, other.slot)


def _source_sentences(telling: Telling, parts: list[str]) -> set[int]:
    """Where a source says it in other words: the nearest sentences, else all that has words of its own."""
    if any(MARK in part for part in parts):
        return set()  # it was taken out before
    shares = [sum(not word.isdisjoint(_keys(part)) for word in telling.content) for part in parts]
    best = max(shares, default=0)
    if best:
        return {i for i, share in enumerate(shares) if share == best}
    return {i for i, part in enumerate(parts) if content_words(part)}


def _pieces(text: str) -> list[str]:
    """The sentences; a command's name stands apart, so that "/forget Bruno" stays a command."""
    command = _COMMAND.match(text)
    return [command[0], *sentences(text[command.end() :])] if command else sentences(text)


def _without(parts: list[str], doomed: set[int]) -> str:
    """The text with one mark in the place of each run of doomed sentences."""
    kept: list[str] = []
    for i, part in enumerate(parts):
        if i not in doomed:
            kept.append(part)
            continue
        space = part[len(part.rstrip()) :]
        if kept and kept[-1].strip() == MARK:
            kept[-1] = MARK + space
        else:
            lead = part[: len(part) - len(part.lstrip())]
            kept.append(lead + MARK + space)
    return "".join(kept)


def _keys(text: str) -> Keys:
    return _NONE.union(*(name_keys(word) for word in written_words(text)))
