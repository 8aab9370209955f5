"""The marks with which an answer says what it used: taken out of it while it grows, kept as ids.

Rule: nobody ever sees a mark, whole or in part. What stands in code is code: `a[m1]` stays.
"""

import re
from dataclasses import dataclass, field

MARKS = re.compile(r"[ \t]?\[(?:[om]\d{1,18})(?:[,;]? ?[om]\d{1,18})*\]")
"""`[o12]` an observation, `[m123]` a message of an earlier chat; several may share a pair of brackets."""
_ONE = re.compile(r"([om])(\d+)")
_BEGINNING = re.compile(r"[ \t]?(?:\[(?:[om\d,; ]{0,100}))?\Z")
"""What may yet become a mark."""


@dataclass(slots=True)
class Citations:
    """One answer's text as it comes in, and what it cites."""

    observations: list[int] = field(default_factory=list[int])
    messages: list[int] = field(default_factory=list[int])
    _held: str = ""
    _said: str = ""

    def read(self, piece: str) -> str:
        """What of the text so far can be shown now."""
        text = self._held + piece
        beginning = _BEGINNING.search(text)
        cut = len(text) if beginning is None else beginning.start()
        self._held = text[cut:]
        return self._take_out(text[:cut])

    def finish(self) -> str:
        """What was held back at the end of a text that is whole."""
        text, self._held = self._held, ""
        return self._take_out(text)

    def _take_out(self, text: str) -> str:
        shown: list[str] = []
        at = 0
        for found in MARKS.finditer(text):
            shown.append(text[at : found.start()])
            self._said += shown[-1]
            at = found.start() if self._is_in_code() else found.end()
            if at == found.end():
                self._note(found.group())
        shown.append(text[at:])
        self._said += shown[-1]
        return "".join(shown)

    def _is_in_code(self) -> bool:
        line = self._said.rpartition("\n")[2]
        return self._said.count("```") % 2 == 1 or line.replace("```", "").count("`") % 2 == 1

    def _note(self, marks: str) -> None:
        for kind, number in _ONE.findall(marks):
            cited = self.observations if kind == "o" else self.messages
            if int(number) not in cited:
                cited.append(int(number))
