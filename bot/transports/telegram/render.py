"""Markdown to Telegram messages: rendered first, then split, so that no cut can break the formatting. Pure."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import structlog
from wcwidth import grapheme_boundary_before

from bot.transports.growing import drop_bare_last_line
from bot.transports.telegram.markup import to_rich
from bot.transports.telegram.spans import Rich, Span, join, ordered, windows

_log = structlog.get_logger(__name__)

MAX_UNITS = 4096
"""UTF-16 units of a message: within both ways to count, and at three bytes a unit far below the 32,768 bytes."""

MIN_LIMIT = 16

# Telegram ignores formatting after the hundredth entity, and refuses a message (ENTITIES_TOO_LONG) whose entities,
# which is to say their URLs, exceed about 9,500 bytes (tdlib/telegram-bot-api#165).
_MAX_ENTITIES = 100
_MAX_URL_BYTES = 8000
_WORTH = ("pre", "text_link", "blockquote", "code")  # what to keep first where there is too much

# TDLib drops these characters, whatever they do to offsets; noncharacters are our own placeholders.
_DROPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u0333\u033f\u030a\ufdd0-\ufdef\ufffe\uffff]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028]")
_RING = re.compile("[A-Za-z]\u030a")  # which loses its ring unless composed
_ELLIPSIS = "…\n"
_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0\u034f"

_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")
_SENTENCE_END = re.compile(r"(?:[.!?…][\"'»”)\]]*(?=\s)|[。！？])")
_ESCAPE_OR_CODE = re.compile(
    r"(?P<code>^[ >]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^[ >]*(?P=fence)[`~]* *$|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)[^`\n]{1,500}(?P=ticks))"
    r"|\\(?P<character>[!-/:-@\[-`{-~])",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A formatting entity as the Bot API names it; offset and length in UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One message: text of 1 to 4096 UTF-16 units with something to see in it, and at most 100 entities."""

    text: str
    entities: tuple[Entity, ...] = ()


def render(markdown: str, *, limit: int = MAX_UNITS) -> tuple[Part, ...]:
    """The messages of a finished answer, of at most `limit` (16 to 4096) UTF-16 units; () if there is nothing to see.

    Never raises for any text: what cannot be rendered arrives as plain text.
    """
    rich = _rendered(_clean(markdown), is_growing=False)
    return _parts(rich, limit) if rich else tuple(Part(text) for text in plain(markdown, limit=limit))


def render_preview(markdown: str, *, limit: int = MAX_UNITS) -> Part | None:
    """One message for an answer that still grows: open marks are closed; of a long one the end, below an ellipsis."""
    markdown = drop_bare_last_line(_clean(markdown))
    rich = _rendered(markdown, is_growing=True) or Rich(_unescape(markdown))
    return _end_of(rich, limit)


def plain(markdown: str, *, limit: int = MAX_UNITS) -> tuple[str, ...]:
    """The Markdown itself in parts of at most `limit` UTF-16 units, its backslash escapes resolved outside code."""
    return tuple(part.text for part in _parts(Rich(_unescape(_clean(markdown))), limit))


def literal(text: str, *, limit: int = MAX_UNITS) -> tuple[str, ...]:
    """Text that is no Markdown, in parts of at most `limit` UTF-16 units: what it looks like is what is shown."""
    return tuple(part.text for part in _parts(Rich(_clean(text)), limit))


def _rendered(markdown: str, *, is_growing: bool) -> Rich | None:
    try:
        rich = to_rich(markdown, is_growing=is_growing)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the parser chokes on (Rust panics are BaseExceptions)
        _log.warning("markdown_not_rendered", error=type(error).__name__, characters=len(markdown))
        return None
    return rich if _is_visible(rich.text) else None


