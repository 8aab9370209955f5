"""Summaries without a model: the person's own sentences, word for word."""

import pytest

from memory.kinds.summaries.extract import LATEST, extract
from memory.kinds.summaries.transcript import Entry, entries, first_words, pieces
from memory.types import Message, Origin
from tests.fakes.clock import FrozenClock
from tests.fakes.embedder import WordEmbedder


def _lines(*texts: str) -> list[Entry]:
    return [Entry(i % 2 == 0, "Ada" if i % 2 == 0 else "Merk", text) for i, text in enumerate(texts)]


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        "My sister Anna moves to Lisbon in May.",
        "Meine Schwester Anna zieht im Mai nach Lissabon.",
        "Моя сестра Анна в мае переезжает в Лиссабон.",
    ],
)
async def test_statements_of_the_person_come_first(said: str, *, is_down: bool) -> None:
    """With and without the embedder, in each language, before questions and answers."""
    embedder = WordEmbedder()
    embedder.down = is_down
    lines = _lines("Hi!", "Hello, how may I help with Lisbon?", said, "Good luck to Anna in Lisbon!", "Thanks", "OK")
    made = await extract(lines, embedder)
    assert made is not None
    assert made.summary.text.startswith(said)
    assert made.made_by == "extractive"


async def test_all_else_worth_finding_is_in_the_notes() -> None:
    words = ["alpha", "bravo", "cello", "delta", "easel", "fjord", "gamma", "hotel"]
    made = await extract(_lines(*(f"The {word} project needs work" for word in words)), WordEmbedder())
    assert made is not None
    together = f"{made.summary.text} {made.summary.notes}"
    assert all(word in together for word in words)


async def test_small_talk_leaves_nothing() -> None:
    assert await extract(_lines("Hi!", "Hello!", "Thanks", "Bye"), WordEmbedder()) is None


async def test_a_repeat_is_kept_once() -> None:
    made = await extract(_lines("Buy oat milk today.", "OK", "Buy oat milk today!", "OK"), WordEmbedder())
    assert made is not None
    assert made.summary.text == "Buy oat milk today."


def test_a_title_is_how_the_person_began() -> None:
    assert first_words([Entry(False, "Merk", "Welcome"), *_lines("Where is the key?", "There")]) == "Where is the key?"


def test_pieces_hold_everything_and_are_bounded() -> None:
    lines = _lines(*(f"line {i} {'x' * 50}" for i in range(30)))
    cut = list(pieces(lines, 300))
    assert [entry.text for piece in cut for entry in piece] == [entry.text for entry in lines]
    assert all(sum(len(str(entry)) for entry in piece) <= 300 for piece in cut)


def test_foreign_words_are_left_out() -> None:
    now = FrozenClock().now()
    messages = [Message(i, 1, "user", "Ada", "words", origin, None, now) for i, origin in enumerate(Origin)]
    assert len(entries(messages)) == 1


async def test_of_a_chat_of_years_the_latest_is_looked_at() -> None:
    lines = _lines("I sold the old violin.", *("The garden needs a new fence." for _ in range(LATEST)))
    made = await extract(lines, WordEmbedder())
    assert made is not None
    assert made.summary.text == "The garden needs a new fence."
    assert made.title == "I sold the old violin"
