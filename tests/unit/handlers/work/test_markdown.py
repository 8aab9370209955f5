"""Words in Markdown are shown as they were typed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.transports.telegram.render import render
from handlers.work.markdown import literal

SIGNS = ["[", "]", "(", ")", "\\", "$", "~~", "**", "*", "_", "`", "```", "<", ">", "|", "&amp;", "!", "^", "=", "#"]
LINES = ["- ", "+ ", "1. ", "1) ", "# ", "[x] ", "---", "===", "\n", "\n\n", " ", "    ", "\t"]
WORDS = ["a", "b ", "Zürich ", "http://a.org/b_c", "https://example.org/a_(b_c)*d?e=1&f=2 "]

texts = st.lists(st.sampled_from([*SIGNS, *LINES, *WORDS]), max_size=12).map("".join)


@given(texts)
def test_words_are_shown_as_typed_and_never_as_formatting(text: str) -> None:
    """Whatever they are made of; only white space may be set otherwise."""
    parts = render(f"x{literal(text)}x")
    assert [entity for part in parts for entity in part.entities] == []
    assert re.sub(r"\s", "", "".join(part.text for part in parts)) == re.sub(r"\s", "", f"x{text}x")


@pytest.mark.parametrize(
    "text",
    [
        "- [x] milk\n- [ ] bread",
        "It costs $5 or $6, not $x = 5$",
        "see [the page](https://example.org/a_b)",
        "https://example.org/a_b_c",
        "![cat](https://example.org/cat.png)",
        "1. one\n2) two\n# three\n=== four",
        "a &amp; b < c > d | e",
        "Notes:\n\n    deep_inside\n\tdeeper",
        r"\[a = b\] and \(c\)",
    ],
)
def test_a_line_of_markup_keeps_every_character(text: str) -> None:
    (part,) = render(literal(text))
    assert part.text.replace("\u00a0", " ") == text.replace("\t", "    ")
    assert part.entities == ()
