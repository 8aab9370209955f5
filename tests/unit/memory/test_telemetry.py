"""Telemetry holds ids and figures only, and its sums are exact."""

import random
from typing import Any, cast

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import telemetry
from memory.storage import telemetry as events
from memory.storage.database import Database
from memory.storage.tables import telemetry_events
from memory.storage.telemetry import QUARTER_MS, Sums

NAMES = ("chat.turn_completed", "chat.tool_used", "chat.error")


async def test_an_event_is_appended_with_its_figures(database: Database) -> None:
    async with database.write() as connection:
        event = telemetry.Summarised(session_id=7, by="model", messages=3)
        await telemetry.record(connection, event, 5)
        (row,) = (await connection.execute(sa.select(telemetry_events))).mappings()
    assert (row["name"], row["data"], row["created_at"]) == ("memory.summary", {"by": "model", "messages": 3}, 5)
    assert (row["user_id"], row["session_id"]) == (None, 7)


@pytest.mark.parametrize("wrong", ["my dog is called Bruno", "", "a" * 121, "собака", None, 3])
def test_words_are_refused(wrong: Any) -> None:
    """A code is ASCII without a space; nothing else can be stored."""
    with pytest.raises(ValueError, match="no text"):
        telemetry.TurnFailed(failure=wrong)


@pytest.mark.parametrize("wrong", [-1, "3", 1.5, True, None, 2**63])
def test_a_figure_is_a_count(wrong: Any) -> None:
    with pytest.raises(ValueError, match="no text"):
        telemetry.Forgot(facts=wrong, messages=0, summaries=0)


def test_a_choice_is_one_of_those_there_are() -> None:
    with pytest.raises(ValueError, match="no text"):
        telemetry.ApprovalDecided(tool_name="draft", decision=cast("Any", "maybe"))


@pytest.mark.parametrize("name", ["hf.co/some one/model:Q4", "", "модель", "x" * 500])
def test_what_a_server_calls_its_model_becomes_a_code(name: str) -> None:
    assert telemetry.TurnFailed(failure=telemetry.code(name)).data()["failure"]


def some_events(chance: random.Random, count: int) -> list[tuple[telemetry.Event, int]]:
    found: list[tuple[telemetry.Event, int]] = []
    for _ in range(count):
        event: telemetry.Event
        match chance.randint(0, 2):
            case 0:
                event = telemetry.TurnCompleted(
                    user_id=chance.randint(1, 3),
                    model="m",
                    outcome="answered",
                    tokens_in=chance.randint(0, 9),
                    tokens_out=chance.randint(0, 9),
                    tokens_cache_read=chance.randint(0, 9),
                    tokens_cache_write=chance.randint(0, 9),
                    cost_nano_usd=chance.choice([None, 7]),
                    duration_ms=chance.randint(0, 99),
                    first_token_ms=chance.choice([None, 0, 5]),
                    recall_hits=chance.randint(0, 3),
                    tool_calls=0,
                )
            case 1:
                tool = chance.choice(["a", "b"])
                event = telemetry.ToolUsed(tool_name=tool, duration_ms=3, success=chance.random() < 0.5)
            case _:
                event = telemetry.TurnFailed(failure=chance.choice(["bug", "rate"]))
        found.append((event, chance.randint(0, 12 * QUARTER_MS)))
    return found


async def write(database: Database, written: list[tuple[telemetry.Event, int]]) -> None:
    async with database.write() as connection:
        for event, at in written:
            await telemetry.record(connection, event, at)


async def fold_all(database: Database, steps: int = 1000) -> None:
    for _ in range(steps):
        async with database.write() as connection:
            if not await events.fold(connection, database, 0):
                return


