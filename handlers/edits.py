"""An edited message: offer to answer again (P43). A deleted one: take its words back. Neither runs a command."""

from handlers import utterances
from handlers.again import again
from handlers.remembering import facts
from handlers.types import Button, Card, Handler, Notice, Reply, Request
from memory.memory import Memory
from memory.storage import log
from memory.storage.database import Database

LOOK_BACK = 100  # messages; an edit of something older changes nothing


def edited(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        incoming = request.incoming
        if incoming.text.startswith("/"):
            return
        async with database.read() as connection:
            recent = await log.newest(connection, request.session.id, LOOK_BACK)
        for message in recent:
            text = utterances.edited(message, incoming.ref, incoming.text) if message.role == "user" else None
            if text is not None:
                yes = again(request.say("answer-again"), message.id, text=text)
                yield Card(request.say("edited"), ((yes, Button(request.say("no"), "leave")),))
                return

    return handle


def taken_back(memory: Memory) -> Handler:
    """Somebody deleted a message of theirs. It is told only where more went than they see."""

    async def handle(request: Request) -> Reply:
        receipt = await memory.take_back(request.user.id, request.audience.chat_id, request.incoming.ref)
        if receipt.facts:
            lines = facts.receipt_lines(request.say, receipt)
            yield Notice(f"{request.say('taken-back')}\n{lines}")

    return handle
