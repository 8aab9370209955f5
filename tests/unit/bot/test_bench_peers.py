"""`merk bench peers` counts everybody alike, and says what went wrong where it cannot measure."""

import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bench.peers
from bench import recall
from bench.peers import compare, environment, others
from bench.recall_data import ADVERSARIAL, Asked
from bot.cli import app
from bot.errors import CommandError
from memory.recall.finder import Finder
from tests.fakes.embedder import WordEmbedder

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


def measured(ms: float) -> dict[str, Any]:
    found = {
        name: compare.figures(system(["D1:1"], ["D1:2"], [], ms=of), ASKED)
        for name, of in {"merk": 4.0, "mem0": ms, "chroma": ms, "bm25": 1.0}.items()
    }
    return found | {"merk_over": compare.ratios(found)}


def test_the_table_has_a_block_for_the_files_alone_and_one_beside_other_people() -> None:
    alone: dict[str, Any] = {"questions": 2, "messages": 9, "embedder": "words"} | measured(8.0)
    alone["merk"]["indexed_per_second"] = 512.0
    told = compare.table(alone)
    assert told.splitlines()[0] == "2 questions, 9 messages, words"
    assert "2.00 x" in told
    assert "512.0" in told
    assert "beside" not in told
    both = compare.table(alone | {"beside": {"messages": 1000, "people": 2} | measured(48.0)})
    assert both.startswith(told)
    added = both[len(told) :]
    assert "beside 1000 messages of 2 other people" in added
    assert "12.00 x" in added
    assert "512.0" not in added


async def test_other_peoples_messages_are_the_same_in_every_run_and_go_to_everybody_alike() -> None:
    around = await others.make(WordEmbedder(), 501)
    again = await others.make(WordEmbedder(), 501)
    assert around.texts == again.texts
    assert np.array_equal(around.vectors, again.vectors)
    assert np.allclose(np.linalg.norm(around.vectors, axis=1), 1, atol=1e-3)
    assert around.people == 2
    rows = around.rows()
    assert [row["owner"] for row in rows] == ["u0"] * 500 + ["u1"]
    assert len({row["turn"] for row in rows}) == 501
    assert rows[500]["text"] == f"Person 1: {around.texts[500]}"


async def test_nobody_is_beside_the_files_where_none_are_wanted() -> None:
    around = await others.make(WordEmbedder(), 0)
    assert (len(around), around.people, around.rows()) == (0, 0, [])


async def test_in_merk_other_people_are_indexed_each_with_the_words_and_the_vector_that_were_given() -> None:
    embedder = WordEmbedder()
    around = await others.make(embedder, 520)
    async with recall.store(embedder) as (database, evidence, _):
        await others.put(database, embedder, around)
        assert await evidence.behind() == 0
        finder = Finder(evidence)
        question, found = await finder.words(["u1"], around.texts[510], date(2026, 12, 1))
        ranked = await finder.rank(question, found, around.vectors[510], asker=0)
    assert len(found.shelf) == 20
    assert any(10 in posting.whose for word in found.hits for posting in word)
    assert ranked.cosines is not None
    assert int(np.argmax(ranked.cosines)) == 10


@pytest.mark.parametrize(("words", "beside"), [([], 400_000), (["--beside", "3000"], 3000), (["--beside", "0"], 0)])
def test_how_many_are_beside_is_an_option(words: list[str], beside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, int]] = []

    async def measure(data: Path, count: int) -> dict[str, Any]:
        asked.append((data, count))
        return {"questions": 2, "messages": 9, "embedder": "words"} | measured(8.0)

    monkeypatch.setattr(bench.peers, "measure", measure)
    done = CliRunner().invoke(app, ["bench", "peers", "--data", "talks.json", *words])
    assert done.exit_code == 0
    assert asked == [(Path("talks.json"), beside)]


def test_fewer_than_none_are_refused() -> None:
    done = CliRunner().invoke(app, ["bench", "peers", "--data", "talks.json", "--beside", "-1"])
    assert done.exit_code == 2


async def test_a_peer_that_fails_is_said_with_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("raise SystemExit('no such thing')")
    monkeypatch.setattr(environment, "_WORKER", worker)
    python = Path(sys.executable)
    with pytest.raises(CommandError, match="no such thing"):
        await environment.run_worker(python, tmp_path / "job", tmp_path / "result", tmp_path)
