"""The parts of one emulator, as its methods and its control side see them.

One rule: whatever leaves for the bot, an answer or an update, is held to the schema file where there is one.
"""

from .errors import BotApiError, Json
from .faults import Troubles
from .schema_file import find_schema_file, load_schema
from .spec import Method, Spec
from .table import TABLE
from .updates import Updates
from .world import World


class Emulator:
    def __init__(self, world: World) -> None:
        self.world = world
        self.table = TABLE
        path = find_schema_file()
        self.schema: Spec | None = load_schema(path) if path else None
        self.updates = Updates(world, self._check_update)
        self.troubles = Troubles(world)

    def _check_update(self, update: Json) -> None:
        if self.schema is not None:
            for problem in self.schema.value_problems(("Update",), update, "Update"):
                self.world.violate("answer", "update", str(problem))

    def check_answer(self, method: Method, result: object) -> None:
        """Raise a 500 for an answer of ours that the real server could not have given."""
        if self.schema is None:
            return
        returns = self.schema.methods[method.name].returns
        problems = self.schema.value_problems(returns, result, method.name)
        for problem in problems:
            self.world.violate("answer", method.name, str(problem))
        if problems:
            raise BotApiError(500, f"Internal Server Error: the emulator's own answer is wrong: {problems[0]}")
