"""Buttons without buttons: marks, legends, and what a reaction or a typed number presses, over restarts."""

from pathlib import Path

import pytest

from bot.transports.base import Key
from bot.transports.matrix.keys import Cards, legend, symbols, typed
from handlers.types import Place

HERE, THREAD = Place("matrix", "!r"), Place("matrix", "!r", "$root")


def row(*labels: str) -> tuple[tuple[Key, ...], ...]:
    return (tuple(Key(label, f"token-{label}") for label in labels),)


def test_thumbs_stand_for_themselves_where_both_labels_have_one() -> None:
    assert symbols(row("👍 Yes", "👎 No")) == ("👍", "👎")
    assert legend(row("👍 Yes", "👎 No")) == "👍 Yes\n👎 No"
    assert symbols(row("👍 Yes", "No"))[0] == "1️⃣"


def test_more_than_ten_keys_are_typed() -> None:
    marks = symbols(row(*(f"key {n}" for n in range(12))))
    assert marks[9:] == ("🔟", "11.", "12.")


@pytest.mark.parametrize(
    ("text", "mark"),
    [("1", "1⃣"), (" 2. ", "2⃣"), ("3️⃣", "3⃣"), ("10", "🔟"), ("11", "11"), ("👍🏽", "👍")]
    + [(other, "") for other in ("0", "100", "1 egg", "one", "", "²", "٣", "-1", "1.5")],
)
def test_only_a_number_alone_is_a_press(text: str, mark: str) -> None:
    assert typed(text) == mark


def test_cards_outlive_a_restart_and_hold_no_words(tmp_path: Path) -> None:
    Cards(tmp_path).put("$card", HERE, row("Forget that Bruno is a dog", "No"))
    kept = (tmp_path / "cards.json").read_text()
    assert "Bruno" not in kept.replace("token-Forget that Bruno is a dog", "")
    assert (tmp_path / "cards.json").stat().st_mode & 0o777 == 0o600
    cards = Cards(tmp_path)
    assert cards.token("$card", "2️⃣") == cards.token("$card", "2⃣") == "token-No"
    assert cards.token("$card", "❤️") is None
    assert cards.token("$other", "1️⃣") is None


def test_a_number_presses_the_newest_card_of_its_place_until_an_answer_comes(tmp_path: Path) -> None:
    cards = Cards(tmp_path)
    cards.put("$old", HERE, row("a"))
    cards.put("$elsewhere", THREAD, row("b"))
    cards.put("$new", HERE, row("c"))
    assert [event for event, _ in cards.tokens(HERE, "1⃣")] == ["$new", "$old"]
    cards.outdate(HERE)
    assert cards.tokens(HERE, "1⃣") == []
    assert cards.token("$new", "1️⃣") == "token-c"
    assert [event for event, _ in cards.tokens(THREAD, "1⃣")] == ["$elsewhere"]


def test_keys_go_with_an_edit_or_the_message(tmp_path: Path) -> None:
    cards = Cards(tmp_path)
    cards.put("$card", HERE, row("a"))
    cards.put("$card", HERE, ())
    assert cards.token("$card", "1️⃣") is None
    cards.put("$card", HERE, row("a"))
    cards.remove("$card")
    assert Cards(tmp_path).token("$card", "1️⃣") is None
