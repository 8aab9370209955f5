"""A whole Merk in the process whose model is the real Claude adapter, over HTTP, at the strict stand-in."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

from bot.app import App
from bot.config import Access, AnthropicModels, MemorySection, Model, Settings, Tenant
from bot.metering import meter
from bot.models.anthropic import AnthropicModel
from bot.models.lesser import LesserModel
from bot.providers import Chosen
from memory.memory import Memory
from memory.ports import Tier
from memory.storage.database import Database
from memory.types import MemorySettings
from tests.fakes.clock import FrozenClock
from tests.fakes.embedder import WordEmbedder
from tests.fakes.house import House
from tests.fakes.index import ExactIndex
from tests.fakes.messages_api import MessagesApi
from tests.fakes.transport import RecordingTransport

MODELS = {Tier.DEFAULT: "claude-sonnet-5-5", Tier.SMART: "claude-opus-5-5", Tier.SMALL: "claude-haiku-5-5"}


@asynccontextmanager
async def claude_house(
    database: Database,
    folder: Path,
    api: MessagesApi,
    *,
    before: House | None = None,
    window_max: int = 24,
    **section: Any,
) -> AsyncGenerator[House, None]:
    """Open one; `section` is what stands in [model.anthropic]. With `before` it is that house after a restart."""
    clock = before.clock if before else FrozenClock()
    api.model.cache.clock = lambda: clock.now().timestamp()
    anthropic = AnthropicModels.model_validate(section)
    access = Access(admit="open").model_copy(update={"owners": ["fake:42"]})
    settings = Settings(
        tenant=Tenant(data_dir=folder),
        access=access,
        model=Model(anthropic=anthropic),
        memory=MemorySection(window_max=window_max),
    )
    api_model = AnthropicModel(
        api_key=api.key,
        base_url=api.base_url,
        models=cast("Mapping[Tier, str]", MODELS),
        compaction_models=anthropic.compaction_models,
        betas=anthropic.betas,
        threshold=anthropic.compact_from,
        diagnoses=anthropic.diagnostics,
    )
    claude = LesserModel(api_model, {**MODELS, Tier.ADVISOR: MODELS[Tier.SMART]})
    memory = Memory(
        database,
        clock,
        vectors=ExactIndex(),
        embedder=WordEmbedder(),
        model=meter(settings, clock, database, claude),
        settings=MemorySettings(learn_after=3600),
    )
    transport = before.transport if before else RecordingTransport()
    app = App(settings, database, memory, Chosen(claude, "", "anthropic"), [transport], clock)
    await app.start()
    try:
        ids = before.ids if before else count(1)
        yield House(app, database, memory, model=cast("Any", claude), clock=clock, ids=ids)
    finally:
        await app.stop()
        await memory.close()
        await claude.close()
