"""Break a message's text into lines of styled runs, without a font at hand.

One rule: widths are those of the most common sans-serif; the drawing states them, so that no other font overflows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from .entities import utf16_length
from .errors import Json

Block = Literal["text", "pre", "quote"]

_WIDTHS = (  # the advance widths of Arial and its metric twins, in thousandths of an em
    ("ijl", 222),
    (" !,./:;I[]\\ft", 278),
    ("()-`r{}", 333),
    ('*"°', 400),
    ("'|", 225),
    ("cksvxyzJтук", 500),
    ("#$?_0123456789L«»", 556),
    ("+<=>~", 584),
    ("FTZг", 611),
    ("&ABEKPSVXY", 667),
    ("CDHNRUw", 722),
    ("GOQыюж", 750),
    ("mMшщфШЩЮЖФЫ", 830),
    ("%—…@W", 980),
)
_KNOWN = {character: width / 1000 for characters, width in _WIDTHS for character in characters}
_MONO = 0.542  # code is drawn a tenth smaller
_WIDE = 1.28  # emoji
_JOINERS = {"\u200d", "\ufe0f", "\u20e3"}
_QUOTES = {"blockquote", "expandable_blockquote"}


@dataclass(frozen=True)
class Run:
    text: str
    marks: frozenset[str]
    width: float


@dataclass(frozen=True)
class Line:
    """One line: its runs from left to right, its width in pixels, and the block it belongs to."""

    runs: tuple[Run, ...]
    width: float
    block: Block


@dataclass(frozen=True)
class _Glyph:
    text: str
    marks: frozenset[str]
    width: float
    block: Block


def text_width(text: str, size: float, marks: frozenset[str] = frozenset()) -> float:
    return sum(_width(character, marks, before) for before, character in pairwise(f" {text}")) * size


def shorten(text: str, size: float, limit: float, marks: frozenset[str] = frozenset()) -> str:
    """The text on one line, cut with an ellipsis where it is wider than the limit."""
    flat = " ".join(text.split())
    if text_width(flat, size, marks) <= limit:
        return flat
    while flat and text_width(f"{flat}…", size, marks) > limit:
        flat = flat[:-1]
    return f"{flat.rstrip()}…"


def typeset(text: str, entities: Sequence[Json], size: float, limit: float, *, inset: float = 12) -> list[Line]:
    """Lines no wider than `limit` pixels; code blocks and quotes are `inset` narrower."""
    lines: list[Line] = []
    paragraph: list[_Glyph] = []
    glyphs = [*_glyphs(text, entities, size), _Glyph("\n", frozenset(), 0, "text")]
    for glyph in glyphs:
        if glyph.text != "\n":
            paragraph.append(glyph)
            continue
        block = paragraph[0].block if paragraph else glyph.block
        room = limit if block == "text" else limit - inset
        lines += [_line(wrapped, block) for wrapped in _wrap(paragraph, room)]
        paragraph = []
    return lines


def _glyphs(text: str, entities: Sequence[Json], size: float) -> list[_Glyph]:
    glyphs: list[_Glyph] = []
    offset = 0
    for before, character in pairwise(f" {text}"):
        over = {e["type"] for e in entities if e["offset"] <= offset < e["offset"] + e["length"]}
        block: Block = "pre" if "pre" in over else "quote" if over & _QUOTES else "text"
        marks = frozenset(over - _QUOTES)
        glyphs.append(_Glyph(character, marks, _width(character, marks, before) * size, block))
        offset += utf16_length(character)
    return glyphs


def _wrap(glyphs: list[_Glyph], limit: float) -> list[list[_Glyph]]:
    """Break at the last space that fits, else inside the word, never before a joiner."""
    lines: list[list[_Glyph]] = []
    line: list[_Glyph] = []
    for glyph in glyphs:
        width = sum(other.width for other in line) + glyph.width
        if width > limit and line and glyph.text != " " and glyph.text not in _JOINERS:
            spaces = [index for index, other in enumerate(line) if other.text == " "]
            cut = spaces[-1] + 1 if spaces and glyph.block != "pre" else len(line)
            lines.append(line[:cut])
            line = line[cut:]
        line.append(glyph)
    return [*lines, line]


def _line(glyphs: list[_Glyph], block: Block) -> Line:
    if block != "pre":
        while glyphs and glyphs[-1].text == " ":
            glyphs = glyphs[:-1]
    runs: list[Run] = []
    for marks, group in groupby(glyphs, key=lambda glyph: glyph.marks):
        same = list(group)
        runs.append(Run("".join(glyph.text for glyph in same), marks, sum(glyph.width for glyph in same)))
    return Line(tuple(runs), sum(run.width for run in runs), block)


def _width(character: str, marks: frozenset[str], before: str) -> float:
    if character in _JOINERS or before == "\u200d" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return 0.0
    if character >= "\U0001f000" or "\u2600" <= character <= "\u27bf" or "\u2b00" <= character <= "\u2bff":
        return _WIDE
    if marks & {"code", "pre"}:
        return _MONO
    if "\u3000" <= character <= "\uffef":
        return 1.0
    width = _KNOWN.get(character, 0.72 if character.isupper() else 0.556)
    return width * 1.07 if "bold" in marks else width
