"""docs/telemetry.md tells of every event, metric, question and age that there is, and of no other."""

import inspect
import re
from pathlib import Path

from bot.config import RetentionSection
from bot.web.metrics import Metrics
from memory.storage.database import Database
from memory.telemetry import EVENTS, keys_of
from tests.fakes.house import house
from tests.fakes.website import website

PAGE = (Path(__file__).parents[4] / "docs" / "telemetry.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return lines[1:]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_table_of_events_is_the_registry() -> None:
    told = {codes(name)[0]: (codes(data), when) for name, data, when in rows("Events")}
    assert told == {
        name: (keys_of(kind), " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split()))
        for name, kind in EVENTS.items()
    }


async def test_the_table_of_metrics_is_the_registry(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        metrics: Metrics = site.site.state.metrics
        there = {
            f"{family.name}_total" if family.type == "counter" else family.name: family.documentation
            for family in metrics.registry.collect()
        }
    assert {codes(name)[0]: what for name, what in rows("Metrics")} == there


async def test_the_table_of_questions_is_the_schema(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        paths = site.site.openapi()["paths"]
    asked = {
        path.rpartition("/")[2]: {each["name"] for each in methods["get"]["parameters"]}
        for path, methods in paths.items()
        if path.startswith("/api/ai/telemetry/")
    }
    assert {codes(path)[0]: set(codes(parameters)) for path, parameters, _ in rows("API")} == asked


def test_the_table_of_ages_is_the_settings() -> None:
    told = {codes(setting)[0]: default for setting, default, _ in rows("Retention")}
    ages = {f"retention.{name}": field.default for name, field in RetentionSection.model_fields.items()}
    ages["telemetry.retention_days"] = 90
    assert told == {name: "for ever" if days is None else str(days) for name, days in ages.items()}
