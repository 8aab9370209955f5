"""Each answer of the telemetry API is what SQL by hand says: every period, every zone, every change of clocks."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from bot.config import Tenant
from bot.web.reports import Granularity, Metric, Period, buckets
from memory import telemetry
from memory.instants import to_ms
from memory.storage import people, sessions
from memory.storage import telemetry as events
from memory.storage.database import Database
from memory.storage.tables import telemetry_events
from memory.types import Audience, Role
from tests.fakes.clock import FrozenClock
from tests.fakes.house import house
from tests.fakes.website import Website, website

API = "/api/ai/telemetry"
SPANS = {"1h": 3600, "24h": 86400, "7d": 7 * 86400, "30d": 30 * 86400}
NANO = 1e9
HALF_HOUR = 1800

ZONES = [
    ("Europe/Berlin", datetime(2026, 3, 29, 9, 7, 11, tzinfo=UTC)),  # 23 hours
    ("Europe/Berlin", datetime(2026, 10, 25, 22, 59, 59, tzinfo=UTC)),  # 25 hours
    ("Australia/Lord_Howe", datetime(2026, 10, 4, 12, 0, tzinfo=UTC)),  # clocks move by half an hour
    ("America/Havana", datetime(2026, 3, 8, 18, 30, tzinfo=UTC)),  # there is no midnight
    ("Asia/Kathmandu", datetime(2026, 6, 1, 18, 14, 59, 999000, tzinfo=UTC)),  # UTC + 5:45
    ("UTC", datetime(2026, 1, 1, 0, 0, tzinfo=UTC)),
]
IDS = [f"{zone}-{at.date()}" for zone, at in ZONES]


@asynccontextmanager
async def full(
    database: Database, folder: Path, zone: str, now: datetime, count: int = 600
) -> AsyncGenerator[Website, None]:
    """A site over a month of events of three people, most of them folded, many of them today."""
    tenant = Tenant(data_dir=folder, timezone=zone)
    async with house(database, folder, clock=FrozenClock(now), tenant=tenant) as opened, website(opened) as site:
        await fill(database, now, count)
        site.client.headers.update(await site.program())
        yield site


async def fill(database: Database, now: datetime, count: int) -> None:
    chance = random.Random(7)
    async with database.write() as connection:
        for number in range(3):
            user = await people.admit(connection, f"fake:{number}", f"Person {number}", Role.MEMBER, "en", 0)
            chat = await sessions.ensure_chat(connection, "fake", str(number), kind="ai", title="", now=0)
            await sessions.start(connection, Audience(user.id, chat, is_private=True), "", now=0)
        for number in range(count):
            if number == count - 50:
                await events.fold(connection, database, 0)
            age = chance.choice([HALF_HOUR, 86400, 7 * 86400, 31 * 86400])
            at = now - timedelta(seconds=chance.random() * age)
            await telemetry.record(connection, some_event(chance), to_ms(at))
        await telemetry.record(connection, some_event(chance), to_ms(now))


def some_event(chance: random.Random) -> telemetry.Event:
    who = chance.randint(1, 3)
    if chance.random() < 0.6:
        return telemetry.TurnCompleted(
            user_id=who,
            session_id=who,
            model="m",
            outcome="answered",
            tokens_in=chance.randint(0, 900),
            tokens_out=chance.randint(0, 900),
            tokens_cache_read=chance.randint(0, 900),
            tokens_cache_write=chance.randint(0, 900),
            cost_nano_usd=chance.choice([None, chance.randint(1, 10**9)]),
            duration_ms=chance.randint(0, 9000),
            first_token_ms=chance.choice([None, chance.randint(0, 900)]),
            recall_hits=chance.randint(0, 3),
            tool_calls=0,
        )
    if chance.random() < 0.5:
        tool = chance.choice(["draft", "search_memory", "remember_fact"])
        return telemetry.ToolUsed(
            user_id=who,
            session_id=who,
            tool_name=tool,
            duration_ms=chance.randint(1, 99),
            success=chance.random() < 0.8,
        )
    if chance.random() < 0.2:
        return telemetry.RecallQuality(
            user_id=who,
            questions=chance.randint(1, 9),
            recall_at_1=0.5,
            recall_at_3=0.5,
            recall_at_10=round(chance.random(), 3),
            updates=0,
            update_precedence=None,
            judged=0,
            rejected_share=None,
        )
    if chance.random() < 0.5:
        return telemetry.PtlRecovery(user_id=who, session_id=who, attempts=1, success=True)
    return telemetry.TurnFailed(user_id=who, session_id=who, failure="rate")


async def by_hand(site: Website, query: str, **values: Any) -> list[Any]:
    async with site.house.database.search() as connection:
        return list((await connection.execute(sa.text(query), values)).all())


def window(site: Website, period: str) -> dict[str, int]:
    now = to_ms(site.house.clock.now())
    return {"since": now - SPANS[period] * 1000, "until": now}


async def get(site: Website, path: str, **asked: Any) -> Any:
    response = await site.client.get(f"{API}/{path}", params=asked)
    assert response.status_code == 200, response.text
    return response.json()


IN_WINDOW = "created_at >= :since AND created_at <= :until"
TURNS = f"FROM telemetry_events WHERE name = 'chat.turn_completed' AND {IN_WINDOW}"
COLUMNS = {
    Metric.TURNS: "count(*)",
    Metric.COST: "coalesce(sum(json_extract(data, '$.costNanoUsd')), 0) / 1e9",
    Metric.TOKENS: "coalesce(sum(json_extract(data, '$.tokensIn') + json_extract(data, '$.tokensOut') + "
    "json_extract(data, '$.tokensCacheRead') + json_extract(data, '$.tokensCacheWrite')), 0)",
    Metric.LATENCY: "avg(json_extract(data, '$.durationMs'))",
    Metric.FIRST_TOKEN: "avg(json_extract(data, '$.firstTokenMs'))",
    Metric.CACHED_SHARE: "sum(json_extract(data, '$.tokensCacheRead')) * 1.0 / sum(json_extract(data, '$.tokensIn') + "
    "json_extract(data, '$.tokensCacheRead') + json_extract(data, '$.tokensCacheWrite'))",
    Metric.ERRORS: "count(*)",
    Metric.PROMPT_TOO_LONG: "count(*)",
    Metric.TOOL_CALLS: "count(*)",
    Metric.RECALL_HITS: "coalesce(sum(json_extract(data, '$.recallHits')), 0)",
    Metric.RECALL_QUALITY: "sum(json_extract(data, '$.recallAt10') * json_extract(data, '$.questions')) / "
    "sum(json_extract(data, '$.questions'))",
}
AVERAGES = (Metric.LATENCY, Metric.FIRST_TOKEN, Metric.CACHED_SHARE, Metric.RECALL_QUALITY)
OF = {
    Metric.ERRORS: "chat.error",
    Metric.PROMPT_TOO_LONG: "chat.ptl_recovery",
    Metric.TOOL_CALLS: "chat.tool_used",
    Metric.RECALL_QUALITY: "memory.recall_quality",
}


@pytest.mark.parametrize(("zone", "now"), ZONES[:2], ids=IDS[:2])
async def test_the_overview_is_what_sql_says(database: Database, tmp_path: Path, zone: str, now: datetime) -> None:
    async with full(database, tmp_path, zone, now) as site:
        for period in SPANS:
            told, span = await get(site, "overview", period=period), window(site, period)
            figures = ", ".join(COLUMNS[each] for each in (Metric.TURNS, Metric.COST, Metric.TOKENS))
            (row,) = await by_hand(site, f"SELECT {figures} {TURNS}", **span)
            assert (told["turns"], told["tokens"]["total"]) == (row[0], row[2])
            assert told["costUsd"] == pytest.approx(row[1])
            averages = ", ".join(COLUMNS[each] for each in (Metric.LATENCY, Metric.FIRST_TOKEN, Metric.CACHED_SHARE))
            (row,) = await by_hand(site, f"SELECT {averages} {TURNS}", **span)
            assert (told["averageDurationMs"], told["averageFirstTokenMs"], told["cachedShare"]) == pytest.approx(
                tuple(row)
            )
            for key, name in (("errors", "chat.error"), ("promptTooLong", "chat.ptl_recovery")):
                counted = f"SELECT count(*) FROM telemetry_events WHERE name = :name AND {IN_WINDOW}"
                ((count,),) = await by_hand(site, counted, name=name, **span)
                assert told[key] == count


@pytest.mark.parametrize(("zone", "now"), ZONES, ids=IDS)
async def test_every_series_is_what_sql_says_bucket_by_bucket(
    database: Database, tmp_path: Path, zone: str, now: datetime
) -> None:
    async with full(database, tmp_path, zone, now) as site:
        for period in SPANS:
            for granularity in ("hour", "day"):
                await check_series(site, period, granularity, zone)


async def check_series(site: Website, period: str, granularity: str, zone: str) -> None:
    span = window(site, period)
    for metric in Metric if period in ("24h", "30d") else (Metric.COST, Metric.LATENCY):
        told = await get(site, "timeseries", metric=metric, period=period, granularity=granularity)
        assert (told["timezone"], told["metric"]) == (zone, metric)
        starts = [datetime.fromisoformat(point["start"]) for point in told["points"]]
        check_starts(starts, span, zone, granularity)
        limits = [to_ms(start) for start in starts]
        cases = " ".join(
            f"WHEN created_at >= {start} THEN {number}" for number, start in reversed([*enumerate(limits)])
        )
        query = (
            f"SELECT CASE {cases} END, {COLUMNS[metric]} FROM telemetry_events WHERE name = :name AND {IN_WINDOW} "
            "GROUP BY 1"
        )
        rows = dict(await by_hand(site, query, name=OF.get(metric, "chat.turn_completed"), **span))
        nothing = None if metric in AVERAGES else 0
        expected = [rows.get(number, nothing) for number in range(len(limits))]
        assert [point["value"] for point in told["points"]] == pytest.approx(expected)


def check_starts(starts: list[datetime], span: dict[str, int], zone: str, granularity: str) -> None:
    """Every hour or day that the zone's clock shows in the window is there once, in order."""
    minute = timedelta(minutes=1)
    at = datetime.fromtimestamp(span["since"] / 1000, UTC).replace(second=0, microsecond=0)
    labels: list[object] = []
    while to_ms(at) <= span["until"]:
        local = at.astimezone(ZoneInfo(zone))
        label = local.date() if granularity == "day" else (local.date(), local.hour, local.utcoffset())
        if not labels or labels[-1] != label:
            labels.append(label)
        at += minute * 15
        at -= timedelta(minutes=at.minute % 15)
    locals_ = [start.astimezone(ZoneInfo(zone)) for start in starts]
    if granularity == "day":
        assert [local.date() for local in locals_] == labels
    else:
        assert [(local.date(), local.hour, local.utcoffset()) for local in locals_] == labels
    assert to_ms(starts[0]) <= span["since"]
    before = [(start - minute).astimezone(ZoneInfo(zone)) for start in starts]
    fresh = [(local.date(), local.hour, local.utcoffset()) for local in before]
    if granularity == "hour":
        assert all(old != (new.date(), new.hour, new.utcoffset()) for old, new in zip(fresh, locals_, strict=True))
    else:
        assert all(old[0] != new.date() for old, new in zip(fresh, locals_, strict=True))


