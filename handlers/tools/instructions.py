"""The model shows, drafts and applies standing instructions: the person's own, and for owners the bot's persona."""

from typing import Any

from handlers.answering.calls import Call, Outcome, Tool
from handlers.types import Request
from handlers.work import instructions
from handlers.work.works import Works
from memory.ports import Json, ToolSpec

_WHOSE: dict[str, Any] = {
    "type": "string",
    "enum": ["me", "bot"],
    "description": (
        "me: the standing instructions of the person you talk to, which hold for them alone. "
        "bot: your own character for everybody, which only owners may see and change."
    ),
}

SHOW = ToolSpec(
    name="show_instructions",
    description="Show the standing instructions that are in force, on a card and to you.",
    schema={
        "type": "object",
        "properties": {"whose": _WHOSE},
        "required": ["whose"],
        "additionalProperties": False,
    },
)
PROPOSE = ToolSpec(
    name="propose_instructions",
    description=(
        "Draft standing instructions: how you shall answer in all chats from now on. Call it when the person asks for "
        "a lasting change of your manner, and again for every revision. The person sees the draft against what is in "
        "force, with Apply and Discard; nothing is in force before they apply it."
    ),
    schema={
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "description": (
                    "The whole new text, at most 2000 characters, in the person's language: it replaces what is in "
                    "force, so keep what shall go on to hold. Empty to clear."
                ),
            },
            "whose": _WHOSE,
        },
        "required": ["text", "whose"],
        "additionalProperties": False,
    },
)
APPLY = ToolSpec(
    name="apply_instructions",
    description="Put a draft in force, once the person has said that they want it. The result says what is stored.",
    schema={
        "type": "object",
        "properties": {
            "draft": {"type": "integer", "description": "The number of the draft, normally the newest."},
            "whose": _WHOSE,
        },
        "required": ["draft", "whose"],
        "additionalProperties": False,
    },
)


def tools(works: Works) -> tuple[Tool, ...]:
    async def show(call: Call) -> Outcome:
        of = instructions.whose(call.request, call.input.get("whose"))
        snapshot = await instructions.show(works, call.request, call.work, of)
        if snapshot is None or not snapshot.text:
            return Outcome("Nothing is set.")
        return Outcome(f"In force, version {snapshot.version}:\n{snapshot.text}")

    async def propose(call: Call) -> Outcome:
        of = instructions.whose(call.request, call.input.get("whose"))
        text = call.input.get("text")
        if not isinstance(text, str):
            return Outcome("text must be the whole new text.", is_error=True)
        number = await instructions.propose(works, call.request, call.work, of, text)
        return Outcome(
            f"The person sees draft {number} with Apply and Discard. It is not in force: ask them, and call "
            f"apply_instructions with draft {number} when they agree."
        )

    async def apply(call: Call) -> Outcome:
        of = instructions.whose(call.request, call.input.get("whose"))
        number = _number(call.input)
        if number is None:
            return Outcome("draft must be the number of a draft.", is_error=True)
        snapshot = await instructions.apply(works, call.request, call.work, of, number)
        return Outcome(
            f"Stored as version {snapshot.version}; it holds from the next message on. The person is asked whether "
            "this is what they wanted."
        )

    return (
        Tool(SHOW, show),
        Tool(PROPOSE, propose),
        Tool(APPLY, apply, confirm="untrusted", describe=_describe, allow="instructions-apply"),
    )


def _describe(request: Request, input: Json) -> str | None:
    number = _number(input)
    tool = "persona" if input.get("whose") == "bot" else "instructions"
    return None if number is None else request.say(f"{tool}-apply-ask", number=number)


def _number(input: Json) -> int | None:
    number = input.get("draft")
    return number if isinstance(number, int) and not isinstance(number, bool) else None