BY_HAND = """
SELECT {by}, count(*), sum(coalesce(json_extract(data, '$.success'), 0)),
  sum(json_extract(data, '$.firstTokenMs') IS NOT NULL),
  sum(coalesce(json_extract(data, '$.durationMs'), 0)), sum(coalesce(json_extract(data, '$.firstTokenMs'), 0)),
  sum(coalesce(json_extract(data, '$.tokensIn'), 0)), sum(coalesce(json_extract(data, '$.tokensOut'), 0)),
  sum(coalesce(json_extract(data, '$.tokensCacheRead'), 0)), sum(coalesce(json_extract(data, '$.tokensCacheWrite'), 0)),
  sum(coalesce(json_extract(data, '$.costNanoUsd'), 0)), sum(coalesce(json_extract(data, '$.recallHits'), 0))
FROM telemetry_events
WHERE name IN ('chat.turn_completed', 'chat.tool_used', 'chat.error') AND created_at >= :since AND created_at < :until
GROUP BY 1
"""
LABEL = (
    "CASE name WHEN 'chat.turn_completed' THEN CAST(user_id AS TEXT) "
    "WHEN 'chat.tool_used' THEN json_extract(data, '$.toolName') ELSE json_extract(data, '$.failure') END"
)
SIDES = {"name": "name", "quarter": "created_at / 900000 * 900000", "label": LABEL}


async def check_sums(database: Database, since: int, until: int) -> None:
    async with database.search() as connection:
        for by, written in SIDES.items():
            rows = await connection.execute(sa.text(BY_HAND.format(by=written)), {"since": since, "until": until})
            by_hand = {row[0]: Sums(*row[1:]) for row in rows.all()}
            assert await events.sums(connection, NAMES, since, until, cast("Any", by)) == by_hand


@given(
    seed=st.integers(0, 2**32),
    folded=st.integers(0, 60),
    since=st.integers(0, 12 * QUARTER_MS),
    span=st.integers(0, 12 * QUARTER_MS),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_sums_are_those_of_the_events_whatever_is_folded(
    database: Database, seed: int, folded: int, since: int, span: int
) -> None:
    """Folded or young, whole quarter or cut one: each event counts once."""
    written = some_events(random.Random(seed), 60)
    async with database.write() as connection:
        await events.erase(connection, sa.true(), 0)
    await write(database, written[:folded])
    await fold_all(database)
    await write(database, written[folded:])
    await check_sums(database, since, since + span)


async def test_a_prune_takes_whole_quarters_and_leaves_the_rest_exact(database: Database) -> None:
    written = some_events(random.Random(3), 200)
    await write(database, written)
    await fold_all(database)
    before = 6 * QUARTER_MS + 5
    async with database.read() as connection:
        old = await events.count_before(connection, before)
    gone = 0
    for _ in range(100):
        async with database.write() as connection:
            gone += await events.prune(connection, before, 7, 0)
    for _ in range(100):
        async with database.write() as connection:
            await events.prune_quarters(connection, before, 7)
    assert gone == old == sum(at < 6 * QUARTER_MS for _, at in written)
    await check_sums(database, 0, 13 * QUARTER_MS)


async def test_after_everything_went_new_events_count_though_ids_come_again(database: Database) -> None:
    await write(database, some_events(random.Random(1), 50))
    await fold_all(database)
    async with database.write() as connection:
        await events.prune(connection, 100 * QUARTER_MS, 1000, 0)
        await events.prune_quarters(connection, 100 * QUARTER_MS, 1000)
    await write(database, some_events(random.Random(2), 20))
    await check_sums(database, 0, 13 * QUARTER_MS)
    await fold_all(database)
    await check_sums(database, 0, 13 * QUARTER_MS)


async def test_an_erased_persons_events_are_in_no_sum(database: Database) -> None:
    await write(database, some_events(random.Random(5), 80))
    await fold_all(database)
    async with database.write() as connection:
        gone = await events.erase(connection, telemetry_events.c.user_id == 2, 0)
    assert gone > 0
    await check_sums(database, 0, 13 * QUARTER_MS)
    await fold_all(database)
    await check_sums(database, 0, 13 * QUARTER_MS)
