"""What learning reads of a session: who said what, as plain lines. Pure.

Rule: only typed words and the assistant's answers. Forwarded, quoted, tool and file text is somebody else's and never
becomes memory; neither does what a forget has left of a message.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory.language.text import has_words, one_line, shorten, without_marks
from memory.types import Message, Origin


@dataclass(frozen=True, slots=True)
class Entry:
    """One message, on one line."""

    is_person: bool
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker if self.is_person else 'Merk'}: {self.text}"


def entries(messages: Iterable[Message]) -> list[Entry]:
    """The messages that may be learned from, in order."""
    found = [
        Entry(message.role == "user", one_line(message.speaker), without_marks(message.text))
        for message in messages
        if message.origin is Origin.TYPED
    ]
    return [entry for entry in found if has_words(entry.text)]


def is_exchange(messages: Iterable[Message]) -> bool:
    """Say whether both sides spoke, whatever is left of it: less is no session to remember."""
    return {message.role for message in messages} >= {"user", "assistant"}


def pieces(lines: Sequence[Entry], limit: int) -> Iterator[list[Entry]]:
    """The lines in runs of at most `limit` characters; a longer line is cut."""
    run: list[Entry] = []
    size = 0
    for entry in lines:
        short = Entry(entry.is_person, entry.speaker, shorten(entry.text, max(limit // 4, 200)))
        if run and size + len(str(short)) > limit:
            yield run
            run, size = [], 0
        run.append(short)
        size += len(str(short)) + 1
    if run:
        yield run


def first_words(lines: Sequence[Entry], limit: int = 48) -> str:
    """A title for want of a better one: how the person began."""
    return next((shorten(entry.text, limit) for entry in lines if entry.is_person), "")