def test_a_day_on_which_clocks_go_back_has_25_hours_and_one_twice() -> None:
    zone = ZoneInfo("Europe/Berlin")
    since, until = (to_ms(datetime(2026, 10, day, 0, 0, tzinfo=zone)) for day in (25, 26))
    hours = [start for start, _ in buckets(since, until, zone, Granularity.HOUR)]
    assert len(hours) == 25
    assert [hour.hour for hour in hours][1:5] == [1, 2, 2, 3]
    assert [len(quarters) for _, quarters in buckets(since, until, zone, Granularity.DAY)] == [100]


async def test_top_tools_and_top_users_are_what_sql_says(database: Database, tmp_path: Path) -> None:
    async with full(database, tmp_path, *ZONES[0]) as site:
        for period in SPANS:
            for limit in (1, 2, 10):
                span = window(site, period)
                rows = await by_hand(
                    site,
                    "SELECT json_extract(data, '$.toolName'), count(*), avg(json_extract(data, '$.durationMs')), "
                    f"avg(json_extract(data, '$.success')) FROM telemetry_events WHERE name = 'chat.tool_used' AND "
                    f"{IN_WINDOW} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {limit}",
                    **span,
                )
                told = await get(site, "top-tools", period=period, limit=limit)
                assert [(each["toolName"], each["calls"]) for each in told] == [(row[0], row[1]) for row in rows]
                assert [each["averageDurationMs"] for each in told] == pytest.approx([row[2] for row in rows])
                assert [each["successRate"] for each in told] == pytest.approx([row[3] for row in rows])
                rows = await by_hand(
                    site,
                    f"SELECT user_id, count(*), {COLUMNS[Metric.COST]}, {COLUMNS[Metric.TOKENS]} {TURNS} "
                    f"GROUP BY 1 ORDER BY 3 DESC LIMIT {limit}",
                    **span,
                )
                told = await get(site, "top-users", period=period, limit=limit)
                assert [(each["userId"], each["turns"], each["tokens"]) for each in told] == [
                    (row[0], row[1], row[3]) for row in rows
                ]
                assert [each["costUsd"] for each in told] == pytest.approx([row[2] for row in rows])
                assert all(each["name"] == f"Person {each['userId'] - 1}" for each in told)


