"""What the model may do: one file a tool, listed once."""

from memory.memory import Memory

from handlers.tools import forget_fact, remember_fact
from handlers.tools.base import Outcome, Tool


def tools(memory: Memory) -> tuple[Tool, ...]:
    return (remember_fact.tool(memory), forget_fact.tool(memory))


__all__ = ["Outcome", "Tool", "tools"]
