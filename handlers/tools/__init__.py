"""What the model may do: one file a tool, listed once."""

from handlers.tools import forget_fact, remember_fact
from handlers.types import Tool
from memory.memory import Memory


def tools(memory: Memory) -> tuple[Tool, ...]:
    return (remember_fact.tool(memory), forget_fact.tool(memory))


__all__ = ["tools"]
