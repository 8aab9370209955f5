"""The texts under which a session is found, beside its messages."""

from memory.kinds.summaries.summary import Summary
from memory.kinds.summaries.views import views


def test_each_sentence_of_the_summary_is_a_view() -> None:
    summary = Summary("They flew to Lisbon. It rained all week.", learned="The hotel is small.")
    assert views(summary) == ["They flew to Lisbon.", "It rained all week.", "The hotel is small."]


def test_a_summary_of_few_words_is_a_view_all_the_same() -> None:
    assert views(Summary("Lisbon!")) == ["Lisbon!"]


def test_there_are_only_so_many() -> None:
    assert len(views(Summary(" ".join(f"Sheep number {i} jumps." for i in range(300))))) == 16
