"""What of the sessions found is shown: summaries and a few lines each, within a budget. Pure.

Rule: the best stays longest; a line is cut before a session goes.
"""

from collections.abc import Sequence
from dataclasses import replace

from memory.language.text import shorten
from memory.types import Cited, Recollection

BUDGET = 4200
"""Characters of all recollections together, about 1,100 tokens."""
LINES = 3
"""Of a session, at most."""
_LINE = 320
_SUMMARY = 700


def fitted(found: Sequence[Recollection], budget: int = BUDGET) -> tuple[Recollection, ...]:
    """Recollections, best first, cut to the budget: long texts first, then the lines of the last ones."""
    shown = [
        replace(each, text=shorten(each.text, _SUMMARY), lines=tuple(_short(line) for line in each.lines[:LINES]))
        for each in found
    ]
    while shown and sum(len(each.told) for each in shown) > budget:
        at = next((at for at in range(len(shown) - 1, -1, -1) if len(shown[at].lines) > 1), None)
        if at is None:
            shown.pop()
        else:
            shown[at] = replace(shown[at], lines=shown[at].lines[:-1])
    return tuple(replace(each, lines=tuple(sorted(each.lines, key=lambda line: line.message_id))) for each in shown)


def _short(line: Cited) -> Cited:
    return replace(line, text=shorten(line.text, _LINE))
