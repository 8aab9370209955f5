"""Whether Merk is well, what it does by itself, and what went wrong."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from bot.web.health import Health, Part, health
from bot.web.pages.events import key_of, label, value_of
from bot.web.pages.visit import Visit, Visiting, may_see_telemetry
from bot.web.reports import Period, Reports
from memory import telemetry
from memory.instants import from_ms, to_ms
from memory.storage import outbox, turns
from memory.storage import telemetry as events

_JOBS = (telemetry.Summarised.name, telemetry.Extracted.name, telemetry.RetentionRan.name, telemetry.Forgot.name)
_FAULTS = (telemetry.JobFailed.name, telemetry.TransportFault.name, telemetry.TurnFailed.name)
_PAST = timedelta(days=7)
_RECENT = 10

router = APIRouter(include_in_schema=False, dependencies=[Depends(may_see_telemetry)])


@router.get("/status")
async def status(visit: Visiting, asked: Annotated[Health, Depends(health)]) -> HTMLResponse:
    report = await asked.report()
    return visit.page(
        "status.html",
        verdict=report.status,
        parts=[(_named(visit, part), part, _detail(visit, part)) for part in report.parts],
        waiting=await _waiting(visit),
        jobs=await _jobs(visit),
        faults=await _faults(visit),
        days=_PAST.days,
        provider=visit.site.provider,
    )


def _named(visit: Visit, part: Part) -> str:
    key = f"web-part-{part.name}"
    return visit.words.say(key) if key in visit.words.say else part.name


def _detail(visit: Visit, part: Part) -> str | None:
    """What is often told, in the reader's language; None for the rest, which is for whoever runs the program."""
    if not part.code:
        return None
    count = "" if part.count is None else visit.site_words.count(part.count)
    return visit.words.say(f"web-detail-{part.code}", count=count)


async def _waiting(visit: Visit) -> list[tuple[str, int]]:
    async with visit.site.database.search() as connection:
        return [(name, len(await outbox.open_rows(connection, name))) for name in visit.site.transports]


async def _jobs(visit: Visit) -> list[dict[str, object]]:
    """What is done in the background: when last, and what it came to."""
    async with visit.site.database.search() as connection:
        last = {name: await turns.last_of(connection, name) for name in _JOBS}
    return [
        {
            "label": label(visit, name),
            "at": visit.site_words.moment(from_ms(found["created_at"])) if found else None,
            "figures": _figures(visit, found["data"]) if found else [],
        }
        for name, found in last.items()
    ]


def _figures(visit: Visit, data: dict[str, Any]) -> list[tuple[str, str]]:
    """What an event counted; nothing of nothing."""
    return [(key_of(visit, key), value_of(visit, key, value)) for key, value in data.items() if value]


async def _faults(visit: Visit) -> list[dict[str, object]]:
    """What went wrong in the last days, the newest of it with a way to its event."""
    now = to_ms(visit.site.clock.now())
    since = to_ms(visit.site.clock.now() - _PAST)
    found: list[dict[str, object]] = []
    reports = Reports(visit.site)
    for name in _FAULTS:
        async with visit.site.database.search() as connection:
            counted = await events.sums(connection, (name,), since, now + 1, "label")
        newest = await reports.events(Period.WEEK, 1, 1, name=name)
        for what, sums in sorted(counted.items(), key=lambda each: -each[1].events)[:_RECENT]:
            found.append(
                {
                    "label": label(visit, name),
                    "what": what,
                    "count": sums.events,
                    "name": name,
                    "last": visit.site_words.moment(newest.items[0].at) if newest.items else "",
                }
            )
    return found
