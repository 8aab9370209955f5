"""Health is the age of the last contact, and /metrics counts each event once."""

import json
import re
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.config import Web
from bot.web import health
from memory import telemetry
from memory.ports import Embedder
from memory.recall.evidence import Evidence
from memory.storage import telemetry as events
from memory.storage.database import Database
from memory.storage.tables import evidence
from tests.fakes.embedder import WordEmbedder
from tests.fakes.house import House, house
from tests.fakes.transport import RecordingTransport
from tests.fakes.website import Website, website

ROOT = Path(__file__).parents[4]


def age(opened: House, seconds: float | None) -> None:
    """Let the last contact be so long ago."""
    transport = opened.transport
    assert isinstance(transport, RecordingTransport)
    transport.contact_age = seconds


def parts(told: httpx.Response) -> dict[str, Any]:
    return {part["name"]: part for part in told.json()["parts"]}


async def test_p40_a_network_that_has_gone_silent_is_503(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", -1.0)
    async with house(database, tmp_path) as opened, website(opened) as site:
        await opened.memory.open()
        age(opened, 3)
        told = await site.client.get("/healthz")
        assert (told.status_code, told.json()["status"]) == (200, "ok")
        assert parts(told)["fake"]["ageSeconds"] == 3
        assert (await site.client.get("/readyz")).json() == {"ready": True}
        age(opened, 121)
        told = await site.client.get("/healthz")
        assert (told.status_code, told.json()["status"]) == (503, "stale")
        assert (await site.client.get("/readyz")).status_code == 503


async def test_before_the_first_contact_it_is_well_but_not_ready(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        age(opened, None)
        assert (await site.client.get("/healthz")).status_code == 200
        assert (await site.client.get("/readyz")).status_code == 503


async def test_what_costs_only_quality_is_named_and_stays_200(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        age(opened, 1)
        await opened.memory.close()
        told = await site.client.get("/healthz")
    assert {"store", "embedder", "index", "learning", "disk", "summaries", "fake"} <= parts(told).keys()
    assert told.status_code == 200


async def test_the_age_of_the_last_summary_is_told(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", -1.0)
    async with house(database, tmp_path) as opened, website(opened) as site:
        assert parts(await site.client.get("/healthz"))["summaries"]["ageSeconds"] is None
        await happen(site, telemetry.Summarised(by="model", messages=2))
        opened.clock.advance(minutes=5)
        assert parts(await site.client.get("/healthz"))["summaries"]["ageSeconds"] == 300


async def happen(site: Website, *events: telemetry.Event) -> None:
    async with site.house.database.write() as connection:
        await telemetry.record_all(connection, events, round(site.house.clock.now().timestamp() * 1000))


def samples(text: str) -> dict[str, float]:
    """Name and labels -> value."""
    return {
        f"{each.name}{sorted(each.labels.items())}": each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


async def test_metrics_count_each_event_once_from_the_start_on(database: Database, tmp_path: Path) -> None:
    failed = telemetry.TurnFailed(failure="rate")
    async with house(database, tmp_path, "Good morning.") as opened:
        async with database.write() as connection:
            await telemetry.record(connection, failed, 5)
        async with website(opened) as site:
            await opened.say("hello there")
            await happen(site, failed, failed)
            assert (await site.client.get("/metrics")).status_code == 200
            found = samples((await site.client.get("/metrics")).text)
            assert found["merk_errors_total[('failure', 'rate')]"] == 2
            assert found["merk_turns_total[('outcome', 'answered')]"] == 1
            model = "('gen_ai_operation_name', 'chat'), ('gen_ai_provider_name', 'scripted')"
            model += ", ('gen_ai_request_model', 'scripted')"
            assert found[f"gen_ai_client_operation_duration_seconds_count[{model}]"] == 1
            assert found[f"gen_ai_client_token_usage_sum[{model}, ('gen_ai_token_type', 'output')]"] == 2


async def test_metrics_go_on_when_everything_counted_was_erased(database: Database, tmp_path: Path) -> None:
    failed = telemetry.TurnFailed(failure="rate")
    async with house(database, tmp_path) as opened, website(opened) as site:
        await happen(site, failed, failed, failed)
        await site.client.get("/metrics")
        async with database.write() as connection:
            await events.prune(connection, 2**60, 100, 0)
        await happen(site, failed)
        found = samples((await site.client.get("/metrics")).text)
    assert found["merk_errors_total[('failure', 'rate')]"] == 4


@pytest.mark.parametrize(
    ("client", "headers", "proxy", "status"),
    [
        ("127.0.0.1", {}, (), 200),
        ("203.0.113.9", {}, (), 401),
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9"}, (), 401),
        ("127.0.0.1", {}, ("127.0.0.1",), 401),
    ],
)
async def test_metrics_are_open_to_this_machine_alone(
    database: Database, tmp_path: Path, client: str, headers: dict[str, str], proxy: tuple[str, ...], status: int
) -> None:
    web = Web(enabled=True, trusted_proxy=proxy)
    async with house(database, tmp_path) as opened, website(opened, client=client, web=web) as site:
        assert (await site.client.get("/metrics", headers=headers)).status_code == status
        assert (await site.client.get("/metrics", headers=headers | await site.program())).status_code == 200
        other = await site.program(["manage:users"])
        ungranted = await site.client.get("/metrics", headers=headers | other)
        assert ungranted.status_code == (200 if status == 200 else 403)


async def test_the_grafana_dashboard_asks_for_metrics_that_there_are(database: Database, tmp_path: Path) -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana.json").read_text(encoding="utf-8"))
    asked = {target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])}
    async with house(database, tmp_path) as opened, website(opened) as site:
        told = (await site.client.get("/metrics")).text
    names = set(re.findall(r"^# TYPE (\S+) ", told, re.MULTILINE))
    there = names | {f"{name}{end}" for name in names for end in ("_bucket", "_sum", "_count")}
    used = {name for each in asked for name in re.findall(r"\b(?:merk|gen_ai)_\w+(?=[{\[])", each)}
    assert used
    assert used <= there


async def test_a_change_of_embedder_is_counted(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", -1.0)
    async with house(database, tmp_path) as opened, website(opened) as site:
        await opened.say("The fence needs paint.")
        await Evidence(database, cast("Embedder", WordEmbedder())).catch_up()
        assert "embedding" not in parts(await site.client.get("/healthz"))
        async with database.write() as connection:
            await connection.execute(evidence.update().values(indexed_as="tei/m:1024"))
        await opened.memory.look()
        told = parts(await site.client.get("/healthz"))["embedding"]
    assert (told["ok"], told["done"], told["total"]) == (False, 0, 2)
    assert "tei/m:1024 cannot be asked any more" in told["detail"]
