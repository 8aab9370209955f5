"""One chat of a whole Merk over its life: in one run of the program, or each step in a run of its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from memory.ports import ModelRequest
from memory.storage.database import Database
from memory.storage.tables import instructions, messages
from tests.fakes.house import House, house
from tests.fakes.transport import Shown

OWNER: dict[str, Any] = {"owners": ["fake:42"]}
GROUP: dict[str, Any] = {"chat": "-5", "group": True}
WORKING = sa.select(messages.c.id).where(messages.c.is_ephemeral)
TEXTS = sa.select(instructions.c.text).order_by(instructions.c.id)


class Life:
    """One chat on one database; with `restarts` each step is a run of the program of its own."""

    def __init__(self, folder: Path, options: dict[str, Any], *, restarts: bool) -> None:
        self._folder = folder
        self._options = options
        self._restarts = restarts
        self._opened: House | None = None

    @property
    def house(self) -> House:
        assert self._opened is not None
        return self._opened

    @property
    def shown(self) -> dict[str, Shown]:
        return self.house.transport.shown

    @property
    def requests(self) -> list[ModelRequest]:
        return self.house.model.requests

    def labels(self) -> set[str]:
        return {label for shown in self.shown.values() for label in labels(shown)}

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None, None]:
        database = Database.at(self._folder / "merk.db")
        try:
            async with house(database, self._folder, before=self._opened, **self._options) as self._opened:
                yield
        finally:
            await database.close()

    async def say(self, text: str, *script: Any, **more: Any) -> list[str]:
        async with self._step():
            self.house.model.script += script
            return await self.house.say(text, **more)

    async def press(self, label: str, **more: Any) -> list[str]:
        async with self._step():
            return await self.house.press(label, **more)

    async def rows(self, query: sa.Select[Any]) -> list[Any]:
        database = Database.at(self._folder / "merk.db")
        async with database.read() as connection:
            found = list((await connection.execute(query)).scalars())
        await database.close()
        return found

    @asynccontextmanager
    async def _step(self) -> AsyncGenerator[None, None]:
        if self._restarts:
            async with self.open():
                yield
        else:
            yield


@asynccontextmanager
async def life(folder: Path, *, restarts: bool = False, **options: Any) -> AsyncGenerator[Life, None]:
    lived = Life(folder, options, restarts=restarts)
    if restarts:
        yield lived
        return
    async with lived.open():
        yield lived


def labels(shown: Shown) -> list[str]:
    return [key.label for row in shown.part.keys for key in row]


def system(request: ModelRequest) -> str:
    return "\n".join(block.text for block in request.system)
