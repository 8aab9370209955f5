"""The model reads the open work again: SQL is the single truth, and what it reads does not stay in its history."""

from collections.abc import Sequence

from handlers.answering.calls import Call, Outcome, Tool
from memory.ports import ToolSpec
from memory.storage.working import Shown

READ_LENGTH = 7500
"""Characters of working output that one call returns, newest first, texts before what differs between them."""

SPEC = ToolSpec(
    name="read_work",
    description=(
        "Read the open piece of work of this chat as it stands now: the newest text, preview and listing. Call it "
        "before you change the work or answer questions about its text."
    ),
    schema={
        "type": "object",
        "properties": {
            "earlier": {
                "type": "boolean",
                "description": "True only to go back to an earlier version: these are long, and come newest first.",
            }
        },
        "additionalProperties": False,
    },
)


def tool() -> Tool:
    async def run(call: Call) -> Outcome:
        state = call.work.state
        if state is None:
            return Outcome("No piece of work is open in this chat.")
        shown = sorted(await call.work.shown(), key=lambda each: each.kind == "diff")
        wanted = shown if call.input.get("earlier") is True else _newest(shown)
        parts = [f"{state.tool}: {state.title} {state.step}".strip()]
        left = READ_LENGTH
        for each in wanted:
            if left <= 0:
                break
            about = ", ".join(f"{key} {value}" for key, value in each.data.items())
            parts.append(f"[{each.kind}{', ' if about else ''}{about}]\n{each.text[:left]}")
            left -= len(each.text)
        if len(wanted) < len(shown):
            parts.append(f"Left out: {len(shown) - len(wanted)} earlier.")
        call.work.touch()
        return Outcome("\n\n".join(parts))

    return Tool(SPEC, run)


def _newest(shown: Sequence[Shown]) -> list[Shown]:
    """The newest of each kind; what it came from is sent only where it is asked for, for it costs every round."""
    first: dict[str, Shown] = {}
    for each in shown:
        first.setdefault(each.kind, each)
    return list(first.values())
