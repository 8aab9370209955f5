"""The weekly digest: what was learned, replaced, over and never needed; a number opens one, where it can be undone."""

from collections.abc import Sequence

from babel.dates import format_date

from handlers.locales import Phrases
from handlers.remembering.facts import shorten
from handlers.remembering.remembered import Seen, numbers
from handlers.types import Button, Card
from memory.kinds.observations.observation import Observation
from memory.kinds.observations.reading import Changes

LISTED = 5
"""Of each kind; a phone shows about so much."""
_LINE = 120


def digest_card(say: Phrases, changes: Changes) -> Card | None:
    """None where nothing happened."""
    parts = {
        "learned": changes.learned,
        "superseded": changes.superseded,
        "expired": changes.expired,
        "unused": changes.unused,
    }
    if not any(parts.values()):
        return None
    lines, shown = [say("digest")], list[Seen]()
    for name, found in parts.items():
        if found:
            lines += ["", say(f"digest-{name}", n=len(found)), *_lines(say, found[:LISTED], len(shown) + 1)]
            shown += [Seen(each.id) for each in found[:LISTED]]
            if len(found) > LISTED:
                lines.append("…")
    lines += ["", say("digest-how")]
    return Card("\n".join(lines), (*numbers(shown), (Button(say("digest-stop"), "stop_digest"),)))


def _lines(say: Phrases, found: Sequence[Observation], first: int) -> list[str]:
    return [
        f"{at}. {shorten(each.narrative, _LINE)} ({format_date(each.valid_from, format='medium', locale=say.language)})"
        for at, each in enumerate(found, first)
    ]
