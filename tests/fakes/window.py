"""The window of a terminal emulator: what a person sees after every byte that a program wrote.

Rule: a sequence that is not known here is an error, so that nothing is judged by a picture that is wrong.
"""

import re
from codecs import getincrementaldecoder

from wcwidth import wcwidth

_SEQUENCE = re.compile(r"\x1b(?:\[(?P<args>[0-9;?]*)(?P<end>[ ]?[@-~])|\](?P<title>[^\x07\x1b]*)(?:\x07|\x1b\\))")
_IGNORED = {"m", "h", "l", " q"}  # colours, modes, the cursor's shape
_INCOMPLETE = re.compile(r"\x1b(?:\[[0-9;? ]*|\][^\x07\x1b]*\x1b?)?$")


class Window:
    """Rows of characters with a cursor; rows that leave at the top are kept in `scrolled`."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self.rows = rows
        self.columns = columns
        self.scrolled: list[str] = []
        self.raw = ""
        self.replies: list[bytes] = []
        """What the terminal itself answers: where the cursor is."""
        self._grid = [[" "] * columns for _ in range(rows)]
        self._y = self._x = 0
        self._rest = ""
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def feed(self, data: bytes) -> None:
        text = self._decode(data)
        self.raw += text
        text = self._rest + text
        if found := _INCOMPLETE.search(text):
            self._rest, text = text[found.start() :], text[: found.start()]
        else:
            self._rest = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                sequence = _SEQUENCE.match(text, at)
                assert sequence, f"unknown sequence {text[at : at + 10]!r}"
                self._obey(sequence["args"] or "", sequence["end"] or "")
                at = sequence.end()
            else:
                self._put(text[at])
                at += 1

    def text(self) -> str:
        """All that was ever written and not erased, line by line."""
        lines = [*self.scrolled, *("".join(row) for row in self._grid)]
        return "\n".join(line.replace("\0", "").rstrip() for line in lines).rstrip()

    def lines(self) -> list[str]:
        """The same without blank lines."""
        return [line for line in self.text().split("\n") if line]

    def _put(self, character: str) -> None:
        match character:
            case "\r":
                self._x = 0
            case "\n":
                self._down()
            case "\b":
                self._x = max(0, self._x - 1)
            case "\a":
                pass
            case _:
                width = max(0, wcwidth(character))
                if self._x + width > self.columns:
                    self._x = 0
                    self._down()
                if width:
                    self._grid[self._y][self._x : self._x + width] = [character, "\0"][:width]
                    self._x += width

    def _down(self) -> None:
        if self._y < self.rows - 1:
            self._y += 1
            return
        self.scrolled.append("".join(self._grid.pop(0)))
        self._grid.append([" "] * self.columns)

    def _obey(self, args: str, end: str) -> None:
        if not end or end in _IGNORED:
            return
        numbers = [int(number) for number in args.lstrip("?").split(";") if number]
        n = numbers[0] if numbers else 0
        match end:
            case "A":
                self._y = max(0, self._y - max(1, n))
            case "B":
                self._y = min(self.rows - 1, self._y + max(1, n))
            case "C":
                self._x = min(self.columns - 1, self._x + max(1, n))
            case "D":
                self._x = max(0, min(self._x, self.columns - 1) - max(1, n))
            case "K" if n == 0:
                self._grid[self._y][self._x :] = [" "] * (self.columns - self._x)
            case "J" if n == 0:
                self._grid[self._y][self._x :] = [" "] * (self.columns - self._x)
                self._grid[self._y + 1 :] = [[" "] * self.columns for _ in range(self.rows - self._y - 1)]
            case "n" if n == 6:
                self.replies.append(f"\x1b[{self._y + 1};{self._x + 1}R".encode())
            case _:
                raise AssertionError(f"unknown sequence {args}{end}")
