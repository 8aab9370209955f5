"""Pinning a chat to one model: what is chosen, what there is to choose, and the card that shows it."""

from dataclasses import replace

from handlers.types import Button, Card, Request
from memory.ports import LanguageModel, ModelError, Tier
from memory.storage import sessions
from memory.storage.database import Database
from memory.types import Session

AUTO = "auto"
CHOICES = (AUTO, Tier.SMALL, Tier.DEFAULT, Tier.SMART)


async def pin(database: Database, session: Session, choice: str) -> Session:
    """`choice` is one of `CHOICES`."""
    tier = None if choice == AUTO else choice
    async with database.write() as connection:
        await sessions.pin(connection, session.id, tier)
    return replace(session, pinned_tier=tier)


async def card(request: Request, session: Session, model: LanguageModel) -> Card:
    """What answers here, with a button for everything else."""
    say = request.say
    chosen = session.pinned_tier or AUTO
    names = {tier: await _name(model, tier) for tier in (Tier.SMALL, Tier.DEFAULT, Tier.SMART)}
    if len(set(names.values())) == 1:
        return Card(say("model-only", name=names[Tier.DEFAULT]), (), request.card)
    if chosen == AUTO:
        text = say("model-auto", default=names[Tier.DEFAULT], smart=names[Tier.SMART])
        if session.routed_tier:
            text += "\n" + say("model-last", name=names[Tier(session.routed_tier)])
    else:
        text = say("model-pinned", name=names[Tier(chosen)])
    rows = [
        (Button(_label(request, choice, names), "pin_model", {"tier": choice}),)
        for choice in CHOICES
        if choice != chosen and (choice in (AUTO, Tier.DEFAULT) or names[Tier(choice)] != names[Tier.DEFAULT])
    ]
    return Card(text, tuple(rows), request.card)


def _label(request: Request, choice: str, names: dict[Tier, str]) -> str:
    if choice == AUTO:
        return request.say("model-choose-auto")
    return request.say(f"model-choose-{choice}", name=names[Tier(choice)])


async def _name(model: LanguageModel, tier: Tier) -> str:
    try:
        return (await model.traits(tier)).name
    except ModelError:  # it does not answer now; its part has a name all the same
        return tier.value
