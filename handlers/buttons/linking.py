"""Buttons of /link and /unlink: two yeses join two identities, one takes an identity off again."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from handlers.identities import asking, called, confirming, network, refusal
from handlers.types import Button, Card, Handler, Notice, Place, Recipient, Reply, Request, UserError
from memory.budget import Budget
from memory.linking import Linking, LinkRefused
from memory.moving import Belongings

QUIET_SECONDS = 20.0
"""How long an answer that is being made on the other network is waited for."""
_LOOK_AGAIN_SECONDS = 0.25


def bring(linking: Linking) -> Handler:
    """Whoever brings a code has said yes: ask the one who gave it."""

    async def handle(request: Request) -> Reply:
        sender = request.incoming.sender
        try:
            brought = await linking.take(request.data["code"], sender.identity)
        except LinkRefused as refused:
            raise UserError(refusal(request.say, refused)) from refused
        who = called(brought.giver.name, brought.code.identity)
        yield Card(request.say("link-asked", who=who), replaces=request.card)
        yield asking(brought, sender, request.incoming.place)

    return handle


def join(linking: Linking, budget: Budget) -> Handler:
    """Both have said yes."""

    async def handle(request: Request) -> Reply:
        say, data = request.say, request.data
        refused = await _when_quiet(lambda: linking.join(request.user.id, data["code"], data["identity"]))
        if refused is not None and refused.reason == "busy":
            told = say("link-busy", network=network(data["identity"]))
            yield confirming(say, data, told=told, replaces=request.card)
            return
        if refused is not None:
            yield Card(refusal(say, refused), replaces=request.card)
            return
        budget.read_anew()
        yield Card(say("link-done", network=network(data["identity"])), replaces=request.card)
        there = Recipient(Place(**data["place"]), request.user.id)
        yield Notice(say("link-done-there", network=network(request.incoming.place.transport)), to=there)

    return handle


def decline(linking: Linking) -> Handler:
    """No: nothing happens, and nobody asks with this code again."""

    async def handle(request: Request) -> Reply:
        await linking.decline(request.data["code"])
        yield Card(request.say("link-declined"), replaces=request.card)

    return handle


def ask(linking: Linking) -> Handler:
    """What goes and what stays is said before anything does."""

    async def handle(request: Request) -> Reply:
        identity: str = request.data["identity"]
        try:
            going = await linking.going(request.user.id, identity)
        except LinkRefused as refused:
            raise UserError(refusal(request.say, refused)) from refused
        yield _unlinking(request, identity, _what_goes(request, identity, going))

    return handle


def part(linking: Linking, budget: Budget) -> Handler:
    async def handle(request: Request) -> Reply:
        say, identity = request.say, str(request.data["identity"])
        parted: list[bool] = []

        async def attempt() -> None:
            parted.append(await linking.part(request.user.id, identity))

        refused = await _when_quiet(attempt)
        if refused is not None and refused.reason == "busy":
            yield _unlinking(request, identity, say("link-busy", network=network(identity)))
            return
        if refused is not None:
            yield Card(refusal(say, refused), replaces=request.card)
            return
        budget.read_anew()
        done = "unlink-done" if parted[0] else "unlink-done-stranger"
        yield Card(say(done, who=called(request.user.name, identity)), replaces=request.card)

    return handle


def _unlinking(request: Request, identity: str, told: str) -> Card:
    yes = Button(request.say("unlink-yes"), "unlink", {"identity": identity})
    return Card(told, ((yes, Button(request.say("no"), "leave")),), replaces=request.card)


def _what_goes(request: Request, identity: str, going: Belongings | None) -> str:
    say, who = request.say, called(request.user.name, identity)
    if going is None:
        return say("unlink-ask-stranger", who=who)
    counts = {
        "unlink-chats": going.sessions,
        "receipt-facts": going.facts,
        "receipt-observations": going.observations,
        "unlink-reminders": going.reminders,
    }
    listed = "\n".join(f"– {say(key, n=len(ids))}" for key, ids in counts.items())
    return say("unlink-ask", who=who, network=network(identity), listed=listed)


async def _when_quiet(attempt: Callable[[], Awaitable[None]]) -> LinkRefused | None:
    """Try until nothing of theirs is being answered any more, for a while; return why it was not done.

    The while is for waiting: an attempt that has a long memory to move is not cut off.
    """
    until = monotonic() + QUIET_SECONDS
    while True:
        try:
            await attempt()
        except LinkRefused as refused:
            if refused.reason != "busy" or monotonic() >= until:
                return refused
        else:
            return None
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
