"""What an answer was made with: the facts, what was noticed, the earlier chats; each can be opened and judged.

Rule: the trace holds ids alone; each is looked up for the audience that asks, and what it may not see is left out.
"""

from typing import Any

from handlers.pages import day
from handlers.remembering.facts import shorten
from handlers.remembering.remembered import Remembered, Seen
from handlers.types import Button, Card, Request, UserError
from memory.instants import from_ms
from memory.storage import answers, turns
from memory.storage.answers import Answered

_IN_A_ROW = 4
_LINE = 140


async def why_card(kept: Remembered, request: Request, message_id: int) -> Card:
    """The card of an answer, or of the answer to a question. Raises `UserError` where there is none."""
    say = request.say
    async with kept.database.read() as connection:
        answered = await answers.answer(connection, request.audience, message_id)
    if answered is None:
        raise UserError(say("why-none"))
    used = [
        *await _facts(kept, request, answered.trace),
        *await _observations(kept, request, answered),
        *await _chats(kept, request, answered.trace),
    ]
    lines = [say("why-used") if used else say("why-nothing")]
    lines += [f"{at}. {line}" for at, (line, _) in enumerate(used, 1)]
    lines += ["", await _looked_through(kept, request, answered)]
    keys = [Button(str(at), action, data) for at, (_, (action, data)) in enumerate(used, 1)]
    rows = [tuple(keys[at : at + _IN_A_ROW]) for at in range(0, len(keys), _IN_A_ROW)]
    rows.append((Button(say("why-keep"), "keep_message", {"message_id": answered.message_id}),))
    return Card("\n".join(lines), tuple(rows), request.card)


Used = tuple[str, tuple[str, dict[str, Any]]]
"""A line, and what opens it."""


async def _facts(kept: Remembered, request: Request, trace: dict[str, Any]) -> list[Used]:
    ids = set(trace.get("facts", ()))
    found = [fact for fact in await kept.memory.facts.list(request.audience) if fact.id in ids] if ids else []
    return [
        (
            request.say("why-fact", text=shorten(fact.text, _LINE), when=day(request, fact.created_at)),
            ("open_fact", {"id": fact.id}),
        )
        for fact in found
    ]


async def _observations(kept: Remembered, request: Request, answered: Answered) -> list[Used]:
    ids = [int(each["id"]) for each in answered.trace.get("observations", ())]
    found = await kept.memory.observations.by_ids(request.audience, ids) if ids else []
    cited = set(answered.trace.get("cited", {}).get("observations", ()))
    lines: list[Used] = []
    for each in found:
        source = request.say(f"why-from-{each.trigger_source}")
        text, when = shorten(each.narrative, _LINE), day(request, each.valid_from)
        line = request.say("why-observation", text=text, when=when, source=source)
        line += f" · {request.say('why-cited')}" if each.id in cited else ""
        which = Seen(each.id, answered.message_id, back={"answer": answered.message_id})
        lines.append((line, ("open_observation", which.data)))
    return lines


async def _chats(kept: Remembered, request: Request, trace: dict[str, Any]) -> list[Used]:
    ids = list(dict.fromkeys(int(each["id"]) for each in trace.get("sessions", ())))
    if not ids:
        return []
    async with kept.database.read() as connection:
        titles = await turns.titles(connection, ids, request.audience.visible)
    lines: list[Used] = []
    for each in ids:
        if each in titles:
            title, used = titles[each]
            named = shorten(title or request.say("chat-untitled"), _LINE)
            lines.append((request.say("why-chat", title=named, when=day(request, from_ms(used))), _chat(each)))
    return lines


def _chat(session_id: int) -> tuple[str, dict[str, Any]]:
    return "open_chat", {"id": session_id}


async def _looked_through(kept: Remembered, request: Request, answered: Answered) -> str:
    """Whether anything was noticed in this turn itself yet."""
    message_id = answered.question_id or answered.message_id
    return request.say(f"why-learning-{await kept.memory.extraction_of(answered.session_id, message_id)}")
