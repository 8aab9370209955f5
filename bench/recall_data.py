"""Reads evaluation files: conversations in LoCoMo's format, and facts with questions in three languages.

Rule: nothing of them is kept; a file is named on the command line and read from where it is.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.errors import CommandError

_TURN = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")
ADVERSARIAL = 5


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    session: int
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    text: str
    gold: frozenset[str]
    category: int


@dataclass(frozen=True, slots=True)
class Noted:
    """An extracted observation and the turns that it cites."""

    text: str
    turns: tuple[str, ...]
    session: int


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: list[Turn]
    questions: list[Asked]
    noted: list[Noted]


def conversations(path: Path) -> list[Conversation]:
    """The samples of a file. Raises CommandError where it is not there or not in this format."""
    try:
        return [_conversation(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({error.strerror}): name a file in LoCoMo's format.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{path} is not in LoCoMo's format ({type(error).__name__}: {error}).") from error


def probe(path: Path) -> dict[str, Any]:
    """Facts, questions and distractors in several languages. Raises CommandError as `conversations`."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise CommandError(f"{path} is no JSON: {error}.") from error
    if not {"languages", "facts", "distractors"} <= found.keys():
        raise CommandError(f"{path} has no languages, facts and distractors.")
    return found


def _conversation(sample: dict[str, Any]) -> Conversation:
    said = sample["conversation"]
    turns = [turn for number in _sessions(said) for turn in _turns(said, number)]
    known = {turn.id for turn in turns}
    questions = [
        Asked(str(each["question"]), gold, int(each["category"]))
        for each in sample["qa"]
        if (gold := frozenset(_cited(each.get("evidence", []))) & known)
    ]
    return Conversation(str(sample["sample_id"]), turns, questions, list(_noted(sample.get("observation", {}), known)))


def _sessions(said: dict[str, Any]) -> list[int]:
    numbers = (match[1] for key in said if (match := _SESSION.fullmatch(key)) and isinstance(said[key], list))
    return sorted(map(int, numbers))


def _turns(said: dict[str, Any], number: int) -> list[Turn]:
    written = said[f"session_{number}_date_time"]
    at = datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    found: list[Turn] = []
    for each in said[f"session_{number}"]:
        caption = f" [image: {each['blip_caption']}]" if each.get("blip_caption") else ""
        [name] = _cited([each["dia_id"]])
        found.append(Turn(name, number, each["speaker"], each["text"] + caption, at))
    return found


def _cited(entries: list[Any]) -> list[str]:
    """Turns as "D1:3", however they were written."""
    return [f"D{int(session)}:{int(turn)}" for entry in entries for session, turn in _TURN.findall(str(entry))]


def _noted(observation: dict[str, Any], known: set[str]) -> "list[Noted]":
    found: list[Noted] = []
    for key, of_speaker in observation.items():
        session = _SESSION.match(key)
        for notes in of_speaker.values():
            for text, cited in notes:
                entries: list[Any] = list(cited) if isinstance(cited, list) else [cited]  # pyright: ignore[reportUnknownArgumentType] - JSON
                turns = tuple(turn for turn in _cited(entries) if turn in known)
                found.append(Noted(str(text), turns, int(session[1]) if session else 0))
    return found
