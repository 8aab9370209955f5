"""An edited message: offer to answer again. An edit never runs a command (pitfall P43)."""

from handlers import utterances
from handlers.types import Button, Card, Handler, Reply, Request
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
                data = {"message_id": message.id, "text": text}
                again = Button(request.say("answer-again"), "answer_again", data, waits=True)
                yield Card(request.say("edited"), ((again, Button(request.say("no"), "leave")),))
                return

    return handle
