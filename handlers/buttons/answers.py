"""Buttons of answers: once more after a failure or an edit, and the one that may not have arrived."""

from contextlib import aclosing

from handlers.locales import phrases
from handlers.turn import Turn
from handlers.types import Button, Card, Handler, Reply, Request, UserError
from memory.memory import Memory
from memory.storage import log, outbox, people
from memory.storage.database import Database
from memory.storage.outbox import OutboxRow

OFFERED = {"unknown": "unsure", "no_thread": "topic-gone", "thread_closed": "topic-closed"}
"""What to say, by what the delivery noted; anything else was refused for good."""


def answer_again(database: Database, turn: Turn, memory: Memory) -> Handler:
    """Answer a message of the log once more; `text` is what it says since it was edited."""

    async def handle(request: Request) -> Reply:
        message_id: int = request.data["message_id"]
        async with database.write() as connection:
            message = await log.by_id(connection, message_id)
            if message is None or message.session_id != request.session.id:
                raise UserError(request.say("message-gone"))
            if text := request.data.get("text"):
                await log.amend(connection, message_id, text)
                message = await log.by_id(connection, message_id)
        if text:
            await memory.observations.reconsider(message_id)
        assert message is not None
        yield Card(request.say("answering-again"), replaces=request.card)
        async with aclosing(turn.answer(request, message)) as reply:
            async for event in reply:
                yield event

    return handle


def show(database: Database) -> Handler:
    """Send what was in flight when the program stopped: the person says that it did not arrive."""

    async def handle(request: Request) -> Reply:
        async with database.write() as connection:
            row = await outbox.by_id(connection, request.data["id"])
            if row is None or row.status != "unknown" or row.event is None:
                raise UserError(request.say("press-again"))
            await outbox.change(connection, row.id, status="pending", attempts=0)
        yield Card(request.say("showing"), replaces=request.card)

    return handle


def offer(database: Database):
    """The one-line card for what may not have arrived, or did not: it says why, and offers it where it can."""

    async def card(row: OutboxRow) -> Card:
        assert row.user_id is not None
        async with database.read() as connection:
            user = await people.by_id(connection, row.user_id)
        say = phrases(user.reads if user else "en")
        why = OFFERED.get(row.error or "unknown")
        if why is None:
            return Card(say("not-sendable"))
        return Card(say(why), ((Button(say("show-answer"), "show_answer", {"id": row.id}),),))

    return card
