"""Buttons that ask and the one that erases."""

from handlers.remembering import facts
from handlers.types import Card, Handler, Reply, Request, UserError
from memory.memory import Memory
from memory.storage import awaiting
from memory.storage.database import Database
from memory.types import Found


def ask(memory: Memory) -> Handler:
    """One of several matches was chosen, or all of them: ask before erasing."""

    async def handle(request: Request) -> Reply:
        known = {fact.id: fact for fact in await memory.facts.list(request.audience)}
        chosen = [known[id] for id in request.data["ids"] if id in known]
        if not chosen:
            raise UserError(request.say("fact-gone"))
        if len(chosen) == 1:
            yield facts.forget_card(request.say, Found(tuple(chosen)), replaces=request.card)
        else:
            ids = [fact.id for fact in chosen]
            yield facts.forget_all_card(request.say, ids, replaces=request.card)

    return handle


def forget(memory: Memory) -> Handler:
    async def handle(request: Request) -> Reply:
        receipt = await memory.forget_facts(request.audience, request.data["ids"], key=request.key)
        yield Card(facts.receipt_lines(request.say, receipt), replaces=request.card)

    return handle


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
