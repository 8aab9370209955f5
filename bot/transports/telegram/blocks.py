"""Code fences and tables, cut out of Markdown before it is parsed: code stays verbatim, a table fits a phone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from wcwidth import ljust, rjust, width

from bot.transports.telegram.spans import Rich, Span, join

PLACE = re.compile("\ufde0(\\d+)\ufde1")
"""Where block number N was cut out; the characters are Unicode noncharacters, which no text holds."""

PHONE_COLUMNS = 40
"""What a phone shows of a monospace line without wrapping it."""

_FENCE = re.compile(
    r"(?P<quote>[ >]*>)?(?P<indent> *(?:(?:[-*+]|\d{1,9}[.)]) +)*)(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$"
)
_DELIMITER_ROW = re.compile(r"[ >]*\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_LINE_BREAK_TAG = re.compile(r"(`[^`\n]*`)|<br *\/?>", re.IGNORECASE)
_LISTED_HEADING = re.compile(r"( *(?:[-*+]|\d{1,9}[.)]) +| {2,3})#{1,6} +(\S.*)$")
_DEEP_NESTING = re.compile(r"(?: *(?:>|(?:[-*+]|\d{1,9}[.)])(?= ))){10}")


@dataclass(frozen=True, slots=True)
class Code:
    text: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Table:
    """Cells in Markdown, the header row first; every row has as many cells as there are columns."""

    rows: tuple[tuple[str, ...], ...]
    is_right: tuple[bool, ...]


Block = Code | Table


def cut_out(markdown: str) -> tuple[str, list[Block]]:
    """Markdown with a placeholder paragraph in the place of each block, in the container the block stood in."""
    lines = markdown.split("\n")
    kept: list[str] = []
    blocks: list[Block] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if opening := _FENCE.match(line):
            block, number = _take_code(lines, number + 1, opening)
            quote, indent = opening["quote"] or "", opening["indent"]
        elif _starts_table(lines, number):
            block, number = _take_table(lines, number)
            prefix = line[: len(line) - len(line.lstrip(" >"))]
            quote, _, indent = prefix.rpartition(">")
            quote += ">" * (">" in prefix)
        else:
            kept += _tame(line)
            number += 1
            continue
        blank = [] if indent.strip() else [quote]
        kept += [*blank, f"{quote}{indent}\ufde0{len(blocks)}\ufde1", quote]
        blocks.append(block)
    return "\n".join(kept), blocks


def _take_code(lines: Sequence[str], number: int, opening: re.Match[str]) -> tuple[Code, int]:
    """The code from line `number` on, and the number of the line after its closing fence."""
    depth = (opening["quote"] or "").count(">")
    # After the marks of the quote and one space the indentation of the fence goes, and no more.
    margin = re.compile(rf"(?: {{0,3}}> ?){{{depth}}} {{0,{len(opening['indent'])}}}")
    fence, info = opening["fence"], opening["info"].strip()
    closing = re.compile(rf" *{re.escape(fence)}{re.escape(fence[0])}* *$")
    is_markdown = info.lower() in {"markdown", "md"}
    level = 1
    code: list[str] = []
    while number < len(lines) and (edge := margin.match(lines[number])):
        line = lines[number][edge.end() :]
        number += 1
        if closing.match(line):
            level -= 1
            if not level:
                break
        elif is_markdown and line.lstrip().startswith(fence):  # a model showing Markdown nests equal fences
            level += 1
        code.append(line)
    if not any(code):
        return Code(info, None), number  # words on the line of the fence alone are the text
    language = re.match(r"[\w+#.-]{1,40}", info)
    return Code("\n".join(code), language[0] if language else None), number


def _starts_table(lines: Sequence[str], number: int) -> bool:
    if "|" not in lines[number] or number + 1 == len(lines):
        return False
    below = lines[number + 1]
    return "|" in below and bool(_DELIMITER_ROW.match(below)) and len(_cells(lines[number])) == len(_cells(below))


def _take_table(lines: Sequence[str], number: int) -> tuple[Table, int]:
    """The table whose header is line `number`, and the number of the line after it."""
    marks = _cells(lines[number + 1])
    rows = [_cells(lines[number])]
    number += 2
    while number < len(lines) and "|" in lines[number]:
        cells = _cells(lines[number])
        cells[len(marks) - 1 :] = [" | ".join(cells[len(marks) - 1 :])]  # a surplus cell is text all the same
        rows.append(cells + [""] * (len(marks) - len(cells)))
        number += 1
    is_right = tuple(mark.endswith(":") and not mark.startswith(":") for mark in marks)
    return Table(tuple(tuple(row) for row in rows), is_right), number


def _cells(line: str) -> list[str]:
    cells = _CELL_EDGE.split(line.lstrip(" >").rstrip())
    first = 1 if len(cells) > 1 and not cells[0].strip() else 0
    last = len(cells) - (1 if len(cells) - first > 1 and not cells[-1].strip() else 0)
    return [_without_tags(cell.strip().replace("\\|", "|")) for cell in cells[first:last]]


def _without_tags(cell: str) -> str:
    # The one tag that models need: a cell has no other way to hold two lines.
    return _LINE_BREAK_TAG.sub(lambda found: found[1] or "\n", cell)


def _tame(line: str) -> list[str]:
    """The line without what the library renders badly: a heading in a list (glued to its text), bottomless nesting."""
    if heading := _LISTED_HEADING.match(line):
        text = heading[2].rstrip()
        bare = text.rstrip("#")
        text = bare.rstrip() if bare.endswith(" ") else text
        return [f"{heading[1]}**{text}**" if "**" not in text else heading[1] + text, ""]
    deep = _DEEP_NESTING.match(line)
    if deep and line.strip(" -") and line.strip(" *"):
        return [f"{line[: deep.end()]}\u2060{line[deep.end() :]}"]  # a word joiner: no marker, and not seen
    return [line]


def code_block(code: Code) -> Rich:
    return Rich(code.text, [Span(0, len(code.text), "pre", language=code.language)] if code.text.strip() else ())


def lay_out(rows: Sequence[Sequence[Rich]], is_right: Sequence[bool]) -> Rich:
    """A rendered table: aligned in monospace where a phone can show it, else one record a row."""
    widths = [max(width(row[column].text) for row in rows) for column in range(len(is_right))]
    cells = list(chain.from_iterable(rows))
    is_flat = all("\n" not in cell.text and not any(span.url for span in cell.spans) for cell in cells)
    if is_flat and sum(widths) + 3 * (len(widths) - 1) <= PHONE_COLUMNS:
        return _align([[cell.text for cell in row] for row in rows], widths, is_right)
    header_repeated = (len(rows) - 1) * sum(len(cell.text) for cell in rows[0])
    if len(rows) > 1 and header_repeated <= 4000 + 4 * sum(len(cell.text) for cell in cells):
        return join(_between("\n\n", [_record(rows[0], row) for row in rows[1:]]))
    return join(_between("\n", [join(_between(" | ", row)) for row in rows]))


def _align(rows: list[list[str]], widths: Sequence[int], is_right: Sequence[bool]) -> Rich:
    lines = [
        " | ".join(
            rjust(cell, columns) if right else ljust(cell, columns)
            for cell, columns, right in zip(row, widths, is_right, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-+-".join("-" * columns for columns in widths))
    return code_block(Code("\n".join(lines), None))


def _record(header: Sequence[Rich], row: Sequence[Rich]) -> Rich:
    """One row as lines of "column: value", the first in bold."""
    lines = [join([name, ": ", cell]) if name.text else cell for name, cell in zip(header, row, strict=True)]
    title = lines[0]
    lines[0] = Rich(title.text, [Span(0, len(title.text), "bold"), *title.spans])
    return join(_between("\n", lines))


def _between(separator: str, pieces: Sequence[Rich]) -> list[Rich | str]:
    return [part for piece in pieces for part in (separator, piece)][1:]
