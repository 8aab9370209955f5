"""Markdown to the bodies of Matrix messages: plain and formatted, in parts that fit into an event. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from bot.transports.base import Key, Outgoing, Part
from bot.transports.growing import close_open_marks, drop_bare_last_line
from bot.transports.matrix import html
from bot.transports.matrix.keys import legend

PART_BYTES = 16_000
"""UTF-8 of a part's source. An event may have 65,536 bytes; an edit says things twice, and encryption adds a third."""
HTML_BYTES = 24_000
"""What is longer goes without formatting."""
FALLBACK_CHARACTERS = 1000
"""Of an edit, for clients that know no edits."""
NOTHING_TO_SEE = "—"

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FENCE = re.compile(r"[ >]*(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Body:
    """How a part is shown."""

    html: str | None
    kind: str
    """text | card | notice, of what it is a part."""
    is_preview: bool = False


def render(outgoing: Outgoing) -> tuple[Part, ...]:
    """Answers and formatted cards are Markdown, all else is literal: it quotes people. The last part has the keys."""
    text = clean(outgoing.text)
    sources = list(_split(text)) or [NOTHING_TO_SEE]
    is_markdown = outgoing.kind == "text" or outgoing.formatted
    parts = [_part(source, outgoing.kind, is_markdown=is_markdown) for source in sources]
    if outgoing.file:
        parts = [part for part in parts if part.plain != NOTHING_TO_SEE]
        parts.append(Part("", Body(None, outgoing.kind), file=outgoing.file))
    if outgoing.keys:
        parts[-1] = _with_legend(parts[-1], outgoing.keys)
    return tuple(parts)


def render_preview(text: str) -> Part | None:
    """An answer that still grows: open marks are closed; of a long one the end."""
    sources = list(_split(close_open_marks(drop_bare_last_line(clean(text)))))
    if not sources:
        return None
    source = sources[-1] if len(sources) == 1 else f"…\n\n{sources[-1]}"
    part = _part(source, "text", is_markdown=True)
    return None if part.plain == NOTHING_TO_SEE else Part(part.plain, Body(_html(part), "text", is_preview=True))


def clean(text: str) -> str:
    """Whole code points, plain line ends, no control characters: what JSON and every homeserver take."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _html(part: Part) -> str | None:
    return part.body.html if isinstance(part.body, Body) else None


def _part(source: str, kind: str, *, is_markdown: bool) -> Part:
    if not is_markdown:
        return Part(source, Body(None, kind))
    tree = html.parse(source)
    plain, formatted = html.to_plain(tree).strip("\n"), html.to_html(tree)
    if not plain.strip():
        plain, formatted = source.strip() or NOTHING_TO_SEE, ""
    if _bytes(plain) > 2 * PART_BYTES:  # a link's address can stand in it a thousand times
        plain = source
    is_worth_it = formatted and _bytes(formatted) <= HTML_BYTES and formatted != f"<p>{html.escape(plain)}</p>"
    return Part(plain, Body(formatted if is_worth_it else None, kind))


def _with_legend(part: Part, keys: tuple[tuple[Key, ...], ...]) -> Part:
    lines = clean(legend(keys))
    plain = f"{part.plain}\n\n{lines}".strip("\n")
    body = part.body
    assert isinstance(body, Body)
    shown = html.escape(lines, quote=False).replace("\n", "<br>")
    formatted = f"{body.html}<p>{shown}</p>" if body.html else None
    return Part(plain, Body(formatted, body.kind), keys, part.file)


def _bytes(text: str) -> int:
    return len(text.encode())


def _split(text: str) -> Iterator[str]:
    """The text in pieces of at most `PART_BYTES`, between paragraphs where that is possible."""
    if not text.strip():
        return
    if _bytes(text) <= PART_BYTES:
        yield text.strip("\n")
        return
    lines = text.split("\n")
    starts = [0, *(line for line in html.top_lines(text) if line), len(lines)]
    piece = ""
    for start, end in pairwise(starts):
        block = "\n".join(lines[start:end])
        for small in [block] if _bytes(block) <= PART_BYTES else _broken(block):
            joined = f"{piece}\n{small}" if piece else small
            if _bytes(joined) <= PART_BYTES:
                piece = joined
                continue
            if piece.strip():
                yield piece.strip("\n")
            piece = small
    if piece.strip():
        yield piece.strip("\n")


def _broken(block: str) -> Iterator[str]:
    """A block that is too long, by lines; code keeps its fences in every piece."""
    fence = _FENCE.match(block)
    opening, closing = (f"{fence[1]}{fence[2]}\n", f"\n{fence[1]}") if fence else ("", "")
    if fence:
        block = block.partition("\n")[2].rstrip().removesuffix(fence[1]).rstrip("\n")
    room = PART_BYTES - _bytes(opening) - _bytes(closing)
    if room < PART_BYTES // 2:  # the line of the fence alone is too long: words like any others
        opening, closing, room = "", "", PART_BYTES
    piece = ""
    for line in block.split("\n"):
        for small in [line] if _bytes(line) <= room else _words(line, room):
            joined = f"{piece}\n{small}" if piece else small
            if _bytes(joined) > room:
                yield opening + piece + closing
                joined = small
            piece = joined
    if piece.strip():
        yield opening + piece + closing


def _words(line: str, room: int) -> Iterator[str]:
    """A line that is too long, between words; a word that is too long, anywhere."""
    raw = line.encode()
    while len(raw) > room:
        cut = raw.rfind(b" ", room // 2, room)
        if cut < 0:
            cut = room
            while raw[cut] & 0xC0 == 0x80:  # noqa: PLR2004 - inside a character of UTF-8
                cut -= 1
        yield raw[:cut].decode()
        raw = raw[cut:].lstrip(b" ")
    if raw:
        yield raw.decode()
