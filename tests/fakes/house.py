"""A whole Merk in the process, on fakes at its edges: say something, press something, read what came back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from bot.app import App
from bot.config import Access, Settings, Tenant
from bot.providers import Chosen
from memory.memory import Memory
from memory.storage.database import Database
from memory.types import MemorySettings
from tests.fakes.clock import FrozenClock
from tests.fakes.embedder import WordEmbedder
from tests.fakes.index import ExactIndex
from tests.fakes.model import ScriptedModel
from tests.fakes.transport import RecordingTransport, Shown


class House:
    """`say` and `press` return what the bot showed for it; `model.requests` is what the model saw."""

    def __init__(self, app: App, database: Database, memory: Memory, model: ScriptedModel, clock: FrozenClock) -> None:
        self.app = app
        self.database = database
        self.memory = memory
        self.model = model
        self.clock = clock
        transport = app.transport("fake")
        assert isinstance(transport, RecordingTransport)
        self.transport = transport
        self._ids = count(1)

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
        await self.transport.accept(f"u{next(self._ids)}", payload)
        await self.settle()
        changed = [
            shown.text for ref, shown in self.transport.shown.items() if len(shown.versions) > before.get(ref, 0)
        ]
        return changed + [toast for toast in self.transport.toasts[toasts:] if toast]


@asynccontextmanager
async def house(database: Database, folder: Path, *script: Any, **options: Any) -> AsyncGenerator[House, None]:
    """Open one. The script is the model's; without one it echoes."""
    clock = FrozenClock()
    model = ScriptedModel(*script, always=options.pop("always", "Very well."))
    settings = Settings(tenant=Tenant(data_dir=folder), access=Access(admit="open"))
    memory = Memory(
        database,
        clock,
        vectors=ExactIndex(),
        embedder=WordEmbedder(),
        model=model,
        settings=MemorySettings(learn_after=3600, facts_budget=options.pop("facts_budget", 6000)),
    )
    transport = RecordingTransport(**options)
    app = App(settings, database, memory, Chosen(model, "", "none"), [transport], clock)
    await app.start()
    try:
        yield House(app, database, memory, model, clock)
    finally:
        await app.stop()
        await memory.close()
