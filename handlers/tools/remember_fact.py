"""The model keeps what the person asked it to keep."""

from handlers import facts
from handlers.types import Outcome, Request, Tool
from memory.memory import Memory
from memory.ports import Json, ToolSpec
from memory.types import FactRefused

SPEC = ToolSpec(
    name="remember_fact",
    description=(
        "Keep one fact that the person explicitly asked to be remembered, for all future chats. "
        "Call it once per fact. The result says what is stored."
    ),
    schema={
        "type": "object",
        "properties": {
            "fact": {
                "type": "string",
                "description": "The fact as one short sentence, in the person's language and in their own words.",
            }
        },
        "required": ["fact"],
        "additionalProperties": False,
    },
)


def tool(memory: Memory) -> Tool:
    async def run(request: Request, input: Json, message_id: int) -> Outcome:
        text = input.get("fact")
        if not isinstance(text, str) or not text.strip():
            return Outcome("fact must be a sentence.", is_error=True)
        if not request.incoming.is_trusted:
            # somebody else's words are in this turn: only a tap may write memory
            return Outcome(
                "Not stored yet: the person was shown a card and has to confirm it first.",
                (facts.ask_to_keep(request.say, text, message_id),),
            )
        try:
            kept = await memory.facts.remember(request.audience, request.user.name, text, (message_id,))
        except FactRefused as refused:
            return Outcome(f"Not stored: {request.say(f'fact-refused-{refused.reason}')}", is_error=True)
        return Outcome(facts.told(kept), (facts.kept_card(request.say, kept),))

    return Tool(SPEC, run)
