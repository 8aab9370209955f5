"""Cutting rendered text into messages: whole, in order, within Telegram's limits, whatever the text (P34)."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.transports.telegram.markup import to_rich
from bot.transports.telegram.render import Part, plain, render, render_preview
from tests.unit.bot.transports.telegram.tdlib import assert_telegram_takes, covered, long_answer, shown, squeezed


def test_p34_a_long_answer_arrives_whole_and_formatted() -> None:
    """12,000 characters with fences, tables, emoji and links: few parts, no block cut, no word lost."""
    markdown = long_answer()
    parts = render(markdown)
    assert len(markdown) > 12_000
    assert len(parts) <= 5
    for part in parts:
        assert_telegram_takes(part)
    assert squeezed(*(part.text for part in parts)) == squeezed(to_rich(markdown).text)
    found = [pair for part in parts for pair in shown(part)[1]]
    for n in range(30):
        assert ("bold", f"bold {n}") in found
        assert ("text_link", f"link {n}") in found
        assert ("code", f"code {n}") in found
        code = f'def f_{n}(x: list[str]) -> str:\n    return "<b>" + x[0] * 2 + "&lt;"  # {"y" * 100}'
        assert ("pre", code) in found
        assert any(kind == "pre" and f"a{n}" in text and "Key" in text for kind, text in found)


def test_p34_code_longer_than_a_message_goes_on_as_code() -> None:
    """Each part is code of the same language, cut between lines, and its indentation survives."""
    lines = [f"    line_{n} = '{'z' * (n % 70)}'" for n in range(400)]
    parts = render("Look:\n\n```python\n" + "\n".join(lines) + "\n```\nDone.")
    for part in parts:
        assert_telegram_takes(part)
    codes = [covered(part, entity) for part in parts for entity in part.entities]
    assert "\n".join(codes).split("\n") == lines
    assert {entity.language for part in parts for entity in part.entities} == {"python"}


def test_p34_formatting_over_a_cut_is_in_both_parts() -> None:
    """A link and a quote longer than a message go on in the next."""
    for markdown, kind in [(f"[{'word ' * 2000}](https://x.y)", "text_link"), ("> " + "word " * 2000, "blockquote")]:
        parts = render(markdown)
        assert len(parts) == 3
        for part in parts:
            assert_telegram_takes(part)
            assert [(entity.type, covered(part, entity)) for entity in part.entities] == [(kind, part.text)]


@pytest.mark.parametrize("unit", ["x", "😀", "👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", "👍🏽", "字", "क्षि"])
def test_p34_one_endless_line_is_cut_between_graphemes(unit: str) -> None:
    """50,000 characters without a space: always advancing, full parts, no character torn."""
    text = unit * (50_000 // len(unit))
    for parts in (render(text), tuple(Part(part) for part in plain(text))):
        assert "".join(part.text for part in parts) == text
        assert len(parts) <= 2 * len(text) // 4000 + 1
        for part in parts:
            assert_telegram_takes(part)
            assert part.text == unit * (len(part.text) // len(unit))


def test_p34_a_grapheme_longer_than_a_message_still_advances() -> None:
    """Thousands of combining marks on one letter are cut somewhere rather than nowhere."""
    text = "e" + "\u0301" * 9_000
    assert "".join(part.text for part in render(text)) == text


def test_p34_cuts_prefer_paragraphs_lines_sentences_words() -> None:
    """The better boundary wins where there is one in the second half of a part."""
    paragraph = "\n\n".join(["one two three. " * 4] * 9)
    for limit, ending in [(200, "three."), (150, "three.")]:
        assert all(part.text.endswith(ending) for part in render(paragraph, limit=limit))
    assert [part.text for part in render("aaaa bbbbb. cc dd ee", limit=16)] == ["aaaa bbbbb.", "cc dd ee"]
    assert [part.text for part in render("aaaaaaaa\nbb. cc dd ee", limit=16)] == ["aaaaaaaa", "bb. cc dd ee"]
    assert [part.text for part in render("aaaaaaaa bbbbbbbbbbb", limit=16)] == ["aaaaaaaa", "bbbbbbbbbbb"]


def test_p34_a_block_that_fits_into_a_message_is_not_cut() -> None:
    """Code that begins late in a part moves to the next as a whole."""
    parts = render("word " * 150 + "\n\n```\n" + "x = 1\n" * 600 + "```")
    assert [[entity.type for entity in part.entities] for part in parts] == [[], ["pre"]]


def test_p34_a_part_carries_no_more_formatting_than_telegram_takes() -> None:
    """At most 100 entities and 8,000 bytes of addresses a part, and yet none is dropped."""
    links = [f"[t{n}](https://x.y/{'p' * 300}{n})" for n in range(90)]
    bolds = [f"**w{n}** word" for n in range(300)]
    for markdown, kind, count in [(" ".join(links), "text_link", 90), (" ".join(bolds), "bold", 300)]:
        parts = render(markdown)
        for part in parts:
            assert_telegram_takes(part)
            assert sum(len(entity.url or "") for entity in part.entities) <= 8_000
        assert sum(entity.type == kind for part in parts for entity in part.entities) == count


SIZE = 100_000
HOSTILE = {
    "quotes": ">" * 10_000,
    "brackets": "[" * (SIZE // 2) + "]" * (SIZE // 2),
    "links": "[a](" * (SIZE // 4),
    "images": "![" * (SIZE // 2),
    "asterisks": "*" * SIZE,
    "open emphasis": "*a _b ~~c `d " * (SIZE // 13),
    "bold": "**a** " * (SIZE // 6),
    "bold and code": "**a** `b` " * (SIZE // 10),
    "backticks": "".join("`" * n + "a" for n in range(1, 440)),
    "fences": "```a\n" * (SIZE // 5),
    "lists in lists": "- " * 10_000 + "a",
    "lists in quotes": "> - " * 10_000 + "a",
    "deep lists": "\n".join("  " * n + "- a" for n in range(440)),
    "dollars": "$" * SIZE,
    "LaTeX": "$\\frac{1}{" * (SIZE // 10),
    "long LaTeX": "$" + "\\alpha " * (SIZE // 7) + "$",
    "LaTeX brackets": "\\[" * (SIZE // 2),
    "LaTeX parentheses": "\\(" * (SIZE // 2),
    "tags": "<a " * (SIZE // 3),
    "comments": "<!--" * (SIZE // 4),
    "pipes": "||a" * (SIZE // 3),
    "table": "|a|b|\n|-|-|\n" + "|c|d|\n" * (SIZE // 6),
    "wide table": "|" + "x" * (SIZE // 2) + "|\n|-|\n" + "|a|\n" * (SIZE // 8),
    "definitions": "".join(f"[a{n}]: https://x.y\n[a{n}] " for n in range(4000)),
    "headings": "# # a\n" * (SIZE // 6),
    "NUL": "\x00" * SIZE,
    "lone surrogates": "\ud83d" * SIZE,
    "right to left": "\u202ea\u200f" * (SIZE // 3),
    "tabs": "\t" * SIZE,
    "spaces": ("a" + " " * 5000) * (SIZE // 5000),
    "combining marks": "e" + "\u0301" * SIZE,
}


@pytest.mark.timeout(60)  # a second of an idle processor; what grows with the square of the text takes minutes
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_rendered_in_bounded_time(name: str) -> None:
    """100 kB of anything: nothing raised, valid parts, in bounded number."""
    text = HOSTILE[name]
    parts = render(text)
    assert len(parts) <= 120
    for part in parts[:3]:
        assert_telegram_takes(part)
    render_preview(text[: SIZE // 4])
    plain(text)


ANYTHING = st.text(st.characters(exclude_categories=()), max_size=200)
MARKS = [
    *"`*_~#[)<>!:;|$\\字😀\u200f\t",
    "**",
    "__",
    "~~",
    "```",
    "](",
    "](https://x.y/a_b)",
    "<b>",
    "&lt;",
    "$$",
    "\\(",
    "\\)",
]
BLOCKS = [
    "\n",
    "\n\n",
    "\n> ",
    "\n- ",
    "\n1. ",
    "\n# ",
    "\n```py\n",
    "\n| a | b |\n|---|---|\n| ",
    "\n[1]: https://x.y\n",
    "    ",
]
FRAGMENTS = st.sampled_from([*MARKS, *BLOCKS, "e\u0301", "🇩🇪", "word", "two words"])
MARKDOWN = st.lists(FRAGMENTS | st.text("abc .", max_size=8), max_size=60).map("".join) | ANYTHING
LIMITS = st.integers(16, 120) | st.just(4096)


@settings(max_examples=150, deadline=None)
@given(MARKDOWN, LIMITS)
def test_p34_any_text_makes_messages_that_telegram_takes(markdown: str, limit: int) -> None:
    """Every part is within the limit and valid, and together they show all that one endless message would."""
    with capture_logs() as logs:
        parts = render(markdown, limit=limit)
    assert not logs
    for part in parts:
        assert_telegram_takes(part, limit)
        assert part.text.strip()
    unlimited = render(markdown)
    if len(unlimited) == 1:
        assert squeezed(*(part.text for part in parts)) == squeezed(unlimited[0].text)
    kinds = {entity.type for part in parts for entity in part.entities}
    assert kinds == {entity.type for part in unlimited for entity in part.entities}


@settings(max_examples=100, deadline=None)
@given(MARKDOWN, LIMITS)
def test_any_growing_text_makes_a_preview_that_telegram_takes(markdown: str, limit: int) -> None:
    """A preview is one valid message, and the plain fallback too is within the limit."""
    with capture_logs() as logs:
        preview = render_preview(markdown, limit=limit)
    assert not logs
    if preview:
        assert_telegram_takes(preview, limit)
    for text in plain(markdown, limit=limit):
        assert_telegram_takes(Part(text), limit)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*"<>&;|$~*_`#[]()!\"'-+=:.\\\n ", "\n\n", "abc", "字", "1"]), max_size=40).map("".join)
)
def test_no_letter_is_ever_lost(markdown: str) -> None:
    """Whatever the punctuation around them, the letters, tags and ampersands of a text arrive in their order."""
    if not re.search(r"\]\(", markdown):  # the target of a link is not shown
        arrived = "".join(part.text for part in render(markdown))
        assert re.findall(r"[a-z字<&]", arrived) == re.findall(r"[a-z字<&]", markdown)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "😀", "\n", " ", "\n\n", "字"]), max_size=300).map("".join), st.integers(16, 40))
def test_entities_cover_the_same_letters_after_trimming_and_cutting(text: str, limit: int) -> None:
    """Code over the whole text covers each part from its first shown character to its last."""
    for part in render(f"```\n{text}\n```", limit=limit):
        if part.text.startswith("```"):
            assert not text.strip()  # an empty block is shown as it was written
        else:
            assert [(entity.type, covered(part, entity)) for entity in part.entities] == [("pre", part.text)]


def test_parts_follow_the_order_of_the_text() -> None:
    """Numbered lines arrive ascending, each once."""
    text = " ".join(part.text for part in render("\n".join(f"- no {n}" for n in range(3000))))
    assert [int(number) for number in re.findall(r"no (\d+)", text)] == list(range(3000))
