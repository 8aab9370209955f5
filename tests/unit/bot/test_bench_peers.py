"""`merk bench peers` counts everybody alike, and says what went wrong where it cannot measure."""

import sys
from pathlib import Path
from typing import Any

import pytest

from bench.peers import compare, environment
from bench.recall_data import ADVERSARIAL, Asked
from bot.errors import CommandError

ASKED = [
    (1, Asked("Who?", frozenset({"D1:1"}), 4)),
    (1, Asked("What?", frozenset({"D1:2", "D1:3"}), 1)),
    (1, Asked("Wrong?", frozenset({"D1:9"}), ADVERSARIAL)),
]


def system(*rankings: list[str], ms: float = 10.0) -> dict[str, Any]:
    return {"rankings": list(rankings), "ms": [ms] * len(rankings)}


def test_recall_is_the_share_of_the_evidence_among_the_first() -> None:
    found = compare.figures(system(["D1:1"], ["D1:7"] * 5 + ["D1:3"], ["D1:9"]), ASKED)
    assert found["turn"] == {"recall@5": 0.5, "recall@10": 0.75, "recall@20": 0.75}
    assert found["latency_ms"] == {"p50": 10.0, "p99": 10.0}


def test_ratios_say_how_much_more_is_found_and_how_much_longer_it_takes() -> None:
    figures = {
        "merk": compare.figures(system(["D1:1"], ["D1:2", "D1:3"], [], ms=5.0), ASKED),
        "chroma": compare.figures(system(["D1:1"], [], [], ms=20.0), ASKED),
    }
    assert compare.ratios(figures) == {"chroma": {"recall@10": 2.0, "speed": 4.0}}


async def test_a_peer_that_fails_is_said_with_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("raise SystemExit('no such thing')")
    monkeypatch.setattr(environment, "_WORKER", worker)
    python = Path(sys.executable)
    with pytest.raises(CommandError, match="no such thing"):
        await environment.run_worker(python, tmp_path / "job", tmp_path / "result", tmp_path)
