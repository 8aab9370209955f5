"""The difference of two texts: nothing lost, readable on a phone."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bot.transports.telegram.render import render
from handlers.work.diffs import MAX_PAIRS, difference, parts

words = st.lists(
    st.sampled_from(["be", "brief", "kind.", "- one", "\n", "\n\n", "  ", " ", "*a*", "1.", "ß"]), max_size=30
)
texts = words.map(" ".join) | words.map("".join) | st.text(max_size=80)


@given(texts, texts)
def test_both_texts_can_be_made_of_the_parts(old: str, new: str) -> None:
    found = parts(old, new)
    assert "".join(part.text for part in found if part.kind != "new") == old
    assert "".join(part.text for part in found if part.kind != "gone") == new
    assert all(part.text for part in found)


@given(texts, texts)
def test_nothing_is_shown_exactly_where_nothing_changed(old: str, new: str) -> None:
    assert old != new or difference(old, new) == ""
    assert difference(old, old) == ""
    if old.split() != new.split():
        assert difference(old, new) != ""


def test_gone_words_are_struck_and_new_ones_bold() -> None:
    assert difference("Answer me in English, please.", "Answer me in German, please.") == (
        "Answer me in ~~English,~~ **German,** please."
    )


def test_what_is_appended_is_bold_alone() -> None:
    assert difference("Be brief.", "Be brief.\nNo lists.\nNever.") == "Be brief.\n**No lists.**\n**Never.**"


def test_what_is_taken_away_is_struck_alone() -> None:
    assert difference("Be brief.\nNo lists.", "Be brief.") == "Be brief.\n~~No lists.~~"


def test_texts_without_much_in_common_are_shown_one_after_the_other() -> None:
    assert difference("Talk like a pirate to me", "Be a serious and brief clerk") == (
        "~~Talk like a pirate to me~~ **Be a serious and brief clerk**"
    )


def test_far_context_is_shortened_and_near_context_is_not() -> None:
    far = "It was a long day by the sea. " * 20
    shown = difference(f"{far}The end is near. {far}", f"{far}The end is far. {far}")
    assert "The end is ~~near.~~ **far.** It was" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) < 200


def test_the_texts_own_markup_is_shown_as_typed() -> None:
    (shown,) = render(difference("- say *please*\n# now", "- say *please*, my_friend\n# now"))
    assert shown.text == "- say *please* *please*, my_friend\n# now"


def test_telegram_shows_the_marks_as_marks() -> None:
    (shown,) = render(difference("Answer me in English, please.", "Answer me in German, please."))
    marked = [(each.type, shown.text[each.offset : each.offset + each.length]) for each in shown.entities]
    assert marked == [("strikethrough", "English,"), ("bold", "German,")]


def test_long_repetitive_texts_are_not_compared_word_by_word() -> None:
    many = int(MAX_PAIRS**0.5) + 10
    shown = difference("la " * many + "end", "la " * many + "fin")
    assert re.fullmatch(r"~~la .* end~~ \*\*la .* fin\*\*", shown)
