"""Markdown as Matrix shows it: the HTML it allows, the plain text beside it, parts that fit into an event."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.transports.base import Key, Outgoing, Part
from bot.transports.matrix import content
from bot.transports.matrix.render import PART_BYTES, Body, render, render_preview
from handlers.types import Place

MOST_BYTES = 65_536
YES_NO = ((Key("Yes", "t1"), Key("No", "t2")),)
ALLOWED = {
    "del",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "p",
    "a",
    "ul",
    "ol",
    "li",
    "strong",
    "em",
    "code",
    "hr",
    "br",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "pre",
}


def html(markdown: str) -> str:
    (part,) = render(Outgoing("text", markdown))
    assert isinstance(part.body, Body)
    return part.body.html or ""


@pytest.mark.parametrize(
    ("markdown", "formatted", "plain"),
    [
        ("**bold** *it* ~~no~~", "<p><strong>bold</strong> <em>it</em> <del>no</del></p>", "bold it no"),
        ("`c<d`", "<p><code>c&lt;d</code></p>", "c<d"),
        ("one\ntwo", "<p>one<br>two</p>", "one\ntwo"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>", "• a\n• b"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>', "3. a\n4. b"),
        ("# T", "<h1>T</h1>", "T"),
        ("> q", "<blockquote><p>q</p></blockquote>", "> q"),
        ("```py\nx < 1\n```", '<pre><code class="language-py">x &lt; 1\n</code></pre>', "x < 1"),
        ("[w](https://x.y/?a=1&b=2)", '<p><a href="https://x.y/?a=1&amp;b=2">w</a></p>', "w (https://x.y/?a=1&b=2)"),
        ("![cat](https://x.y/c.png)", '<p><a href="https://x.y/c.png">cat</a></p>', "cat (https://x.y/c.png)"),
        ("[w](javascript:alert(1))", "", "[w](javascript:alert(1))"),
        ("<b onclick=x>hi</b>", "", "<b onclick=x>hi</b>"),
    ],
)  # fmt: skip
def test_markdown_is_shown_as_it_is_meant(markdown: str, formatted: str, plain: str) -> None:
    (part,) = render(Outgoing("text", markdown))
    assert part.plain == plain
    assert html(markdown) in (
        formatted,
        f"<p>{plain}</p>".replace("<b onclick=x>hi</b>", "&lt;b onclick=x&gt;hi&lt;/b&gt;"),
    )


def test_nobody_is_pinged_by_a_link_to_a_person() -> None:
    """Clients make a mention of it."""
    shown = html("ask [Bob](https://matrix.to/#/@bob:example.org) **now**")
    assert "matrix.to" not in shown
    assert "Bob" in shown
    made = content.message(Part("@bob:example.org @room"), Place("matrix", "!r"), "")
    assert made["m.mentions"] == {}


@given(st.text(alphabet="ab <>&\"'`*_~[]()!#-\n1.|:/\\", max_size=200))
def test_only_allowed_tags_come_out_of_any_text(markdown: str) -> None:
    for part in render(Outgoing("text", markdown)):
        assert isinstance(part.body, Body)
        assert set(re.findall(r"</?([a-z0-9]+)", part.body.html or "")) <= ALLOWED


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.sampled_from(["word ", "wörd🎉 ", "\n\n", "- item\n", "```\ncode\n```\n", '"<&>"', "x" * 5000]),
        max_size=2000,
    )
)
def test_p34_any_length_fits_into_events_even_as_an_encrypted_edit(pieces: list[str]) -> None:
    for part in render(Outgoing("text", "".join(pieces))):
        size = len(json.dumps(content.edit(part, "$1"), ensure_ascii=False).encode())
        assert size * 4 / 3 < MOST_BYTES


def test_p34_code_keeps_its_fences_over_a_cut() -> None:
    parts = render(Outgoing("text", "```py\n" + "x = 1\n" * 5000 + "```\nend"))
    assert len(parts) > 1
    for part in parts[:-1]:
        assert isinstance(part.body, Body)
        assert (part.body.html or "").startswith('<pre><code class="language-py">')
        assert len(part.plain.encode()) <= PART_BYTES


def test_a_card_is_literal_and_has_a_legend() -> None:
    (part,) = render(Outgoing("card", "Keep *this*?", YES_NO))
    assert part.plain == "Keep *this*?\n\n1️⃣ Yes\n2️⃣ No"
    assert part.body == Body(None, "card")
    assert part.keys == YES_NO


def test_a_formatted_card_has_its_legend_in_both_bodies() -> None:
    (part,) = render(Outgoing("card", "**Draft**", YES_NO, formatted=True))
    assert part.body == Body("<p><strong>Draft</strong></p><p>1️⃣ Yes<br>2️⃣ No</p>", "card")


def test_a_growing_text_looks_right_and_is_never_three_dots() -> None:
    part = render_preview("Some **bold wor")
    assert part is not None
    assert isinstance(part.body, Body)
    assert (part.plain, part.body.html) == ("Some bold wor", "<p>Some <strong>bold wor</strong></p>")
    assert part.body.is_preview
    for bare in ("", " \n", "**", "```"):
        assert render_preview(bare) is None


def test_an_edit_says_the_new_words_and_a_beginning_for_old_clients() -> None:
    made = content.edit(Part("x" * 5000), "$1")
    assert made["m.new_content"]["body"] == "x" * 5000
    assert len(made["body"]) < 1100
    assert made["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$1"}


def test_a_thread_falls_back_to_a_reply() -> None:
    made = content.message(Part("hi"), Place("matrix", "!r", "$root"), "$last")
    relation = made["m.relates_to"]
    assert (relation["event_id"], relation["is_falling_back"]) == ("$root", True)
    assert relation["m.in_reply_to"] == {"event_id": "$last"}
