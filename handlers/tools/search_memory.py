"""The model searches what is kept or was noticed, and earlier chats; the person sees the finds as a list to open."""

import json
from collections.abc import Sequence

from handlers.answering.calls import Call, Outcome, Tool
from handlers.pages import day
from handlers.prompt import fence
from handlers.remembering.facts import shorten
from handlers.types import Button, Card, Request
from memory.kinds.observations.observation import Observation
from memory.memory import Memory
from memory.ports import ToolSpec
from memory.types import Fact, Recollection

SPEC = ToolSpec(
    name="search_memory",
    description=(
        "Search what the person asked to be kept, what was noticed in what they said, and their earlier chats, by "
        "words and by meaning. Use it when they "
        "ask what you know about something, or when the question needs an earlier chat that you were not given. They "
        "see the finds as a list with buttons."
    ),
    schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "A few words of what is looked for, in the person's language."}
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
LISTED = 6
"""Facts and observations that are shown: with the chats, about as many buttons as a phone shows at once."""
SUMMARY_LENGTH = 800
QUERY_LENGTH = 200


def tool(memory: Memory) -> Tool:
    async def run(call: Call) -> Outcome:
        query = call.input.get("query")
        if not isinstance(query, str) or not query.strip():
            return Outcome("query must be a few words.", is_error=True)
        request, query = call.request, shorten(query, QUERY_LENGTH)
        facts = (await memory.facts.search(request.audience, query)).facts[:LISTED]
        noticed = (await memory.observations.search(request.audience, query, limit=LISTED - len(facts))).observations
        recall = await memory.recall(request.audience, request.session.id, query)
        chats = recall.recollections
        missing = " A part of memory does not answer right now; there may be more." if recall.degraded else ""
        if not (facts or noticed or chats):
            return Outcome(f"Nothing was found.{missing}")
        card = _listing(request, query, facts, noticed, chats)
        call.work.show_list("search_memory", card, card.text)
        return Outcome(_told(facts, noticed, chats) + missing)

    return Tool(SPEC, run)


def _listing(
    request: Request,
    query: str,
    facts: Sequence[Fact],
    noticed: Sequence[Observation],
    chats: Sequence[Recollection],
) -> Card:
    """Each find is a button that opens it."""
    say = request.say
    lines = [say("search-found", n=len(facts) + len(noticed) + len(chats), query=query), ""]
    rows: list[tuple[Button, ...]] = []
    for number, fact in enumerate(facts, 1):
        lines.append(f"{number}. {fact.text}")
        rows.append((Button(f"{number}. {shorten(fact.text)}", "open_fact", {"id": fact.id}),))
    for number, one in enumerate(noticed, len(facts) + 1):
        lines.append(f"{number}. {one.narrative}")
        rows.append((Button(f"{number}. {shorten(one.narrative)}", "open_observation", {"id": one.id}),))
    for number, chat in enumerate(chats, len(rows) + 1):
        title = shorten(chat.title or say("chat-untitled"))
        lines.append(f"{number}. {say('search-chat', title=title, when=day(request, chat.at))}")
        rows.append((Button(f"{number}. {title}", "open_chat", {"id": chat.session_id}),))
    return Card("\n".join(lines), tuple(rows))


def _told(facts: Sequence[Fact], noticed: Sequence[Observation], chats: Sequence[Recollection]) -> str:
    """The finds for the model: data, within what one result may hold."""
    found = {
        "facts": [{"by": fact.speaker, "fact": fact.text} for fact in facts],
        "noticed": [
            {"since": f"{one.valid_from:%Y-%m-%d}", "type": one.type, "text": shorten(one.narrative, SUMMARY_LENGTH)}
            for one in noticed
        ],
        "earlier chats": [
            {"date": f"{chat.at:%Y-%m-%d}", "title": chat.title, "summary": shorten(chat.text, SUMMARY_LENGTH)}
            for chat in chats
        ],
    }
    return fence("finds", json.dumps(found, ensure_ascii=False))
