"""The Markdown of an answer that is still being written, completed so that it looks right at every moment."""

import re

_BARE_LAST_LINE = re.compile(r"(?:^|\n)(?:[-=+*_#>|:`~ ]+|[> ]*(?:`{3,}|~{3,})[\w+#.-]*)$")
_BLOCK_START = re.compile(r" *(?:[-*+] |\d{1,9}[.)] |#{1,6} |>)")
_HALF_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,3000}$")
_MARK = re.compile(r"\\.|(?P<url>https?://[^\s*~`]*[^\s*~`_])|(?P<run>\*+|_+|~+)|(?P<ticks>`+)", re.DOTALL)


def drop_bare_last_line(markdown: str) -> str:
    """Without a last line of mere markup: half a fence, a list marker, what would make a heading of the line above."""
    return _BARE_LAST_LINE.sub("", markdown.rstrip())


def close_open_marks(markdown: str) -> str:
    """Close the emphasis and code of the last paragraph or list item; show a half-written link as its text."""
    start = _last_block(markdown)
    tail = _HALF_LINK.sub(r"\1", markdown[start:].rstrip())
    open_marks: list[str] = []
    position = 0
    while found := _MARK.search(tail, position):
        position = found.end()
        if ticks := found["ticks"]:
            closing = re.compile(rf"(?<!`){ticks}(?!`)").search(tail, position)
            if closing is None:
                body = tail.rstrip("`")
                tail = body + ticks if len(body) > position else body[: found.start()]
                break
            position = closing.end()
        elif found["run"]:
            unused = _follow(found, tail, open_marks)
            if position == len(tail) and unused:
                tail = tail[:-unused]
    return markdown[:start] + tail.rstrip() + "".join(reversed(open_marks))


def _last_block(markdown: str) -> int:
    start = len(markdown)
    while start > 0:
        line = markdown.rfind("\n", 0, start - 1) + 1
        if not markdown[line:start].strip():
            break
        start = line
        if _BLOCK_START.match(markdown, start):
            break
    return start


def _follow(found: re.Match[str], text: str, open_marks: list[str]) -> int:
    """Let a run of marks close what it can, then open; returns how many of its characters did neither."""
    run = found["run"]
    before = text[max(0, found.start() - 1) : found.start()]
    after = text[found.end() : found.end() + 1]
    is_inside_word = before.isalnum() and after.isalnum() and (run[0] == "_" or (run == "*" and before.isascii()))
    if is_inside_word or (run == "~" and after):  # a lone tilde means "about", unless it is the half of two
        return 0
    unused = len(run)
    while unused and open_marks and open_marks[-1][0] == run[0] and before.strip():
        used = min(unused, len(open_marks[-1]))
        mark = open_marks.pop()[used:]
        if mark:
            open_marks.append(mark)
        unused -= used
    if unused and after.strip():
        open_marks.append(run[:unused])
        unused = 0
    return unused
