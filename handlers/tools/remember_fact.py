"""The model keeps what the person asked it to keep."""

from handlers.answering.calls import Call, Outcome, Tool
from handlers.remembering import facts
from handlers.types import Request
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
    async def run(call: Call) -> Outcome:
        request, text = call.request, _text(call.input)
        if not text:
            return Outcome("fact must be a sentence.", is_error=True)
        sources = () if call.message_id is None else (call.message_id,)
        try:
            kept = await memory.facts.remember(request.audience, request.user.name, text, sources)
        except FactRefused as refused:
            return Outcome(f"Not stored: {request.say(f'fact-refused-{refused.reason}')}", is_error=True)
        return Outcome(facts.told(kept), (facts.kept_card(request.say, kept),))

    return Tool(SPEC, run, confirm="untrusted", describe=_describe, allow="keep")


def _describe(request: Request, input: Json) -> str | None:
    return request.say("keep-untrusted", fact=text) if (text := _text(input)) else None


def _text(input: Json) -> str:
    text = input.get("fact")
    return text.strip() if isinstance(text, str) else ""
