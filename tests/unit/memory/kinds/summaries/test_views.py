"""The texts under which a session is found."""

from memory.kinds.summaries.summary import Summary
from memory.kinds.summaries.views import views
from memory.language.text import MARK
from memory.types import Message, Origin
from tests.fakes.clock import FrozenClock

NOW = FrozenClock().now()


def _said(role: str, text: str, origin: Origin = Origin.TYPED) -> Message:
    return Message(1, 1, role, "Ada", text, origin, None, NOW)


def test_each_sentence_of_the_summary_and_of_the_person_is_a_view() -> None:
    summary = Summary("They flew to Lisbon. It rained all week.", learned="The hotel is small.")
    messages = [
        _said("user", f"Hi! The hotel was too small. {MARK}"),
        _said("assistant", "A long answer about hotels."),
        _said("user", "Somebody else's words.", Origin.FORWARDED),
    ]
    assert views(summary, messages) == [
        "They flew to Lisbon.",
        "It rained all week.",
        "The hotel is small.",
        "The hotel was too small.",
    ]


def test_a_summary_of_few_words_is_a_view_all_the_same() -> None:
    assert views(Summary("Lisbon!"), []) == ["Lisbon!"]


def test_the_latest_sentences_stay_where_there_are_many() -> None:
    found = views(Summary("They counted sheep."), [_said("user", f"Sheep number {i} jumps.") for i in range(300)])
    assert len(found) == 80
    assert found[0] == "They counted sheep."
    assert found[-1] == "Sheep number 299 jumps."
