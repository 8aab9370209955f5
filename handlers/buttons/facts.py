"""Buttons of kept facts: keep, undo, edit, settle a contradiction, look closer."""

from handlers import pages, waiting
from handlers.remembering import facts, remembered
from handlers.remembering.remembered import Remembered
from handlers.types import Button, Card, Handler, Reply, Request, UserError
from memory.memory import Memory
from memory.ports import Clock
from memory.storage.database import Database


def keep(memory: Memory) -> Handler:
    """The tap that lets somebody else's words into memory."""

    async def handle(request: Request) -> Reply:
        source = request.data["message_id"]
        sources = () if source is None else (int(source),)
        kept = await memory.facts.remember(request.audience, request.user.name, request.data["text"], sources)
        yield facts.kept_card(request.say, kept, replaces=request.card)

    return handle


def undo(memory: Memory) -> Handler:
    async def handle(request: Request) -> Reply:
        undone = await memory.facts.undo(request.audience, request.data["id"])
        yield Card(request.say("undone" if undone else "fact-gone"), replaces=request.card)

    return handle


def edit(database: Database, clock: Clock) -> Handler:
    """Ask for the new words; the next message is them."""

    async def handle(request: Request) -> Reply:
        yield await waiting.ask(database, clock, request, "edit_fact", {"id": request.data["id"]})

    return handle


def settle(memory: Memory) -> Handler:
    """Two facts contradict: the person says whether the new one, both or the old one hold."""

    async def handle(request: Request) -> Reply:
        data = request.data
        holding = await memory.facts.settle(request.audience, data["id"], data["choice"])
        facts_now = " / ".join(fact.text for fact in holding)
        yield Card(request.say(f"settled-{data['choice']}", fact=facts_now), replaces=request.card)

    return handle


def open(memory: Memory) -> Handler:
    async def handle(request: Request) -> Reply:
        fact = await memory.facts.by_id(request.audience, request.data["id"])
        if fact is None:
            raise UserError(request.say("fact-gone"))
        data = {"id": fact.id}
        rows = (
            (
                Button(request.say("edit"), "edit_fact", data),
                Button(request.say("forget"), "ask_forget", {"ids": [fact.id]}),
            ),
            (Button(request.say("back"), "memory_page", {"query": "", "page": 0}),),
        )
        said = request.say("fact-open", fact=fact.text, who=fact.speaker, when=pages.day(request, fact.created_at))
        yield Card(said, rows, request.card)

    return handle


def page(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        query = request.data.get("query", "")
        yield await remembered.memory_card(kept, request, query=query, page=request.data["page"])

    return handle
