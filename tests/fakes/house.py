"""A whole Merk in the process, on fakes at its edges: say something, press something, read what came back."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from bot.app import App
from bot.config import Access, Budget, Model, Settings, Tenant, Web
from bot.metering import meter
from bot.providers import Chosen
from memory.memory import Memory
from memory.storage.database import Database
from memory.types import MemorySettings
from tests.fakes.clock import FrozenClock
from tests.fakes.embedder import WordEmbedder
from tests.fakes.index import ExactIndex
from tests.fakes.model import TRAITS, ScriptedModel
from tests.fakes.transport import RecordingTransport, Shown

_updates = count(1)
"""Across houses: one that opens on the database of another is a restart."""


class House:
    """`say` and `press` return what the bot showed for it; `model.requests` is what the model saw."""

    def __init__(
        self,
        app: App,
        database: Database,
        memory: Memory,
        *,
        model: ScriptedModel,
        clock: FrozenClock,
        ids: Iterator[int],
        network: str = "fake",
    ) -> None:
        self.app = app
        self.database = database
        self.memory = memory
        self.model = model
        self.clock = clock
        self.ids = ids
        transport = app.transport(network)
        assert isinstance(transport, RecordingTransport)
        self.transport = transport

    def on(self, network: str) -> "House":
        """The same house, spoken to on another of its networks."""
        return House(
            self.app, self.database, self.memory, model=self.model, clock=self.clock, ids=self.ids, network=network
        )

    async def say(self, text: str, **more: Any) -> list[str]:
        return await self._do({"text": text, **more})

    async def press(self, label: str, **more: Any) -> list[str]:
        """Press the newest button with this label; toasts come back like messages."""
        shown = next(shown for shown in reversed(self.transport.shown.values()) if label in self.labels(shown))
        token = next(key.token for row in shown.part.keys for key in row if key.label == label)
        return await self._do({"text": "", "token": token, "card": shown.ref, **more})

    async def press_token(self, token: str, card: str, **more: Any) -> list[str]:
        return await self._do({"text": "", "token": token, "card": card, **more})

    def labels(self, shown: Shown | None = None) -> list[str]:
        """The buttons of a message, by default the newest."""
        shown = shown or list(self.transport.shown.values())[-1]
        return [key.label for row in shown.part.keys for key in row]

    async def settle(self) -> None:
        async with asyncio.timeout(20):
            await self.app.settled()

    async def _do(self, payload: dict[str, Any]) -> list[str]:
        before = {ref: len(shown.versions) for ref, shown in self.transport.shown.items()}
        toasts = len(self.transport.toasts)
        assert self.transport.accept is not None
        await self.transport.accept(f"u{next(_updates)}", payload)
        await self.settle()
        changed = [
            shown.text for ref, shown in self.transport.shown.items() if len(shown.versions) > before.get(ref, 0)
        ]
        return changed + [toast for toast in self.transport.toasts[toasts:] if toast]


@asynccontextmanager
async def house(
    database: Database, folder: Path, *script: Any, before: House | None = None, **options: Any
) -> AsyncGenerator[House, None]:
    """Open one. The script is the model's; without one it echoes.

    With `before` it is that house after a restart: the same chat, clock and model, whose script goes on. `provider` is
    another model than the scripted one, `also` are further transports.
    """
    clock: FrozenClock = before.clock if before else options.pop("clock", None) or FrozenClock()
    traits, always = options.pop("traits", TRAITS), options.pop("always", "Very well.")
    model = options.pop("provider", None) or (before.model if before else ScriptedModel(always=always, traits=traits))
    if script:
        model.script += script
    # not validated: the fake transport is none that a deployment may name
    access = Access(admit=options.pop("admit", "open")).model_copy(update={"owners": options.pop("owners", [])})
    settings = Settings(
        tenant=options.pop("tenant", Tenant(data_dir=folder)),
        access=access,
        budget=options.pop("budget", Budget()),
        model=options.pop("models", Model()),
        web=options.pop("web", Web()),
    )
    has_advisor = options.pop("has_advisor", False)
    memory = Memory(
        database,
        clock,
        vectors=ExactIndex(),
        embedder=WordEmbedder(),
        model=meter(settings, clock, database, model),
        settings=MemorySettings(learn_after=3600, facts_budget=options.pop("facts_budget", 6000)),
    )
    also: list[RecordingTransport] = options.pop("also", [])
    transport = before.transport if before else RecordingTransport(**options)
    app = App(settings, database, memory, Chosen(model, "", "none", has_advisor), [transport, *also], clock)
    await app.start()
    try:
        ids = before.ids if before else count(1)
        yield House(app, database, memory, model=model, clock=clock, ids=ids)
    finally:
        await app.stop()
        await memory.close()
