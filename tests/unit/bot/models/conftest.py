"""A server that answers byte for byte, and the Claude adapter before it."""

from collections.abc import AsyncIterator

import pytest

from bot.models.anthropic import AnthropicModel
from tests.fakes.canned_http import CannedServer
from tests.unit.bot.models.claude_answers import MODELS


@pytest.fixture
async def server() -> AsyncIterator[CannedServer]:
    async with CannedServer() as server:
        yield server


@pytest.fixture
async def claude(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AnthropicModel]:
    monkeypatch.setattr("bot.models.anthropic._RETRY_AFTER_SECONDS", 0.0)
    claude = AnthropicModel(api_key="key", base_url=server.url, models=MODELS)
    yield claude
    await claude.close()
