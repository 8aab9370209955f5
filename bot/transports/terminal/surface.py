"""What the transport needs of a surface, whether a person sits before it or a script behind it."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from bot.transports.base import Key, Outgoing

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NUMBER = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class Typed:
    """What came in: words, the number of a button, or what may be either."""

    text: str = ""
    number: int | None = None


class NotUnderstoodError(Exception):
    """The input is not of a form that is known; the text says which forms are."""


class Surface(Protocol):
    """Where things are typed and shown. Calls that show raise OSError when nobody is there any more."""

    takes_turns: bool
    """True: the next line is read only when the one before is answered."""

    def opened(self, command_names: Sequence[str]) -> AbstractContextManager[None]:
        """Ready to be read from, until it ends."""
        ...

    async def read(self) -> Typed | None:
        """The next thing typed; None when nobody types any more. Raises NotUnderstoodError."""
        ...

    async def echo(self, said: str) -> None:
        """Put what the person said above its answer."""
        ...

    async def show(self, ref: str, outgoing: Outgoing) -> None:
        """Show a text, card or notice; one that replaces another is shown anew."""
        ...

    async def grow(self, draft_id: int, text: str) -> None:
        """Show an answer that grows: the text so far."""
        ...

    def show_typing(self) -> None:
        """Show that an answer is being made, until something of it is there."""
        ...

    def line_up(self, waiting: Sequence[str]) -> None:
        """Show what waits for its turn."""
        ...

    def offer(self, rows: Sequence[Sequence[Key]]) -> None:
        """Show which buttons a number presses now."""
        ...

    def rest(self) -> None:
        """Everything is answered: take away what is only shown meanwhile."""
        ...

    async def wipe(self, refs: Sequence[str]) -> None: ...


def without_controls(text: str) -> str:
    """The text as it may be written to a terminal: no sequence in it can steer the cursor or the colours."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def storable(text: str) -> str:
    """The text as it may be kept: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def typed(text: str) -> Typed:
    """A line as a person means it: a bare number may be a button's."""
    number = _NUMBER.fullmatch(text.strip())
    return Typed(text, int(number[0]) if number else None)


def numbered(rows: Sequence[Sequence[Key]]) -> list[list[tuple[int, Key]]]:
    """The buttons with their numbers, from 1, row by row."""
    numbers = iter(range(1, 1 + sum(len(row) for row in rows)))
    return [[(next(numbers), key) for key in row] for row in rows]


def buttons_as_text(rows: Sequence[Sequence[Key]]) -> list[str]:
    """One line a row: `[1] Yes, forget  [2] No`."""
    return ["  ".join(f"[{n}] {without_controls(key.label)}" for n, key in row) for row in numbered(rows)]
