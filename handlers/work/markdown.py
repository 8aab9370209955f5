"""Words as they are in a text that is Markdown: pure.

Rule: what `literal` returns is shown by every transport as it was typed, and never as formatting.
"""

import re

_INSIDE = re.compile(r"[\\`*_~\]<>|$]|&(?=#?\w+;)|!(?=\[)")
"""`]` and not `[`: an escaped opening bracket begins display mathematics."""
_AT_START = re.compile(r"(?m)^([ \t]*)(#|[-+=](?=[-+=\s]|$)|\d+(?=[.)]))")
_INDENT = re.compile(r"(?m)^(?: {4}|\t)[ \t]*")
_NO_BREAK = "\u00a0"


def literal(text: str) -> str:
    """The text with its own markup escaped; a deep indent, which would make code of a line, in no-break spaces."""
    escaped = _INSIDE.sub(lambda found: f"\\{found[0]}", text)
    return _INDENT.sub(_indent, _AT_START.sub(_start, escaped))


def _start(found: re.Match[str]) -> str:
    space, mark = found[1], found[2]
    return f"{space}{mark}" + "\\" if mark.isdigit() else f"{space}\\{mark}"


def _indent(found: re.Match[str]) -> str:
    return found[0].replace("\t", 4 * _NO_BREAK).replace(" ", _NO_BREAK)
