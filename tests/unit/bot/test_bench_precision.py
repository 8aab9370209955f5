"""`merk bench precision` judges as the benchmark's rules say, and says what is wrong with a folder."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from bench import precision
from bot.errors import CommandError


def belief(name: str, content: str, kind: str = "entity", **more: Any) -> dict[str, Any]:
    usual = {"aliases": [], "scope": ["domain:code"], "user_id": "test-user", "pinned": False, "superseded_by": None}
    return {"_id": name, "type": kind, "canonical_name": name, "content": content, **usual, **more}


def case(name: str, query: str, only: list[str], scope: str = "domain:code", **more: Any) -> dict[str, Any]:
    expect = {"relevantBeliefs": {"shouldOnlyInclude": only}, **more.pop("expect", {})}
    return {"caseId": name, "category": "made up", "query": query, "scope": [scope], "expect": expect, **more}


BELIEFS = [
    belief("zebra feeding", "The zebra is fed at noon."),
    belief("old zebra feeding", "The zebra is fed at nine.", superseded_by="zebra feeding"),
    belief("piano", "The piano stands in the hall.", scope=["domain:music"]),
    belief("stable", "Who paints the stable of the zebra?", "open_question"),
]
CASES = [
    case(
        "found",
        "What about the zebra feeding and the stable?",
        ["zebra feeding"],
        expect={"openQuestions": {"mustInclude": ["stable"]}},
    ),
    case("elsewhere", "Where does the piano stand?", []),
    case("there", "Where does the piano stand?", ["piano"], "domain:music"),
    case("stranger", "When is the zebra fed?", [], userId="somebody"),
    case("not ours", "Who am I?", ["piano"]) | {"category": precision.LEFT_OUT[0]},
    case("too little", "Who am I?", [], budget={"maxBeliefs": 1}),
]


def write(folder: Path, beliefs: object, cases: object) -> None:
    for name, content in zip(precision.FILES, (beliefs, cases), strict=True):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


async def test_what_is_shown_beyond_what_was_asked_for_is_counted(tmp_path: Path) -> None:
    write(tmp_path, BELIEFS, CASES)
    result = cast("dict[str, Any]", await precision.measure(tmp_path))
    assert (result["cases"], result["left_out"], result["failed"]) == (4, 2, {})
    assert (result["active_passed"], result["active"], result["empty_passed"], result["empty"]) == (2, 2, 2, 2)
    assert (result["precision"], result["recall"]) == (1.0, 1.0)
    assert "4/4" in precision.table(result)


def test_a_folder_without_the_benchmark_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot be read .* name the folder with beliefs"):
        precision.load(tmp_path)
    write(tmp_path, [{"_id": 1}], [])
    with pytest.raises(CommandError, match="does not hold PrecisionMemBench"):
        precision.load(tmp_path)
