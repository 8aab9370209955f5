"""/persona: the bot's own character, for everybody; only owners see and change it."""

from handlers.types import Command
from handlers.work.instructions import shown_or_proposed
from handlers.work.works import Works


def command(works: Works) -> Command:
    return Command("persona", shown_or_proposed(works, "bot"), for_owners=True)
