"""The shape of a tool: a schema for the model, a function for us, cards for the person."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from handlers.types import Card, Request
from memory.ports import Json, ToolSpec


@dataclass(frozen=True, slots=True)
class Outcome:
    text: str
    """What the model is told; capped by the loop."""
    cards: tuple[Card, ...] = ()
    """What the person is shown; never told to the model."""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    spec: ToolSpec
    run: Callable[[Request, Json, int], Awaitable[Outcome]]
    """(request, input, id of the message that the turn answers)"""