@pytest.mark.parametrize(
    "asked", [{}, {"eventName": "chat.error"}, {"userId": 2}, {"chatId": 3}, {"userId": 1, "chatId": 3}]
)
async def test_events_come_page_by_page_newest_first(database: Database, tmp_path: Path, asked: dict[str, Any]) -> None:
    conditions = {"eventName": "name = :eventName", "userId": "user_id = :userId"}
    conditions["chatId"] = "session_id IN (SELECT id FROM sessions WHERE chat_id = :chatId)"
    where = " AND ".join([IN_WINDOW, *(conditions[key] for key in asked)])
    async with full(database, tmp_path, *ZONES[1]) as site:
        for period in SPANS:
            query = f"SELECT id FROM telemetry_events WHERE {where} ORDER BY created_at DESC, id DESC"
            ids = [row[0] for row in await by_hand(site, query, **window(site, period), **asked)]
            size = 37
            pages = [
                await get(site, "events", period=period, size=size, page=page + 1, **asked)
                for page in range(-(-len(ids) // size) + 1)
            ]
            assert [item["id"] for page in pages for item in page["items"]] == ids
            assert {(page["total"], page["pages"]) for page in pages} == {(len(ids), -(-len(ids) // size))}


async def test_an_event_is_told_with_its_figures_and_the_tenants_time(database: Database, tmp_path: Path) -> None:
    async with full(database, tmp_path, *ZONES[0], count=0) as site:
        async with database.write() as connection:
            await connection.execute(telemetry_events.delete())
            event = telemetry.ToolUsed(user_id=1, session_id=1, tool_name="draft", duration_ms=3, success=True)
            await telemetry.record(connection, event, to_ms(site.house.clock.now()))
        (told,) = (await get(site, "events"))["items"]
    assert told.pop("id")
    assert told == {
        "name": "chat.tool_used",
        "at": "2026-03-29T11:07:11+02:00",
        "userId": 1,
        "sessionId": 1,
        "chatId": 1,
        "data": {"toolName": "draft", "durationMs": 3, "success": True},
    }


async def test_an_empty_store_has_answers_too(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        site.client.headers.update(await site.program())
        told = await get(site, "overview", period="30d")
        assert (told["turns"], told["costUsd"], told["cachedShare"]) == (0, 0, None)
        series = await get(site, "timeseries", metric="turns", period="24h")
        assert [point["value"] for point in series["points"]] == [0] * len(series["points"])
        assert len(series["points"]) in (24, 25)
        assert await get(site, "top-tools") == await get(site, "top-users") == []
        assert (await get(site, "events"))["pages"] == 0


@pytest.mark.parametrize(
    ("path", "asked", "key"),
    [
        ("overview", {"period": "1y"}, "period"),
        ("overview", {"perod": "1h"}, "perod"),
        ("events", {"page": "0"}, "page"),
        ("events", {"size": "1000"}, "size"),
        ("events", {"eventName": "chat.unknown"}, "eventName"),
        ("events", {"userId": "me"}, "userId"),
        ("events", {"userId": str(2**63)}, "userId"),
        ("timeseries", {"metric": "money"}, "metric"),
        ("timeseries", {"granularity": "minute"}, "granularity"),
        ("top-tools", {"limit": "-1"}, "limit"),
    ],
)
async def test_what_cannot_be_asked_is_422_with_the_reason(
    database: Database, tmp_path: Path, path: str, asked: dict[str, str], key: str
) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        response = await site.client.get(f"{API}/{path}", params=asked, headers=await site.program())
    assert response.status_code == 422
    (reason,) = response.json()["detail"]
    assert reason["loc"] == ["query", key]
    assert reason["msg"]


def test_periods_are_those_that_are_told() -> None:
    assert {str(period): period.span.total_seconds() for period in Period} == SPANS
