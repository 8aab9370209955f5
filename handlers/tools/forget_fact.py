"""The model finds what the person wants forgotten; only the person's tap erases it."""

from handlers.answering.calls import Call, Outcome, Tool
from handlers.remembering import forgetting
from memory.memory import Memory
from memory.ports import ToolSpec

SPEC = ToolSpec(
    name="forget_fact",
    description=(
        "Find what the person wants forgotten, kept by them or noticed from their words. The person is shown a card "
        "and confirms it there; nothing is erased by this call."
    ),
    schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to forget, or words of it, in the person's language."}
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
        found = await memory.forgettable.find(request.audience, query)
        if found.is_others:
            return Outcome("Only what others said matches; the person may not forget that. Tell them.")
        if not found.things:
            return Outcome(
                "Nothing that is kept or was noticed matches; nothing was forgotten. Tell the person that /forget "
                "with the words shows the chats in which they were said, and that deleting a chat erases them."
            )
        card = forgetting.card(request, found)
        if len(found.things) == 1:
            return Outcome(
                "One thing matches. The person sees it with Yes and No; nothing is erased before Yes.", (card,)
            )
        return Outcome(
            f"{len(found.things)} things match. The person sees them as a list of buttons: ask which one they mean.",
            (card,),
        )

    return Tool(SPEC, run)
