"""A conversation in a terminal: the real output of `merk chat` on a pseudo-terminal, with its colours."""

import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from io import StringIO
from pathlib import Path

import pexpect
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tests.e2e.merk_process import ROOT
from tests.fakes.window import Window

ROWS, COLUMNS = 80, 76
SECONDS = 60
CHATS = 2  # that are summarised before something is forgotten, so that the receipt is always the same
FONT = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class ColourWindow(Window):
    """A window whose text carries the colours in which it was written."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__(rows, columns)
        self._style = ""

    def plain(self) -> str:
        return Text.from_ansi(self.text()).plain

    def _put(self, character: str) -> None:
        before = self._x
        super()._put(character)
        if self._style and self._x > before:
            self._grid[self._y][before] = f"{self._style}{character}\x1b[0m"

    def _obey(self, args: str, end: str) -> None:
        super()._obey(args, end)
        if end == "m":
            self._style = "" if args in ("", "0") else f"{self._style}\x1b[{args}m"


class Terminal:
    """A person at a terminal in which `merk chat` runs."""

    def __init__(self, folder: Path, model_url: str) -> None:
        self.window = ColourWindow(ROWS, COLUMNS)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("MERK_", "ANTHROPIC_", "XDG_"))}
        kept.pop("NO_COLOR", None)
        self._child: pexpect.spawn[bytes] = pexpect.spawn(
            sys.executable,
            ["-m", "bot", "chat"],
            cwd=str(ROOT),
            env=kept
            | {
                "HOME": str(folder),
                "LC_ALL": "C.UTF-8",
                "TERM": "xterm-256color",
                "MERK_TENANT__DATA_DIR": str(folder / "data"),
                "MERK_MODEL__PROVIDER": "anthropic",
                "MERK_MODEL__ANTHROPIC__API_KEY": "test",
                "MERK_MODEL__ANTHROPIC__BASE_URL": model_url,
                "MERK_EMBEDDING__PROVIDER": "builtin",
            },
            dimensions=(ROWS, COLUMNS),
        )
        self._child.delaybeforesend = None

    def say(self, text: str, answer: str) -> None:
        """Type a line; return when the answer stands there and nothing moves any more."""
        self._child.send(text + "\r")
        self.until(lambda: answer in self.window.plain())
        while self._read():
            pass

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the terminal shows only:\n{self.window.plain()}")
            self._read()

    def leave(self) -> None:
        self._child.sendeof()
        try:
            while True:
                self._read()
        except pexpect.EOF:
            self._child.close()

    def _read(self) -> bool:
        """False when nothing came for a while."""
        try:
            self.window.feed(self._child.read_nonblocking(65536, timeout=0.5))
        except pexpect.TIMEOUT:
            return False
        for reply in self.window.replies:
            self._child.send(reply)
        self.window.replies.clear()
        return True


def draw_terminal(folder: Path, model_url: str) -> str:
    """Return an SVG of the whole session."""
    terminal = Terminal(folder, model_url)
    terminal.until(lambda: "\n>" in terminal.window.plain())
    terminal.say("Remember that I am allergic to hazelnuts.", "Saved")
    terminal.say("/newchat Sunday", "new chat begins")
    terminal.say("What can I bake for Sunday?", "45 minutes")
    terminal.until(lambda: _summaries(folder / "data") == CHATS)
    terminal.say("/forget hazelnuts", "for good")
    terminal.say("1", "Forgotten")
    terminal.leave()
    return _as_svg(terminal.window.text())


def _summaries(data_dir: Path) -> int:
    with closing(sqlite3.connect(data_dir / "merk.db")) as opened:
        return opened.execute("SELECT count(*) FROM summaries WHERE indexed_as IS NOT NULL").fetchone()[0]


def _as_svg(shown: str) -> str:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold green"), "merk chat"))
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(title="merk chat", theme=DIMMED_MONOKAI, unique_id="merk")
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)  # it must not fetch a font
    return svg.replace("Fira Code, monospace", FONT)
