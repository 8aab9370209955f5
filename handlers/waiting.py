"""Asking for a person's next message: the new words of a fact, the new name of a chat, new instructions."""

from typing import Any

from handlers.types import Button, Card, Request
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import awaiting
from memory.storage.awaiting import PATIENCE_MS, Awaited
from memory.storage.database import Database

_ASKS = {
    "edit_fact": "edit-how",
    "rename_chat": "rename-how",
    "edit_observation": "edit-how",
    "change_instructions": "instructions-how",
}


async def ask(database: Database, clock: Clock, request: Request, what: str, data: dict[str, Any]) -> Card:
    """Wait where the person is now, whatever session the tapped card is of."""
    awaited = Awaited(what, data, request.incoming.inbox_ids[0], to_ms(clock.now()) + PATIENCE_MS)
    async with database.write() as connection:
        await awaiting.wait_for(connection, request.here.id, request.user.id, awaited)
    cancel = Button(request.say("cancel"), "stop_waiting")
    return Card(request.say(_ASKS[what]), ((cancel,),), request.card)
