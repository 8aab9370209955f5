"""What of a growing answer may be printed for good, so that nothing on the screen is ever said twice. Pure.

Rule: text is printed block by block of Markdown; what may still change its looks stays in the picture below.
"""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)]?)(?:\s|$)")


def finished(text: str) -> int:
    """How many characters are whole blocks, which no further word can change."""
    end = start = 0
    fence = ""
    is_after_blank = is_list = False
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if _closes(line, fence) else fence
        else:
            begins = is_after_blank and line[:1].strip() != "" and not (is_list and _LIST_ITEM.match(line))
            end = start if begins else end
            is_list = bool(_LIST_ITEM.match(line)) if begins or not start else is_list
            fence = mark[1] if mark else ""
        is_after_blank = not fence and not line.strip()
        start += len(line) + 1
    return end


def _closes(line: str, fence: str) -> bool:
    words = line.strip()
    return len(words) >= len(fence) and set(words) == {fence[0]}


@dataclass(slots=True)
class Growth:
    """One growing answer: what of it is printed, and what is only a picture yet."""

    id: int
    printed: str = ""
    picture: str = ""

    def grow(self, text: str) -> str:
        """Take the text so far; return the blocks to print now, "" if none is whole."""
        text = text.lstrip()
        if not text.startswith(self.printed):
            return ""  # told anew, for example after a repeated request: the final answer will settle it
        whole = text[len(self.printed) : max(len(self.printed), finished(text))]
        self.printed += whole
        self.picture = text[len(self.printed) :]
        return whole

    def finish(self, text: str) -> str | None:
        """What of the whole answer is not printed yet; None when what is printed is no part of it."""
        text = text.lstrip()
        printed = self.printed.rstrip()  # a final answer is trimmed at its end
        self.picture = ""
        return text[len(printed) :].lstrip("\n") if text.startswith(printed) else None
