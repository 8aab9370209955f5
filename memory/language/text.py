"""Text as memory keeps it: cleaned of whatever could pose as somebody else's words, in a form that compares.

Pure. Memory text is data: role labels, fences and control characters are taken out on write and again on load.
"""

import hashlib
import re
import unicodedata

from memory.language.words import tokens

MARK = "[…]"
"""Stands where forgotten words stood; the same in every language."""

_LABELS = "system|assistant|user|human|developer|tool|ai|bot|systemprompt|system prompt"
_TAGS = (
    "system|assistant|user|human|developer|tool|tools|tool_use|tool_result|function_calls|invoke|memory|memories|fact|"
    "facts|recall|recalled|recollection|recollections|summary|summaries|transcript|conversation|instruction|"
    "instructions|known|prompt|untrusted|data|context|note|notes|working_note|question|merk"
)
_NOISE = (
    re.compile(r"<\|[^|<>\n]{1,60}\|>"),  # <|im_start|>system and its kin
    re.compile(r"\[/?INST\]|<</?SYS>>|</?s>", re.IGNORECASE),
    re.compile(rf"</?\s*(?:{_TAGS})(?:[\s:_-][^<>\n]{{0,200}})?/?>", re.IGNORECASE),  # our fences look like tags
    re.compile(
        rf"^[ \t]*(?:#{{1,6}}[ \t]*)?(?:\*\*)?(?:{_LABELS})(?:\*\*)?[ \t]*[:：][ \t]*", re.IGNORECASE | re.MULTILINE
    ),
    re.compile(rf"^[ \t]*#{{1,6}}[ \t]*(?:{_LABELS})[ \t]*$", re.IGNORECASE | re.MULTILINE),
    re.compile(r"^[ \t]*(?:`{3,}|~{3,}|={3,}|-{4,}|<{3,}|>{3,})[ \t\w]*$", re.MULTILINE),
)
_HARMLESS = re.compile(r"[^<>\[\]:：#`~=\n]*")
"""Without the characters that each of the above begins with or needs."""
_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
_KEPT = frozenset("\n\t\u200d")  # the joiner holds emoji together
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\s*\n\s*\n\s*")
_QUOTES = str.maketrans({"’": "'", "ʼ": "'", "„": '"', "“": '"', "”": '"', "«": '"', "»": '"', "–": "-", "—": "-"})
_TAIL = " \t\n.,;:!?…"
_SENTENCE = re.compile(
    r"""
    .+?(?: [.!?…]+ ["'”’»“)\]*_]* (?=\s|$) | (?=\n) | ;(?=\s) | $ ) [^\S\n]*\n* | \n+
    """,
    re.VERBOSE | re.DOTALL,
)
_RUNS_ON = re.compile(r"(?:\b\d{1,2}|\b\w|\b(?:Dr|Mr|Mrs|Ms|St|Prof|Nr|No|ca|bzw|usw|etc|vs|Str|ул|тел|тыс|руб))\.\s*$")


def clean(text: str) -> str:
    """Take out control characters, role labels and fences, until none is left; tidy the white space."""
    return text.strip() if _is_clean(text) else _cleaned(text)


def _is_clean(text: str) -> bool:
    """Nearly every stored text is: a look costs a tenth of the cleaning."""
    return (
        _HARMLESS.fullmatch(text) is not None
        and text.isprintable()
        and "  " not in text
        and "----" not in text
        and unicodedata.is_normalized("NFC", text)
    )


def _cleaned(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    if not text.replace("\n", " ").isprintable():  # hardly ever, and looking at each character is slow
        text = "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in _INVISIBLE)
    while (once := _without_noise(text)) != text:
        text = once
    text = _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", text))
    return "\n".join(line.strip() for line in text.split("\n")).strip()


def one_line(text: str) -> str:
    """A cleaned text on one line."""
    return " ".join(clean(text).split())


def normal_form(text: str) -> str:
    """What two wordings of the same thing share: case, white space, quotes and closing punctuation do not count."""
    folded = unicodedata.normalize("NFKC", text.translate(_QUOTES)).casefold().replace("ё", "е")
    return " ".join(folded.split()).strip(_TAIL)


def content_hash(text: str, *salt: str) -> str:
    """A hash of the normal form; `salt` keeps apart what the same words mean from different people."""
    return hashlib.sha256("\x1f".join((normal_form(text), *salt)).encode()).hexdigest()


def sentences(text: str) -> list[str]:
    """The sentences with the space after them: joined they are the text again."""
    pieces: list[str] = []
    for match in _SENTENCE.finditer(text):
        if pieces and _RUNS_ON.search(pieces[-1]) and "\n" not in pieces[-1]:
            pieces[-1] += match.group()  # "am 3. Mai" and "Dr. Who" are no borders
        else:
            pieces.append(match.group())
    return pieces


def without_marks(text: str) -> str:
    """The text as far as it is still there."""
    return one_line(text.replace(MARK, " "))


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words where that can be."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    head, space, _tail = cut.rpartition(" ")
    return (head if space and len(head) > limit // 2 else cut).rstrip() + "…"


def has_words(text: str) -> bool:
    return bool(tokens(text))


def _without_noise(text: str) -> str:
    for pattern in _NOISE:
        text = pattern.sub("", text)
    return text
