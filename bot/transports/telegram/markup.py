"""Markdown to text and formatting. The library parses; whatever it would lose or misread is kept from it here."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from urllib.parse import quote

from telegramify_markdown import RenderConfig, convert

from bot.transports.growing import close_open_marks
from bot.transports.telegram.blocks import PLACE, Block, Code, code_block, cut_out, lay_out
from bot.transports.telegram.spans import Edit, Rich, Span, ordered, splice, windows

_LITERAL = "<&|$~*_:["
_HIDE = str.maketrans(_LITERAL, "".join(chr(0xFDD0 + n) for n in range(len(_LITERAL))))
_SHOW = {stand_in: character for character, stand_in in _HIDE.items()}
"""Characters meant as such are parsed as Unicode noncharacters, which mean nothing to Markdown, and then put back."""

_CELL = "\ufde2"
"""Starts each table cell, which is parsed as a paragraph after the text; a line that starts so is nothing else."""

_STYLES = ("bold", "italic", "underline", "strikethrough")

_URL = r"https?://(?:[^\s<>()\[\]`\"\\]|\([^\s<>()\\]*\))+"
_TOKEN = re.compile(
    rf"""
      \\\[(?P<display>(?:[^\\]|\\(?![\[\]]))+)\\\]
    | \\\((?P<inline>(?:[^\\\n]|\\(?![()]))+)\\\)
    | \\.                                                       # an escape stays what it is
    | (?P<code>(?<!`)(?P<ticks>`+)(?!`)[^`\n]{{1,500}}(?P=ticks)(?!`))
    | \$\$(?P<dollars>[^$]+)\$\$
    | (?<![\w$])\$(?P<dollar>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\w$])
    | (?P<autolink><(?:(?:https?://|mailto:)[^\s<>]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>)
    | (?P<target>\]\(<https?://[^<>\n]*>)
    | (?P<url>{_URL})
    | (?P<image>!\[(?=[^\[\]]{{0,300}}\]\())
    | (?P<bare>(?<!!)\[\]\()                                    # a link without text would not be seen
    | ~~+
    | (?P<joint>                                                # marks that CommonMark overlooks: **Note:**text
        (?<=[:.!?,;"'：。！？，；、”’」』）】》])\*\*(?=[^\W\d_]) | (?<=[^\W\d_])\*\*(?=[“‘「『（《【])
      )
    | (?P<literal>
        (?<=\]):                                                # a definition would vanish with its text
      | [<&|$~]                                                 # HTML, entities, spoilers, prices, "about"
      | (?<=\d)\*\*(?=\d)
      | (?<=[0-9A-Za-z)])\*(?=[0-9A-Za-z(])                     # 2*3*4 is arithmetic
      | ^[ ]*\d{{1,9}}[.)][ ]+\[(?=[ xX]\])                     # a numbered task would lose its number
      )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_MATH_MARKS = {"display": "$$", "inline": "$", "dollars": "$$", "dollar": "$"}
_JOINT = "\ufde3"
_REWRITTEN = {
    "image": "![\N{FRAME WITH PICTURE} ",
    "bare": "[\N{LINK SYMBOL}](",
    "joint": f"{_JOINT}**{_JOINT}",  # next to a letter they count; the joints go after the parsing
}
_DEFINITION = re.compile(
    r"^ {0,3}\[((?:[^\[\]\\]|\\.){1,100})\]: *\n? *<?(https?://[^\s<>]+)>?(?: +(?:\"[^\"\n]*\"|'[^'\n]*'))? *$",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"(?<!\\)\[((?:[^\[\]\\]|\\.){1,100}+)\](?!:)(\[\])?", re.DOTALL)
_MATH = re.compile(r"\\[A-Za-z{}]|[\^_=+<>]|^[A-Za-z0-9]$")
_MATH_CHARACTERS = 1000  # the library's LaTeX reader takes quadratic time

# What Telegram takes for a link (checked against tdjson): http(s) with a dot in its host. An entity with any other URL
# makes it refuse the whole message, or is turned into nonsense ("http://mailto:…"). No user part: it hides the host.
_WEB = re.compile(r"https?://(?:[\w-]+\.)+[\w-]+(?::(?:[1-9]\d{0,3}|[1-5]\d{4}))?(?:[/?#]\S*)?", re.IGNORECASE)
_SPELLED_OUT = re.compile(r"(?:mailto:|tel:)([^?]+)|(https?://.+)", re.IGNORECASE | re.DOTALL)
_URL_CHARACTERS = 2000


def _configuration() -> RenderConfig:
    config = RenderConfig.isolated()
    config.cite_expandable = False
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.image = symbols.link = ""
    symbols.task_completed, symbols.task_uncompleted = "\N{BALLOT BOX WITH CHECK}", "\N{BALLOT BOX}"
    symbols.unordered_list_item = "\N{BULLET}"
    return config


_CONFIG = _configuration()


def to_rich(markdown: str, *, is_growing: bool = False) -> Rich:
    """Cleaned Markdown as text with formatting as Telegram keeps it: nothing in code, no nested quotes, sound links.

    A growing text is one whose end is still to come: emphasis and code left open are closed.
    """
    source, blocks = cut_out(markdown)
    if is_growing:
        source = close_open_marks(source)
    source, definitions = _take_definitions(source)
    cells = [_CELL + cell for block in blocks if not isinstance(block, Code) for row in block.rows for cell in row]
    source = "\n\n".join([_hide("\n\n".join([source, *cells])), *definitions])
    text, entities = convert(source, latex_escape=False, config=_CONFIG)
    index = _code_points(text)
    spans = [
        Span(index(entity.offset), index(entity.offset + entity.length), entity.type, entity.url)
        for entity in reversed(entities)  # of two with the same range the outer one first
    ]
    joints = [Edit(joint.start(), joint.end(), Rich("")) for joint in re.finditer(_JOINT, text)]
    rich = _settle_links(splice(Rich(text.translate(_SHOW), spans), joints))
    return _tidy(_on_own_lines(_put_back(rich, blocks)))


def _hide(source: str) -> str:
    """The source with every character that is meant as such out of the parser's sight."""

    def replace(found: re.Match[str]) -> str:
        whole, kind = found[0], found.lastgroup or ""
        if mark := _MATH_MARKS.get(kind):
            start, end = found.start(kind) - found.start(), found.end(kind) - found.start()
            parts = whole[:start], whole[start:end], whole[end:]
            return _math(found[kind], mark) or "".join(_hide(part) for part in parts)
        if kind == "url":
            body = whole.rstrip("*_~")
            return body.translate(_HIDE) + whole[len(body) :]
        if kind in {"code", "literal"}:
            return whole.translate(_HIDE)
        return _REWRITTEN.get(kind, whole)

    return _TOKEN.sub(replace, source)


def _math(content: str, mark: str) -> str | None:
    content = content.strip()
    is_balanced = content.count("{") == content.count("}")  # else the parser looks for the end elsewhere
    if not is_balanced or len(content) > _MATH_CHARACTERS or "\n\n" in content or not _MATH.search(content):
        return None
    for character in "<|" if "\\" in content else "<|&":  # LaTeX aligns with "&"
        content = content.replace(character, character.translate(_HIDE))
    return mark + content + mark


def _take_definitions(source: str) -> tuple[str, list[str]]:
    """The source without the link definitions it uses, and these. Any other "[label]: …" is text, and stays."""
    used = {
        found[1].casefold()
        for found in _LABEL.finditer(source)
        if source[found.start() - 1 : found.start()] == "]" or found[2] or not found[1].isdigit()  # "[1]" is a note
    }
    taken: dict[str, str] = {}

    def take(found: re.Match[str]) -> str:
        label = found[1].casefold()
        if label not in used or label in taken or label.startswith("^"):
            return found[0]
        taken[label] = f"[{found[1].translate(_HIDE)}]: <{found[2]}>"
        return ""

    return _DEFINITION.sub(take, source), list(taken.values())


def _code_points(text: str) -> Callable[[int], int]:
    """From the library's UTF-16 offsets to indexes of `text`."""
    if text.isascii():
        return lambda offset: offset
    offsets = [0, *accumulate(1 + (character > "\uffff") for character in text)]
    return lambda offset: bisect_left(offsets, offset)


def _settle_links(rich: Rich) -> Rich:
    """Links that Telegram takes; other addresses a person may need are spelled out, odd schemes lose the link."""
    spans: list[Span] = []
    edits: list[Edit] = []
    for span in ordered(rich.spans):
        if span.url is None:
            spans.append(span)
            continue
        url = span.url.translate(_SHOW).replace("&amp;", "&")
        url = f"https://{url}" if url.lower().startswith("www.") else url
        web = re.sub(r"\s", lambda space: quote(space[0]), url)
        if len(web) <= _URL_CHARACTERS and _WEB.fullmatch(web):
            spans.append(Span(span.start, span.end, span.type, web))
        elif spelled := _SPELLED_OUT.match(url):
            address = spelled[1] or spelled[2]
            if address not in rich.text[span.start : span.end]:
                edits.append(Edit(span.end, span.end, Rich(f" ({address})")))
    edits.sort(key=lambda edit: edit.start)
    return splice(Rich(rich.text, spans), edits)


def _put_back(rich: Rich, blocks: Sequence[Block]) -> Rich:
    """The text with its code and its tables; raises ValueError if the parser lost one."""
    if not blocks:
        return rich
    marks = [match.start() for match in re.finditer(_CELL, rich.text)]
    bounds = [-1, *marks, len(rich.text)]
    ranges = [(start + 1, start + 1 + len(rich.text[start + 1 : end].rstrip())) for start, end in pairwise(bounds)]
    main, *cells = windows(rich, ranges)
    upcoming = iter(cells)
    rendered = [
        code_block(block)
        if isinstance(block, Code)
        else lay_out([[next(upcoming) for _ in row] for row in block.rows], block.is_right)
        for block in blocks
    ]
    edits = [Edit(place.start(), place.end(), rendered[int(place[1])]) for place in PLACE.finditer(main.text)]
    if len(edits) != len(blocks) or next(upcoming, None) is not None:
        raise ValueError("the parser lost a block")
    return splice(main, edits)


def _on_own_lines(rich: Rich) -> Rich:
    """The library glues code and quotes of list items to the text around them."""
    text = rich.text
    spans: list[Span] = []
    breaks: set[int] = set()
    for span in rich.spans:
        if span.type in {"pre", "blockquote"}:
            end = span.start + len(text[span.start : span.end].rstrip("\n"))
            spans.append(span.at(span.start, end))
            breaks.update(at for at in (span.start, end) if 0 < at < len(text) and "\n" not in text[at - 1 : at + 1])
        else:
            spans.append(span)
    return splice(Rich(text, spans), [Edit(at, at, Rich("\n")) for at in sorted(breaks)])


def _tidy(rich: Rich) -> Rich:
    """The formatting as Telegram's own rules leave it (checked against tdjson), so that the server changes nothing."""
    of: dict[str, list[Span]] = defaultdict(list)
    for span in ordered(rich.spans):
        of[span.type].append(span)
    pre = _outermost(of["pre"])
    links = [piece for link in _outermost(of["text_link"]) for piece in _without(link, pre)]
    apart = ordered(pre + links)
    code = [span for span in _outermost(of["code"]) if _without(span, apart) == [span]]
    opaque = ordered(pre + code)
    styles = [piece for style in _STYLES for span in _united(of[style]) for piece in _without(span, opaque)]
    return Rich(rich.text, ordered(_outermost(of["blockquote"]) + pre + links + code + styles))


def _outermost(spans: Iterable[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _united(spans: Iterable[Span]) -> list[Span]:
    united: list[Span] = []
    for span in spans:
        if united and span.start < united[-1].end:
            united[-1] = united[-1].at(united[-1].start, max(span.end, united[-1].end))
        else:
            united.append(span)
    return united


def _without(span: Span, holes: Sequence[Span]) -> list[Span]:
    """The pieces of `span` outside the ascending, disjoint `holes`."""
    pieces: list[Span] = []
    start = span.start
    for number in range(bisect_right(holes, start, key=lambda hole: hole.end), len(holes)):
        hole = holes[number]
        if hole.start >= span.end:
            break
        if hole.start > start:
            pieces.append(span.at(start, hole.start))
        start = hole.end
    if start < span.end:
        pieces.append(span.at(start, span.end))
    return pieces
