"""The model finds what the person wants forgotten; only the person's tap erases it."""

from handlers.answering.calls import Call, Outcome, Tool
from handlers.remembering import facts
from memory.memory import Memory
from memory.ports import ToolSpec

SPEC = ToolSpec(
    name="forget_fact",
    description=(
        "Find facts that the person asked to be forgotten. The person is shown a card and confirms it there; "
        "nothing is erased by this call."
    ),
    schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "The fact, or words of it, in the person's language."}
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)


def tool(memory: Memory) -> Tool:
    async def run(call: Call) -> Outcome:
        request, query = call.request, call.input.get("query")
        if not isinstance(query, str) or not query.strip():
            return Outcome("query must say what to forget.", is_error=True)
        found = await memory.facts.search(request.audience, query)
        if not found.facts:
            return Outcome("No stored fact matches. Tell the person; nothing was forgotten.")
        card = facts.forget_card(request.say, found)
        if len(found.facts) == 1:
            return Outcome(
                "One fact matches. The person sees it with Yes and No; nothing is erased before Yes.", (card,)
            )
        return Outcome(
            f"{len(found.facts)} facts match. The person sees them as a list of buttons: ask which one they mean.",
            (card,),
        )

    return Tool(SPEC, run)
