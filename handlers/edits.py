"""An edited message: offer to answer again. An edit never runs a command (pitfall P43)."""

from handlers.types import Button, Card, Handler, Reply, Request
from memory.storage import log
from memory.storage.database import Database


def edited(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        incoming = request.incoming
        async with database.read() as connection:
            message = await log.by_external_ref(connection, request.session.id, incoming.ref)
        if message is None or message.text == incoming.text or incoming.text.startswith("/"):
            return
        data = {"message_id": message.id, "text": incoming.text}
        again = Button(request.say("answer-again"), "answer_again", data)
        yield Card(request.say("edited"), ((again, Button(request.say("no"), "leave")),))

    return handle
