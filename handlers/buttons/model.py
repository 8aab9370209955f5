"""Buttons of /model."""

from handlers.answering import pinning
from handlers.types import Handler, Reply, Request
from memory.ports import LanguageModel
from memory.storage.database import Database


def pin(database: Database, model: LanguageModel) -> Handler:
    async def handle(request: Request) -> Reply:
        session = await pinning.pin(database, request.session, request.data["tier"])
        yield await pinning.card(request, session, model)

    return handle
