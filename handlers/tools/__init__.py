"""What the model may do: one file a tool, listed once."""

from handlers.answering.calls import Tool
from handlers.reminding.reminders import Reminders
from handlers.tools import (
    consult_advisor,
    draft,
    forget_fact,
    instructions,
    read_work,
    remember_fact,
    reminders,
    search_memory,
)
from handlers.work.works import Works
from memory.memory import Memory
from memory.ports import LanguageModel


def tools(
    memory: Memory, works: Works, kept: Reminders, *, advisor: LanguageModel | None = None, most_advice: int = 1
) -> tuple[Tool, ...]:
    """All of them; `works` has the database, the clock and the tenant's time zone.

    `advisor` is there where a stronger model can be consulted, `most_advice` times in one answer.
    """
    advice: tuple[Tool, ...] = ()
    if advisor is not None and most_advice:
        advice = (consult_advisor.tool(works.database, works.clock, advisor, most=most_advice),)
    return (
        *advice,
        remember_fact.tool(memory),
        forget_fact.tool(memory),
        read_work.tool(),
        *instructions.tools(works),
        *reminders.tools(kept),
        search_memory.tool(memory),
        draft.write(),
        draft.keep(works),
    )


__all__ = ["tools"]
