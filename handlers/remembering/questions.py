"""Two values of one thing, of which only the person can say which holds: asked once, at the end of a later turn."""

from handlers.remembering.facts import shorten
from handlers.types import Button, Card, Request
from memory.memory import Memory

_LINE = 200


async def question(memory: Memory, request: Request) -> list[Card]:
    """The oldest question to this person, where nobody reads along; it is not put again."""
    if not request.audience.is_private:
        return []
    waiting = await memory.observations.questions(request.audience)
    if not waiting:
        return []
    new, old = waiting[0].new, waiting[0].old
    await memory.observations.asked([new.id])
    choices = tuple(
        (Button(request.say(f"settle-{choice}"), "settle_observation", {"id": new.id, "choice": choice}),)
        for choice in ("new", "both", "old")
    )
    said = request.say("observation-rival", new=shorten(new.narrative, _LINE), old=shorten(old.narrative, _LINE))
    return [Card(said, choices)]
