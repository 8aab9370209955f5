"""What was typed while an answer was being made, until its own turn comes. Pure.

Rule: it is shown again right above its own answer, and so below the whole answer before it.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class _Line:
    words: str
    is_echoed: bool
    draft_id: int
    texts_at_turn: int | None = None
    """How many texts had been sent when its turn came; None while it waits."""


class WaitingLine:
    """People's lines behind a running answer, in order."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._texts = 0

    def join(self, ref: str, words: str, draft_id: int, *, is_echoed: bool) -> None:
        self._lines[ref] = _Line(words, is_echoed, draft_id)

    def __contains__(self, ref: object) -> bool:
        return ref in self._lines

    def words(self) -> list[str]:
        return [line.words for line in self._lines.values()]

    def holds_back(self, draft_id: int) -> bool:
        """True for an answer that must not be shown yet: its line is not echoed."""
        return any(line.draft_id == draft_id for line in self._lines.values())

    def call(self, ref: str) -> None:
        """Its turn has come; the answer before it is finished, and not yet sent."""
        self._lines[ref].texts_at_turn = self._texts

    def leave(self, ref: str) -> str | None:
        """Its answer begins; return the words to echo, None if they stand above already or it has left."""
        line = self._lines.pop(ref, None)
        return None if line is None or line.is_echoed else line.words

    def answered_by_next_text(self) -> str | None:
        """Which line a text that is sent now answers: a turn has one text, and the first was of the turn before."""
        found = None
        for ref, line in self._lines.items():
            if line.texts_at_turn is None:
                continue
            if found is None and line.texts_at_turn < self._texts:
                found = ref
            else:
                line.texts_at_turn = max(line.texts_at_turn, self._texts)
        self._texts += 1
        return found
