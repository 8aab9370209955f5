"""A summary as a value: one session, condensed. A dated record of the past, never an instruction (pitfall P18)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from memory.language.text import one_line, shorten
from memory.secrets import redact_secrets

EXTRACTIVE = "extractive"
"""`generated_by_model` of a summary that is made of the person's own sentences."""

_LONGEST = {"text": 1200, "notes": 2000}
_LONG = 600
_TITLE = 60


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    notes: str = ""

    @property
    def body(self) -> str:
        """All of it, to be indexed."""
        return "\n".join(part for part in (getattr(self, name) for name in FIELDS) if part)


FIELDS = tuple(field.name for field in fields(Summary))


@dataclass(frozen=True, slots=True)
class Condensed:
    """What one pass over a session yields."""

    summary: Summary
    title: str
    made_by: str


def kept(values: Mapping[str, str]) -> Summary:
    """Build a summary fit to be stored: cleaned, without secrets, of bounded length."""
    return Summary(**{name: _kept(values.get(name, ""), _LONGEST.get(name, _LONG)) for name in FIELDS})


def kept_title(title: str) -> str:
    return _kept(title, _TITLE).strip("\"'«»„“”.: ")


def _kept(text: str, limit: int) -> str:
    return shorten(redact_secrets(one_line(text))[0], limit)
