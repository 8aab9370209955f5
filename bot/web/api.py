"""The telemetry API: typed questions in, figures out. Reports has the answers."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from bot.web.doors import need
from bot.web.inside import Inside, inside
from bot.web.reports import (
    EventPage,
    Granularity,
    Metric,
    Overview,
    Period,
    PersonFigures,
    Reports,
    Series,
    ToolFigures,
)
from memory.scope import VIEW_TELEMETRY
from memory.telemetry import EVENTS


def _known(name: str) -> str:
    if name not in EVENTS:
        raise ValueError(f"there is no event {name!r}; there are {', '.join(EVENTS)}")
    return name


_EventName = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(EVENTS)})]
_Id = Annotated[int, Field(ge=1, lt=2**63)]
_Limit = Annotated[int, Field(ge=1, le=100)]


class _Question(BaseModel):
    """What may be asked: a key that there is none of is an error, not ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=False)

    period: Period = Period.DAY


class _AskEvents(_Question):
    event_name: _EventName | None = None
    chat_id: _Id | None = None
    user_id: _Id | None = None
    page: int = Field(default=1, ge=1, le=1_000_000)
    size: int = Field(default=50, ge=1, le=200)


class _AskSeries(_Question):
    metric: Metric = Metric.TURNS
    granularity: Granularity = Granularity.HOUR


class _AskTop(_Question):
    limit: _Limit = 10


_REFUSALS: dict[int | str, dict[str, str]] = {
    401: {"description": "No token and no session, or one that does not hold."},
    403: {"description": "The grant view:telemetry is missing."},
    429: {"description": "Too many requests; Retry-After says when to ask again."},
}

router = APIRouter(
    prefix="/api/ai/telemetry",
    tags=["telemetry"],
    dependencies=[Depends(need(VIEW_TELEMETRY))],
    responses={**_REFUSALS},
)


def _reports(site: Annotated[Inside, Depends(inside)]) -> Reports:
    return Reports(site)


_Reports = Annotated[Reports, Depends(_reports)]


@router.get("/overview")
async def overview(asked: Annotated[_Question, Query()], reports: _Reports) -> Overview:
    """Turns, cost, tokens, errors, cached share and prompts that were too long, up to now."""
    return await reports.overview(asked.period)


@router.get("/events")
async def events(asked: Annotated[_AskEvents, Query()], reports: _Reports) -> EventPage:
    """What happened, newest first, page by page."""
    return await reports.events(
        asked.period, asked.page, asked.size, name=asked.event_name, chat_id=asked.chat_id, user_id=asked.user_id
    )


@router.get("/timeseries")
async def timeseries(asked: Annotated[_AskSeries, Query()], reports: _Reports) -> Series:
    """A figure by the hour or the day of the tenant's clock; empty buckets are there."""
    return await reports.timeseries(asked.metric, asked.period, asked.granularity)


@router.get("/top-tools")
async def top_tools(asked: Annotated[_AskTop, Query()], reports: _Reports) -> list[ToolFigures]:
    """The tools that were called most."""
    return await reports.top_tools(asked.period, asked.limit)


@router.get("/top-users")
async def top_users(asked: Annotated[_AskTop, Query()], reports: _Reports) -> list[PersonFigures]:
    """Who spent most; where nothing costs anything, who used most tokens."""
    return await reports.top_people(asked.period, asked.limit)
