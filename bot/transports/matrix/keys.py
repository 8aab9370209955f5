"""Buttons in a network that has none: a printed legend, our own reactions to tap on, and numbers that people type.

Rule: what is kept of a card is random tokens and ids, never its words; whose card it is the dispatcher knows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.transports.base import Key
from bot.transports.matrix import files
from handlers.types import Place

MOST_CARDS = 1000
SEEDED_MOST = 3
"""Up to so many keys get reactions of ours to tap on: a stock homeserver allows one event in five seconds."""

_DIGITS = (*(f"{digit}\ufe0f\u20e3" for digit in range(1, 10)), "🔟")
_THUMBS = ("👍", "👎")
_VARIATIONS = dict.fromkeys([0xFE0F, *range(0x1F3FB, 0x1F400)])
"""Selectors and skin tones: clients add and drop them as they like."""


def symbols(keys: Sequence[Sequence[Key]]) -> tuple[str, ...]:
    """What stands for each key, in order: a digit, or the thumb that both of two labels begin with."""
    labels = [key.label for row in keys for key in row]
    thumbs = tuple(bare(label)[:1] for label in labels)
    if thumbs in (_THUMBS, _THUMBS[::-1]):
        return thumbs
    return tuple(_DIGITS[at] if at < len(_DIGITS) else f"{at + 1}." for at in range(len(labels)))


def legend(keys: Sequence[Sequence[Key]]) -> str:
    """The keys in words, a line each."""
    marks = symbols(keys)
    lines: list[str] = []
    for mark, key in zip(marks, (key for row in keys for key in row), strict=True):
        label = bare(key.label).removeprefix(mark).strip() if mark in _THUMBS else key.label
        lines.append(f"{mark} {label}")
    return "\n".join(lines)


def bare(reaction: str) -> str:
    """A reaction without what clients add to it."""
    return reaction.strip().translate(_VARIATIONS)


def typed(text: str) -> str:
    """The mark that a short message may stand for; empty for any other message."""
    word = bare(text).rstrip(".)")
    if word in _THUMBS:
        return word
    if word.isascii() and word.isdecimal() and 0 < len(word) < 3 and int(word):  # noqa: PLR2004 - no card has 100 keys
        number = int(word)
        return bare(_DIGITS[number - 1]) if number <= len(_DIGITS) else str(number)
    return word if word in {bare(digit) for digit in _DIGITS} else ""


class Cards:
    """Which of our messages have keys, over restarts. Older ones than the newest thousand have expired long since."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError and ValueError for a file that cannot be read."""
        self._path = folder / files.CARDS_FILE
        self._cards: dict[str, dict[str, Any]] = files.read(self._path)

    def put(self, event_id: str, place: Place, keys: Sequence[Sequence[Key]]) -> None:
        """Remember the keys of a message, in the place of its former ones."""
        tokens = [key.token for row in keys for key in row]
        marks = [bare(mark).rstrip(".") for mark in symbols(keys)]
        former = self._cards.pop(event_id, None)
        if not tokens:
            if former:
                self._save()
            return
        self._cards[event_id] = {
            "chat": place.chat,
            "thread": place.thread,
            "keys": dict(zip(marks, tokens, strict=True)),
            "seeds": (former or {}).get("seeds", {}),
            "is_open": True,
        }
        for old in list(self._cards)[:-MOST_CARDS]:
            del self._cards[old]
        self._save()

    def outdate(self, place: Place) -> None:
        """An answer came after them: a number that is typed from now on is a message like any other."""
        open_here = [card for card in self._cards.values() if card["is_open"] and _is_at(card, place)]
        for card in open_here:
            card["is_open"] = False
        if open_here:
            self._save()

    def remove(self, event_id: str) -> None:
        if self._cards.pop(event_id, None) is not None:
            self._save()

    def move(self, old: str, new: str) -> None:
        """A room has a new id."""
        for card in self._cards.values():
            if card["chat"] == old:
                card["chat"] = new
        self._save()

    def token(self, event_id: str, reaction: str) -> str | None:
        """What a reaction to a message presses."""
        card = self._cards.get(event_id)
        token: str | None = card["keys"].get(bare(reaction)) if card else None
        return token

    def thread(self, event_id: str) -> str:
        """Where the message is."""
        return str(self._cards[event_id]["thread"])

    def tokens(self, place: Place, mark: str) -> list[tuple[str, str]]:
        """(event id, token) of what a typed mark may press in a place, the newest card first."""
        return [
            (event_id, str(card["keys"][mark]))
            for event_id, card in reversed(self._cards.items())
            if card["is_open"] and _is_at(card, place) and mark in card["keys"]
        ]

    def seeds(self, event_id: str) -> dict[str, str]:
        """Our own reactions on a message: mark -> event id."""
        return dict(self._cards.get(event_id, {}).get("seeds", {}))

    def note_seeds(self, event_id: str, seeds: dict[str, str]) -> None:
        if card := self._cards.get(event_id):
            card["seeds"] = seeds
            self._save()

    def _save(self) -> None:
        files.write(self._path, self._cards)


def _is_at(card: dict[str, Any], place: Place) -> bool:
    return (card["chat"], card["thread"]) == (place.chat, place.thread)
