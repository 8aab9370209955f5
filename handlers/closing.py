"""When a piece of work ends, and what a person reads then: pure."""

from handlers.locales import Phrases
from handlers.types import Button, Card
from memory.language.words import content_words, keys_of
from memory.types import SessionState

NOTE_LENGTH = 300
WORK_HOURS = 24
"""Work that nobody touched for so long is closed by the clock."""


def ask(say: Phrases) -> Card:
    """The card that closes a piece of work."""
    yes = Button(say("closing-yes"), "close_work", waits=True)
    no = Button(say("closing-no"), "continue_work", waits=True)
    return Card(say("closing-ask"), ((yes, no),))


def line(say: Phrases, state: SessionState, why: str) -> str:
    """What was closed, why, and how to take it up again, where the work says that something of it is saved."""
    reopen = f"work-reopen-{state.tool}"
    said = say(f"work-closed-{why}", title=state.title)
    return f"{said} {say(reopen)}" if state.data.get("saved", True) and reopen in say else said


def note(state: SessionState, shown: int) -> str:
    """What the model is told of the open work while it is open: at most 300 characters, nothing of its texts."""
    if state.data.get("light"):
        return ""
    stands = f", {state.step}" if state.step else ""
    seen = f", {shown} {'card' if shown == 1 else 'cards'} visible to the person" if shown else ""
    more = "; the person looked at it and wants to go on" if state.data.get("goes_on") else ""
    said = f"Open work of {state.tool}: {state.title[:120]}{stands}{seen}{more}; read_work reads it."
    return said[:NOTE_LENGTH]


def share_words(text: str, work: str) -> bool:
    """Whether a message speaks of the work: it has a word of substance in common with it."""
    return not keys_of(content_words(text)).isdisjoint(keys_of(content_words(work)))
