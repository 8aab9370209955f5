"""The first page: how much, how fast, for how much money, and who and what it was for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from bot.web.pages.visit import Visit, Visiting, may_see_telemetry
from bot.web.pages.words import Words
from bot.web.reports import Granularity, Metric, Overview, Period, Reports, Series

TOP = 8
_BUCKETS = {Period.HOUR: Granularity.QUARTER, Period.DAY: Granularity.HOUR}
_BARS = (Metric.TURNS, Metric.COST, Metric.TOKENS, Metric.ERRORS)

router = APIRouter(include_in_schema=False, dependencies=[Depends(may_see_telemetry)])


@dataclass(frozen=True, slots=True)
class Row:
    """A bucket: what stands below the axis, what it is called, and value and words for each series."""

    tick: str
    when: str
    cells: tuple[tuple[float | None, str], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of series over time, and the same as a table."""

    title: str
    kind: str
    """bars | line"""
    unit: str
    """usd | ms | share | count: how the script writes the axis."""
    names: tuple[str, ...]
    said: str
    """The whole in one figure."""
    rows: tuple[Row, ...]

    @property
    def is_empty(self) -> bool:
        return not any(value for row in self.rows for value, _ in row.cells)


@router.get("/")
async def overview(visit: Visiting, period: Period = Period.DAY) -> HTMLResponse:
    reports = Reports(visit.site)
    whole = await reports.overview(period)
    return visit.page(
        "overview.html",
        period=period,
        periods=list(Period),
        figures=_figures(visit, whole),
        charts=await _charts(visit, reports, period, whole),
        tools=await reports.top_tools(period, TOP),
        people=await reports.top_people(period, TOP),
        is_empty=not (whole.turns or whole.errors),
    )


def _figures(visit: Visit, whole: Overview) -> list[tuple[str, str]]:
    w, say = visit.site_words, visit.words.say
    return [
        (say("web-turns"), w.count(whole.turns)),
        (say("web-cost"), w.money(whole.cost_usd)),
        (say("web-tokens"), w.brief(whole.tokens.total)),
        (say("web-cached"), w.share(whole.cached_share)),
        (say("web-latency"), w.duration(whole.average_duration_ms)),
        (say("web-first-word"), w.duration(whole.average_first_token_ms)),
        (say("web-errors"), w.count(whole.errors)),
        (say("web-too-long"), w.count(whole.prompt_too_long)),
    ]


async def _charts(visit: Visit, reports: Reports, period: Period, whole: Overview) -> list[Chart]:
    w, say = visit.site_words, visit.words.say
    size = _BUCKETS.get(period, Granularity.DAY)

    told = {
        Metric.TURNS: ("web-turns", "count", w.count, w.count(whole.turns)),
        Metric.COST: ("web-cost", "usd", w.money, w.money(whole.cost_usd)),
        Metric.TOKENS: ("web-tokens", "count", w.count, w.brief(whole.tokens.total)),
        Metric.ERRORS: ("web-errors", "count", w.count, w.count(whole.errors)),
        Metric.CACHED_SHARE: ("web-cached", "share", w.share, w.share(whole.cached_share)),
    }
    series = await reports.several((*told, Metric.LATENCY, Metric.FIRST_TOKEN), period, size)
    charts = [
        Chart(
            say(key),
            "bars" if metric in _BARS else "line",
            unit,
            (say(key),),
            said,
            rows(w, size, [series[metric]], write),
        )
        for metric, (key, unit, write, said) in told.items()
    ]
    times = [series[Metric.LATENCY], series[Metric.FIRST_TOKEN]]
    names = (say("web-whole-answer"), say("web-first-word"))
    charts.insert(
        3,
        Chart(
            say("web-latency"),
            "line",
            "ms",
            names,
            w.duration(whole.average_duration_ms),
            rows(w, size, times, w.duration),
        ),
    )
    return charts


def rows(
    w: Words, size: Granularity, series: Sequence[Series], write: Callable[[float | None], str]
) -> tuple[Row, ...]:
    points = zip(*(each.points for each in series), strict=True)
    return tuple(
        Row(
            _tick(w, size, bucket[0].start),
            _when(w, size, bucket[0].start),
            tuple((point.value, write(point.value)) for point in bucket),
        )
        for bucket in points
    )


def _tick(w: Words, size: Granularity, start: datetime) -> str:
    if size is Granularity.DAY:
        return w.short_day(start)
    return w.hour(start) if size is Granularity.HOUR else w.clock(start)


def _when(w: Words, size: Granularity, start: datetime) -> str:
    return w.day(start) if size is Granularity.DAY else f"{w.short_day(start)}, {w.clock(start)}"
