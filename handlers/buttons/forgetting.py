"""Buttons that ask and the one that erases."""

from handlers.remembering import facts, forgetting
from handlers.types import Card, Handler, Reply, Request, UserError
from memory.memory import Memory
from memory.storage import awaiting
from memory.storage.database import Database


def ask(memory: Memory) -> Handler:
    """One of several matches was chosen, or all of them: ask before erasing."""

    async def handle(request: Request) -> Reply:
        is_sensitive = _is_sensitive(request)
        ids, noticed = request.data["ids"], request.data.get("observations", [])
        chosen = await memory.forgettable.chosen(request.audience, ids, noticed, sensitive=is_sensitive)
        if not chosen:
            raise UserError(request.say("fact-gone"))
        yield forgetting.chosen_card(request, chosen, sensitive=is_sensitive)

    return handle


def forget(memory: Memory) -> Handler:
    async def handle(request: Request) -> Reply:
        ids, noticed = request.data["ids"], request.data.get("observations", [])
        receipt = await memory.forget(request.audience, ids, noticed, key=request.key, sensitive=_is_sensitive(request))
        yield Card(facts.receipt_lines(request.say, receipt), replaces=request.card)

    return handle


def _is_sensitive(request: Request) -> bool:
    """Stored with the button: the words were typed by whom they belong to."""
    return bool(request.data.get("sensitive"))


def leave() -> Handler:
    """No: nothing happens, and the card says so."""

    async def handle(request: Request) -> Reply:
        yield Card(request.say("left"), replaces=request.card)

    return handle


def stop_waiting(database: Database) -> Handler:
    """Cancel: the next message is an ordinary one again."""

    async def handle(request: Request) -> Reply:
        async with database.write() as connection:
            await awaiting.stop_waiting(connection, request.here.id, request.user.id)
        yield Card(request.say("left"), replaces=request.card)

    return handle
