"""What happened, event by event, and one turn in full: what was recalled, from where, which model and why, how long.

Rule: ids and figures for whoever may see telemetry; words only for the one whose they are, as `memory.scope` has it.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, BeforeValidator, Field

from bot.web.pages import traces
from bot.web.pages.visit import MOST, PER_PAGE, Visit, Visiting, blank, may_see_telemetry, pages
from bot.web.pages.words import NONE
from bot.web.reports import NANO, TURNS, Period, Reports
from memory.instants import from_ms
from memory.storage import members, turns
from memory.telemetry import EVENTS

_SHOWN = {
    TURNS: ("model", "outcome", "durationMs", "costNanoUsd"),
    "memory.extraction": ("trigger", "messages", "observations", "durationMs"),
}
"""Of the data of an event, what its line shows; of others the first four."""
_LINE = 4
_BEFORE_MS = 2000
"""Choosing a model is an event of its own, from before the answer."""

router = APIRouter(include_in_schema=False, dependencies=[Depends(may_see_telemetry)])

_Id = Annotated[Annotated[int, Field(ge=1, le=MOST)] | None, BeforeValidator(blank)]


class Asked(BaseModel):
    period: Period = Period.DAY
    name: Annotated[str | None, BeforeValidator(blank)] = None
    chat: _Id = None
    person: _Id = None
    page: int = Field(default=1, ge=1, le=1_000_000)


@router.get("/events")
async def events(visit: Visiting, asked: Annotated[Asked, Query()]) -> HTMLResponse:
    name = asked.name if asked.name in EVENTS else None
    found = await Reports(visit.site).events(
        asked.period, asked.page, PER_PAGE, name=name, chat_id=asked.chat, user_id=asked.person
    )
    async with visit.site.database.search() as connection:
        chats, people = await turns.names_of_chats(connection), await turns.names_of_people(connection)
    kept = {"period": asked.period, "name": name, "chat": asked.chat, "person": asked.person}
    return visit.page(
        "events.html",
        asked=asked,
        periods=list(Period),
        names=sorted((label(visit, each), each) for each in EVENTS),
        chats=chats,
        people=people,
        rows=[
            {"event": each, "label": label(visit, each.name), "line": line(visit, each.name, each.data)}
            for each in found.items
        ],
        total=found.total,
        page=asked.page,
        last=pages(found.total),
        query={key: value for key, value in kept.items() if value is not None},
    )


@router.get("/events/{event_id}")
async def event(visit: Visiting, event_id: Annotated[int, Path(ge=1, le=MOST)]) -> HTMLResponse:
    async with visit.site.database.search() as connection:
        found = await turns.event(connection, event_id)
        if found is None:
            raise HTTPException(404)
        keys = await members.shown(connection, visit.audience)
        turn, others = None, []
        if found["name"] == TURNS and found["session_id"] is not None:
            since = found["created_at"] - found["data"]["durationMs"] - _BEFORE_MS
            others = await turns.beside(connection, found["session_id"], since, found["created_at"])
            if (inbox_id := found["data"].get("inboxId")) is not None:
                turn = await turns.answered(connection, found["session_id"], inbox_id, keys)
    return visit.page(
        "event.html",
        event=found,
        at=from_ms(found["created_at"]),
        label=label(visit, found["name"]),
        data=[(key, value_of(visit, key, value)) for key, value in found["data"].items()],
        turn=turn,
        trace=None if turn is None else await traces.told(visit, turn, keys, found["data"]),
        others=[
            {"id": each["id"], "label": label(visit, each["name"]), "line": line(visit, each["name"], each["data"])}
            for each in others
            if each["id"] != event_id
        ],
    )


def label(visit: Visit, name: str) -> str:
    """What an event is called; its own name where there is no word for it yet."""
    key = f"web-event-{name.replace('.', '-')}"
    return visit.words.say(key) if key in visit.words.say else name


def line(visit: Visit, name: str, data: dict[str, Any]) -> list[tuple[str, str]]:
    """The data of an event in short."""
    keys = _SHOWN.get(name) or list(data)[:_LINE]
    return [(key_of(visit, key), value_of(visit, key, data[key])) for key in keys if data.get(key) is not None]


def key_of(visit: Visit, key: str) -> str:
    """What a figure is called; the API's own name where there is no word for it."""
    phrase = f"web-key-{key}"
    return visit.words.say(phrase) if phrase in visit.words.say else key


def value_of(visit: Visit, key: str, value: object) -> str:
    """A figure as the reader writes it; a code stays a code, but for those that the page has words for."""
    w = visit.site_words
    if value is None:
        return NONE
    if isinstance(value, bool):
        return w.say("web-yes" if value else "web-no")
    if not isinstance(value, int | float):
        told = f"web-{key}-{value}"
        return w.say(told) if told in w.say else str(value)
    if key == "confidence":
        return w.share(value)
    if key.endswith("NanoUsd"):
        return w.money(value / NANO)
    return w.duration(value) if key.endswith("Ms") else w.count(value)
