"""The model writes, revises and keeps a draft; the person sees every version on a card of its own."""

from handlers.answering.calls import Call, Outcome, Tool
from handlers.work import draft
from handlers.work.works import Works
from memory.ports import ToolSpec

WRITE = ToolSpec(
    name="write_draft",
    description=(
        "Show the person a longer text that you write for them (a mail, a post, a list) as the next version of the "
        "open draft, or as the first of a new one. Always pass the whole text, not only what changed; read the "
        "version as it stands with read_work first. Use it for the first version and for every change the person "
        "asks for. Nothing is sent anywhere."
    ),
    schema={
        "type": "object",
        "properties": {
            "title": {
                "type": "string",
                "description": "A few words that name the text, in the person's language: Mail to the landlord.",
            },
            "text": {
                "type": "string",
                "description": f"The whole text of the version in Markdown, at most {draft.LONGEST} characters.",
            },
            "new": {
                "type": "boolean",
                "description": "True only when the person wants another text than the open one, which is closed then.",
            },
        },
        "required": ["title", "text"],
        "additionalProperties": False,
    },
)

KEEP = ToolSpec(
    name="keep_draft",
    description=(
        "Keep the newest version of the open draft for good: the person gets it as a message or a file and is asked "
        "whether to close the work. Call it only when they say that the text is as they want it."
    ),
    schema={"type": "object", "properties": {}, "additionalProperties": False},
)


def write() -> Tool:
    async def run(call: Call) -> Outcome:
        title, text, new = call.input.get("title"), call.input.get("text"), call.input.get("new", False)
        if not isinstance(title, str) or not isinstance(text, str) or not isinstance(new, bool):
            return Outcome("title and text must be strings, new true or false.", is_error=True)
        number = draft.put(call.request, call.work, text, title=title, new=new)
        return Outcome(f"Draft {number} is shown to the person with buttons to keep or discard it; do not repeat it.")

    return Tool(WRITE, run)


def keep(works: Works) -> Tool:
    async def run(call: Call) -> Outcome:
        if not call.work.holds(draft.TOOL):
            return Outcome("No draft is open in this chat.", is_error=True)
        kept = await draft.keep(call.request, call.work, works.name)
        asked = "the person is asked whether to close the work"
        if kept is None:
            return Outcome(f"This version is kept already; {asked}.")
        return Outcome(f"Kept: the person gets the text for good; {asked}.", (kept,))

    return Tool(KEEP, run)
