"""/instructions: how Merk shall answer this person; with words, a proposal of them."""

from handlers.types import Command
from handlers.work.instructions import shown_or_proposed
from handlers.work.works import Works


def command(works: Works) -> Command:
    return Command("instructions", shown_or_proposed(works, "me"))
