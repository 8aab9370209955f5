"""/model: which model answers in this chat; pins one, or leaves it to what is asked."""

from handlers.answering import pinning
from handlers.types import Command, Reply, Request, UserError
from memory.ports import LanguageModel
from memory.storage.database import Database


def command(database: Database, model: LanguageModel) -> Command:
    async def handle(request: Request) -> Reply:
        session = request.session
        if request.args:
            named = request.args.strip().lower()
            if named not in pinning.CHOICES:
                raise UserError(request.say("model-unknown", name=request.args))
            session = await pinning.pin(database, session, named)
        yield await pinning.card(request, session, model)

    return Command("model", handle)
