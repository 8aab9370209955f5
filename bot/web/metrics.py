"""/metrics: what happened since this start, for Prometheus, under the names of OpenTelemetry where it has some.

Rule: metrics are a view of the events. What was committed since the last look is counted, once; a turn pays nothing.
"""

import asyncio
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, HTTPException, Request, Response, status
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from bot.web import doors
from bot.web.health import Health, health
from bot.web.inside import Inside, inside
from memory.scope import VIEW_TELEMETRY
from memory.storage import outbox
from memory.storage import telemetry as events

ROWS = 1000
NANO = 1_000_000_000

# the buckets that OpenTelemetry's conventions for generative AI name
_TOKEN_BUCKETS = tuple(4**power for power in range(14))
_SECOND_BUCKETS = tuple(0.01 * 2**power for power in range(14))
_MODEL = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")


class Metrics:
    """Counts events as they come, and measures what is there when it is asked."""

    def __init__(self, site: Inside) -> None:
        self._site = site
        self.registry = CollectorRegistry()
        self._seen: int | None = None
        self._counting = asyncio.Lock()
        r = self.registry
        self._usage = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a turn",
            (*_MODEL, "gen_ai_token_type"),
            buckets=_TOKEN_BUCKETS,
            registry=r,
        )
        self._duration = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "How long a person waited for a whole answer",
            _MODEL,
            buckets=_SECOND_BUCKETS,
            registry=r,
        )
        self._first = Histogram(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "How long a person waited for the first word",
            _MODEL,
            buckets=_SECOND_BUCKETS,
            registry=r,
        )
        self._cached = Counter("merk_cached_tokens", "Tokens read from or written to a cache", ("kind",), registry=r)
        self._turns = Counter("merk_turns", "Turns that came to their end", ("outcome",), registry=r)
        self._cost = Counter("merk_cost_usd", "US dollars of turns with a known price", ("model",), registry=r)
        self._recalled = Counter("merk_recall_hits", "Earlier chats and observations shown to a model", registry=r)
        self._errors = Counter("merk_errors", "Turns that failed", ("failure",), registry=r)
        self._tools = Counter("merk_tool_calls", "Tools that ran", ("tool", "success"), registry=r)
        self._tool_seconds = Histogram(
            "merk_tool_duration_seconds", "How long tools ran", ("tool",), buckets=_SECOND_BUCKETS, registry=r
        )
        self._faults = Counter("merk_transport_faults", "Sends that failed", ("transport", "fault"), registry=r)
        self._jobs = Counter("merk_jobs_failed", "Work in the background that failed", ("job",), registry=r)
        self._events = Counter("merk_events", "Everything that happened", ("name",), registry=r)
        self._contact = Gauge(
            "merk_contact_age_seconds", "Since the last poll, sync or call", ("transport",), registry=r
        )
        self._ok = Gauge("merk_part_ok", "1 = the part answers", ("part",), registry=r)
        self._waiting = Gauge("merk_outbox_waiting", "Messages on their way out", ("transport",), registry=r)

    async def begin(self) -> None:
        """What happened before is not counted."""
        async with self._site.database.search() as connection:
            self._seen = await events.last_id(connection)

    async def exposition(self, asked: Health) -> bytes:
        await self._count()
        await self._measure(asked)
        return generate_latest(self.registry)

    async def _count(self) -> None:
        async with self._counting:
            rows = await self._next()
            while rows:
                for row in rows:
                    self._add(row["name"], row["data"])
                self._seen = rows[-1]["id"]
                rows = await self._next()

    async def _next(self) -> list[dict[str, Any]]:
        async with self._site.database.search() as connection:
            newest = await events.last_id(connection)
            if self._seen is None or newest < self._seen:  # all that was counted has been erased
                self._seen = newest if self._seen is None else 0
            return await events.since_id(connection, self._seen, ROWS)

    def _add(self, name: str, data: dict[str, Any]) -> None:
        self._events.labels(name).inc()
        match name:
            case "chat.turn_completed":
                self._add_turn(data)
            case "chat.tool_used":
                self._tools.labels(data["toolName"], str(data["success"]).lower()).inc()
                self._tool_seconds.labels(data["toolName"]).observe(data["durationMs"] / 1000)
            case "chat.error":
                self._errors.labels(data["failure"]).inc()
            case "transport.fault":
                self._faults.labels(data["transport"], data["fault"]).inc()
            case "job.failed":
                self._jobs.labels(data["job"]).inc()
            case _:
                pass

    def _add_turn(self, data: dict[str, Any]) -> None:
        of_model = ("chat", self._site.provider, data["model"])
        # what a cache gave is part of what went in, by the conventions
        went_in = data["tokensIn"] + data["tokensCacheRead"] + data["tokensCacheWrite"]
        self._usage.labels(*of_model, "input").observe(went_in)
        self._usage.labels(*of_model, "output").observe(data["tokensOut"])
        self._cached.labels("read").inc(data["tokensCacheRead"])
        self._cached.labels("write").inc(data["tokensCacheWrite"])
        self._duration.labels(*of_model).observe(data["durationMs"] / 1000)
        if data["firstTokenMs"] is not None:
            self._first.labels(*of_model).observe(data["firstTokenMs"] / 1000)
        self._turns.labels(data["outcome"]).inc()
        self._cost.labels(data["model"]).inc((data["costNanoUsd"] or 0) / NANO)
        self._recalled.inc(data["recallHits"])

    async def _measure(self, asked: Health) -> None:
        for part in (await asked.report()).parts:
            self._ok.labels(part.name).set(part.ok)
        async with self._site.database.search() as connection:
            for name, transport in self._site.transports.items():
                age = transport.last_contact()
                self._contact.labels(name).set(float("nan") if age is None else age)
                self._waiting.labels(name).set(len(await outbox.open_rows(connection, name)))


def metrics(request: Request) -> Metrics:
    """A dependency: the one of this site."""
    return cast("Metrics", request.app.state.metrics)


async def _may_scrape(request: Request, site: Annotated[Inside, Depends(inside)]) -> None:
    """Figures without names: open to this machine itself, where no proxy is in between; else by token."""
    client = request.client.host if request.client else ""
    is_local = client in ("127.0.0.1", "::1") and not site.settings.web.trusted_proxy
    is_passed_on = any(each in request.headers for each in ("x-forwarded-for", "forwarded", "x-real-ip", "via"))
    if is_local and not is_passed_on:
        return
    found = await doors.visitor(request, site)
    if not found.may(VIEW_TELEMETRY):
        raise HTTPException(status.HTTP_403_FORBIDDEN, f"This needs the grant {VIEW_TELEMETRY}.")


router = APIRouter(tags=["health"])


@router.get("/metrics", dependencies=[Depends(_may_scrape)], response_class=Response)
async def scrape(counted: Annotated[Metrics, Depends(metrics)], asked: Annotated[Health, Depends(health)]) -> Response:
    """In the text format of Prometheus."""
    return Response(await counted.exposition(asked), media_type=CONTENT_TYPE_PLAIN_0_0_4)