def _clean(text: str) -> str:
    """The text in the characters that Telegram keeps: whole code points, plain line ends, no control characters."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _LINE_ENDS.sub("\n", text).replace("\u2029", "\n\n")
    text = _RING.sub(lambda found: unicodedata.normalize("NFC", found[0]), text)
    return _DROPPED.sub("", text).expandtabs(4)  # Telegram shows a tab as one space


def _unescape(markdown: str) -> str:
    return _ESCAPE_OR_CODE.sub(lambda found: found["code"] or found["character"], markdown)


def _is_visible(text: str) -> bool:
    return any(unicodedata.category(char) not in _INVISIBLE and char not in _BLANK_LETTERS for char in text)


def _parts(rich: Rich, limit: int) -> tuple[Part, ...]:
    pieces = windows(rich, _ranges(rich, limit))
    return tuple(_part(piece) for piece in pieces if _is_visible(piece.text))


def _part(piece: Rich) -> Part:
    offsets = _offsets(piece.text)
    entities: list[Entity] = []
    for span in piece.spans:
        start, end = span.start, span.end
        if span.type not in {"pre", "blockquote"}:  # indentation belongs to code, and a quote may hold code
            covered = piece.text[start:end]
            start, end = end - len(covered.lstrip()), start + len(covered.rstrip())
        if start < end and piece.text[start:end].strip():
            length = offsets[end] - offsets[start]
            entities.append(Entity(span.type, offsets[start], length, span.url, span.language))
    return Part(piece.text, _affordable(entities))


def _affordable(entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """The entities, or the most telling of them if they are more than a message may carry."""
    left = _MAX_URL_BYTES
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda entity: _WORTH.index(entity.type) if entity.type in _WORTH else 9):
        cost = len((entity.url or "").encode())
        if cost <= left and len(kept) < _MAX_ENTITIES:
            left -= cost
            kept.append(entity)
    return tuple(sorted(kept, key=lambda entity: (entity.offset, -entity.length)))


def _offsets(text: str) -> list[int]:
    """The UTF-16 offset of each index of `text`, its end included."""
    return [0, *accumulate(1 + (character > "\uffff") for character in text)]


def _checked(limit: int) -> int:
    if not MIN_LIMIT <= limit <= MAX_UNITS:
        raise ValueError(f"limit must be {MIN_LIMIT} to {MAX_UNITS} UTF-16 units, not {limit}")
    return limit


def _end_of(rich: Rich, limit: int) -> Part | None:
    """One message with the end of a text, from the start of a line where that costs little."""
    text, pre = rich.text.rstrip(), _code_blocks(rich)
    start, offsets = _first_shown(text, 0, pre), _offsets(text)
    is_cut = offsets[-1] - offsets[start] > _checked(limit)
    if is_cut:
        start = bisect_left(offsets, offsets[-1] - limit + len(_ELLIPSIS))
        near = start + (len(text) - start) // 4
        line = text.find("\n", start, near)
        whole = (at for at in range(start, min(near, start + 200)) if grapheme_boundary_before(text, at + 1) == at)
        start = _first_shown(text, line if line >= 0 else next(whole, start), pre)
    (piece,) = windows(rich, [(start, len(text))])
    if not _is_visible(piece.text):
        return None
    return _part(join([_ELLIPSIS, piece]) if is_cut else piece)


def _code_blocks(rich: Rich) -> list[Span]:
    return [span for span in ordered(rich.spans) if span.type == "pre"]


def _around(pre: Sequence[Span], at: int) -> Span | None:
    """The code block that a cut at `at` would go through."""
    before = bisect_left(pre, at, key=lambda span: span.start)
    return pre[before - 1] if before and pre[before - 1].end > at else None


def _first_shown(text: str, at: int, pre: Sequence[Span]) -> int:
    """Past blank lines, and outside code past any white space."""
    blank_lines = _BLANK_LINES.match(text, at)
    at = blank_lines.end() if blank_lines else at
    if _around(pre, at + 1):
        return at
    return len(text) - len(text[at:].lstrip())


def _ranges(rich: Rich, limit: int) -> Iterator[tuple[int, int]]:
    """Where each message begins and ends; what lies between two is white space."""
    text, spans, pre = rich.text, ordered(rich.spans), _code_blocks(rich)
    offsets = _offsets(text)
    starts = [span.start for span in spans]
    url_bytes = [0, *accumulate(len((span.url or "").encode()) for span in spans)]
    at = 0
    while (at := _first_shown(text, at, pre)) < len(text):
        end = bisect_right(offsets, offsets[at] + _checked(limit)) - 1
        first = bisect_left(starts, at)
        affordable = min(first + _MAX_ENTITIES, bisect_right(url_bytes, url_bytes[first] + _MAX_URL_BYTES) - 1)
        if affordable < len(starts):  # but formatting alone never makes a message shorter than a quarter
            end = min(end, max(starts[affordable], at + (end - at) // 4))
        if end < len(text):
            block = _around(pre, end)
            is_movable = block and block.start > at and offsets[block.end] - offsets[block.start] <= limit
            end = block.start if block and is_movable else _best_cut(text, at, end, pre)
        yield at, at + len(text[at:end].rstrip())
        at = end


def _best_cut(text: str, start: int, end: int, pre: Sequence[Span]) -> int:
    """Between paragraphs, lines, sentences, words or graphemes: the best that is not too early; always past `start`."""
    middle, quarter = (start + end) // 2, start + (end - start) // 4
    for separator in ("\n\n", "\n"):
        at = text.rfind(separator, middle, end + len(separator))
        while at > middle and (block := _around(pre, at)):
            at = text.rfind(separator, middle, block.start)
        if at > middle:
            return at
    if (at := text.rfind("\n", quarter, end + 1)) > quarter:
        return at
    sentences = [found.end() for found in _SENTENCE_END.finditer(text, middle, end + 1) if found.end() <= end]
    if sentences:
        return sentences[-1]
    for at in range(end, quarter, -1):
        if text[at].isspace():
            return at
    whole = grapheme_boundary_before(text, end + 1)
    return whole if whole > start else end
