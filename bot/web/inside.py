"""What the web knows of the running program: handed in once, read by every page and every question."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from fastapi import Request

from bot.config import Settings
from bot.transports.base import Transport
from memory.memory import Memory
from memory.ports import Clock
from memory.storage.database import Database


@dataclass(frozen=True, slots=True)
class Inside:
    settings: Settings
    database: Database
    clock: Clock
    memory: Memory
    transports: Mapping[str, Transport]
    provider: str = "unknown"
    """Of the model: anthropic, ollama, builtin."""

    @property
    def session_key(self) -> str:
        """Without it, no browser's session of this tenant is known."""
        secret = self.settings.web.secret
        return secret.get_secret_value() if secret else ""


def inside(request: Request) -> Inside:
    """A dependency: the program behind the site."""
    return cast("Inside", request.app.state.inside)
