"""Rendering for Telegram: what a model writes arrives whole, formatted, and in messages that Telegram accepts."""

import pytest
from structlog.testing import capture_logs

from bot.transports.telegram import render as renderer
from bot.transports.telegram.render import Part, plain, render, render_preview
from tests.unit.bot.transports.telegram.tdlib import assert_telegram_takes, long_answer, only, shown, squeezed


@pytest.mark.parametrize(
    ("markdown", "text", "formatting"),
    [
        ("**b** _i_ ~~s~~ `c`", "b i s c", [("bold", "b"), ("italic", "i"), ("strikethrough", "s"), ("code", "c")]),
        ("**b *i* `c` x**", "b i c x", [("bold", "b i"), ("italic", "i"), ("code", "c"), ("bold", "x")]),
        ("# Title\n\ntext", "Title\n\ntext", [("bold", "Title"), ("underline", "Title")]),
        ("### Small C#\ntext", "Small C#\ntext", [("bold", "Small C#")]),
        ("1. ### Step\n   do it", "1. Step\ndo it", [("bold", "Step")]),
        ("- a\n  - b\n    1. c\n- d", "• a\n  • b\n    1. c\n• d", []),
        ("- [ ] a\n- [x] b\n\n1. [ ] c", "☐ a\n☑ b\n\n1. [ ] c", []),
        ("- a\n  ```py\n  x\n  ```\n  b", "• a\nx\nb", [("pre", "x")]),
        ("> a\n>> b\n\nc", "a\nb\n\nc", [("blockquote", "a\nb")]),
        ("- a\n  > q\n- b", "• a\nq\n• b", [("blockquote", "q")]),
        ("🎉 **é** 👨‍👩‍👧‍👦 *x*", "🎉 é 👨‍👩‍👧‍👦 x", [("bold", "é"), ("italic", "x")]),
        ("a\n\n---\n\nb", "a\n\n————————\n\nb", []),
        ("**Note:**text **注意：**文本", "Note:text 注意：文本", [("bold", "Note:"), ("bold", "注意：")]),
        ("$x^2$ and \\(\\alpha_1\\), $5 or $10", "x^2 and α₁, $5 or $10", [("code", "x^2"), ("code", "α₁")]),
        ("```\nif\ta:\n```", "if  a:", [("pre", "if  a:")]),
        ("A\u030a\r\nb\u202ec", "Å\nbc", []),
    ],
)
def test_markdown_of_models_becomes_text_and_entities(
    markdown: str, text: str, formatting: list[tuple[str, str]]
) -> None:
    """Each construct shows as a person expects it, and Telegram would change nothing in it."""
    assert shown(only(markdown)) == (text, formatting)


@pytest.mark.parametrize(
    "literal",
    [
        "<script>alert(1)</script>",
        "<script>\nalert(1)\n</script>",
        "List<String> and Map<K, V>",
        "a < b && c > d",
        "&lt;b&gt; &amp; &copy;",
        "<!-- note --> <?php ?> <br/>",
        "if (a || b || c) ||x||",
        "2*3*4 and 2**3**4 and f(x)**2 + g(x)**2",
        "~5 or ~6, $HOME/$USER, $10-$20",
        "https://x.y/_a_/b*c*d?e=1&copy=2",
        "[TODO]: fix it\n[Ada]: hello\n[^1]: https://x.y\n[2]: https://x.y/z",
        "see [1] and [x]: y",
    ],
)
def test_nothing_vanishes_outside_code_or_inside(literal: str) -> None:
    """HTML, entities, operators, prices, addresses and notes are shown as written."""
    assert only(literal).text == literal
    assert shown(only(f"```\n{literal}\n```")) == (literal, [("pre", literal)])
    line = literal.replace("\n", " ")
    assert shown(only(f"`{line}`")) == (line, [("code", line)])


def test_code_is_verbatim() -> None:
    """LaTeX, escapes, pipes and Markdown in code are left alone, the language is named, the indentation is kept."""
    code = "  x = r'\\(\\alpha + 1\\) \\| \\*'\n\n| a | b |\n|---|---|\n**no** [l](http://x.y)\n[r]: http://x.y"
    part = only(f"```c++ title=1\n{code}\n```\nand `\\(\\alpha+1\\)`")
    assert shown(part) == (f"{code}\n\nand \\(\\alpha+1\\)", [("pre", code), ("code", "\\(\\alpha+1\\)")])
    assert part.entities[0].language == "c++"


def test_markdown_shown_as_code_may_hold_fences() -> None:
    """A README in a fence keeps the fences within."""
    code = "# T\n```py\nx\n```\nend"
    assert shown(only(f"```markdown\n{code}\n```\nafter")) == (f"{code}\n\nafter", [("pre", code)])


@pytest.mark.parametrize(
    ("markdown", "text", "url"),
    [
        ("[a](https://x.y/p_q?r=1&amp;s=2)", "a", "https://x.y/p_q?r=1&s=2"),
        ("[a](HTTP://x.y)", "a", "HTTP://x.y"),
        ("[a](www.x.y)", "a", "https://www.x.y"),
        ("[a](<https://x.y/b c>)", "a", "https://x.y/b%20c"),
        ("<https://x.y>", "https://x.y", "https://x.y"),
        ("[a `f()`][r]\n\n[r]: https://x.y 'T'", "a f()", "https://x.y"),
        ("![alt](https://x.y/i.png)", "🖼 alt", "https://x.y/i.png"),
        ("[![alt](https://i.y/i.png)](https://x.y)", "🖼 alt", "https://x.y"),
        ("[](https://x.y)", "🔗", "https://x.y"),
        ("[a](javascript:alert(1))", "a", None),
        ("[a](tg://user?id=1)", "a", None),
        ("![a](tg://emoji?id=5368324170671202286)", "🖼 a", None),
        ("[a](data:text/html,x)", "a", None),
        ("[a](/docs/x)", "a", None),
        ("[a](mailto:b@c.de?subject=x)", "a (b@c.de)", None),
        ("[b@c.de](mailto:b@c.de)", "b@c.de", None),
        ("[call](tel:+4912345)", "call (+4912345)", None),
        ("[a](http://localhost:8080/x)", "a (http://localhost:8080/x)", None),
        ("[a](https://bank.com@evil.com)", "a (https://bank.com@evil.com)", None),
        ("[a](https://x.y:99999)", "a (https://x.y:99999)", None),
    ],
)
def test_only_web_addresses_become_links(markdown: str, text: str, url: str | None) -> None:
    """Odd schemes lose the link and keep the text; an address that Telegram takes for no link is spelled out."""
    part = only(markdown)
    assert part.text == text
    assert [entity.url for entity in part.entities] == [url] * (url is not None)


def test_a_narrow_table_is_aligned() -> None:
    """Up to 40 columns it is monospace, with wide characters counted as two and numbers to the right."""
    part = only("| Name | Qty |\n|---|--:|\n| Äpfel | 3 |\n| 日本 | 1200 |")
    assert part.text == "Name  |  Qty\n------+-----\nÄpfel |    3\n日本  | 1200"
    assert [entity.type for entity in part.entities] == ["pre"]


def test_a_wide_table_becomes_records() -> None:
    """Beyond that, or with links, each row is a few lines of "column: value", and no cell is lost."""
    part = only(f"| Tool | Use |\n|---|---|\n| **A** | {'long ' * 12}|\n| B | [l](https://x.y) \\| `c` | surplus |")
    assert part.text == f"Tool: A\nUse: {('long ' * 12).strip()}\n\nTool: B\nUse: l | c | surplus"
    assert ("text_link", "l") in shown(part)[1]
    assert shown(part)[1][0] == ("bold", "Tool: A")


@pytest.mark.parametrize("prefix", ["", "> ", "   "])
def test_tables_and_code_stay_in_their_quote_or_list(prefix: str) -> None:
    """Blocks in containers are found, and what follows them is still in the container."""
    source = "\n".join(prefix + line for line in ["| a | b |", "|---|---|", "| 1 | 2 |", "", "```", "c", "```", "end"])
    text, formatting = shown(only(f"1. x\n\n{source}"))
    assert [covered for kind, covered in formatting if kind == "pre"] == ["a | b\n--+--\n1 | 2", "c"]
    assert text.endswith("\nend")
    assert any(kind == "blockquote" and "end" in covered for kind, covered in formatting) == (prefix == "> ")


@pytest.mark.parametrize("empty", ["", " \n\t ", "\u200b\u2060", "\x00\x01", "\u2800", "\u202e", "\u3164\n\u00ad"])
def test_nothing_to_see_is_no_message(empty: str) -> None:
    """White space and invisible characters make no part."""
    assert render(empty) == ()
    assert plain(empty) == ()
    assert render_preview(empty) is None


@pytest.mark.parametrize("markup", ["#", "```\n```", "> ", "[a]: <", "**"])
def test_mere_markup_is_shown_as_it_is(markup: str) -> None:
    """What has something to see before the rendering has something to see after it."""
    assert squeezed(*(part.text for part in render(markup)))


@pytest.mark.parametrize("limit", [0, 15, 4097])
def test_a_limit_telegram_does_not_have_is_refused(limit: int) -> None:
    """A wrong limit is a mistake of the caller, named as such."""
    for function in (render, render_preview, plain):
        with pytest.raises(ValueError, match="16 to 4096"):
            function("text", limit=limit)


def test_p35_the_plain_fallback_has_no_stray_escapes() -> None:
    """It is the original, with its escapes resolved outside code and kept inside."""
    markdown = "1\\. *a* \\*b\\* \\[c\\] `\\*d` ```\\_``` \\_\n```\n\\*e\n```\n\\!\n\n\n~~~\n\\#"
    assert plain(markdown) == ("1. *a* *b* [c] `\\*d` ```\\_``` _\n```\n\\*e\n```\n!\n\n\n~~~\n\\#",)


class PanicError(BaseException):
    """What a panic of the Rust parser looks like."""


@pytest.mark.parametrize("failure", [RecursionError, PanicError])
def test_p35_an_answer_the_parser_chokes_on_arrives_as_plain_text(
    monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    """A failing library costs the formatting, is logged without the text, and costs nothing else."""

    def choke(markdown: str, *, is_growing: bool = False) -> object:
        raise failure(markdown, is_growing)

    monkeypatch.setattr(renderer, "to_rich", choke)
    with capture_logs() as logs:
        parts = render("**Hi** 1\\. " * 1000)
        preview = render_preview("**Hi** 1\\.")
    assert [part.text for part in parts] == list(plain("**Hi** 1\\. " * 1000))
    assert preview == Part("**Hi** 1.")
    assert {log["error"] for log in logs} == {failure.__name__}
    assert "Hi" not in str(logs)


@pytest.mark.parametrize(
    ("growing", "text", "formatting"),
    [
        ("a **bo", "a bo", [("bold", "bo")]),
        ("a **bold*", "a bold", [("bold", "bold")]),
        ("a **b _i", "a b i", [("bold", "b i"), ("italic", "i")]),
        ("a ~~gone~", "a gone", [("strikethrough", "gone")]),
        ("a `co", "a co", [("code", "co")]),
        ("a ``x`", "a x", [("code", "x")]),
        ("a **", "a", []),
        ("a `", "a", []),
        ("see [the docs](https://x.y/a", "see the docs", []),
        ("**see [the docs](htt", "see the docs", [("bold", "see the docs")]),
        ("x\n\n```py\nif a:\n    b", "x\n\nif a:\n    b", [("pre", "if a:\n    b")]),
        ("x\n```py\nb\n``", "x\n\nb", [("pre", "b")]),
        ("x\n```py", "x", []),
        ("text\n-", "text", []),
        ("text\n- **a", "text\n• a", [("bold", "a")]),
        ("| a | b |\n|--", "| a | b |", []),
        ("2 * 3 and snake_case and 2*3", "2 * 3 and snake_case and 2*3", []),
        ("**a** and **b** c", "a and b c", [("bold", "a"), ("bold", "b")]),
    ],
)
def test_a_growing_answer_looks_right_at_every_moment(
    growing: str, text: str, formatting: list[tuple[str, str]]
) -> None:
    """Open emphasis, code and links are completed; half a marker is not shown yet."""
    assert shown(render_preview(growing)) == (text, formatting)


def test_every_moment_of_a_growing_answer_is_a_message() -> None:
    """No prefix of an answer makes a preview that Telegram refuses, and the last looks like the answer."""
    answer = long_answer().partition("## 2.")[0]
    for end in range(0, len(answer), 3):
        if preview := render_preview(answer[:end]):
            assert_telegram_takes(preview)
    assert render_preview(answer) == render(answer)[0]


def test_a_long_preview_shows_the_end() -> None:
    """The newest lines below an ellipsis, code still as code."""
    answer = "Intro.\n\n```py\n" + "\n".join(f"line {n}" for n in range(2000))
    preview = render_preview(answer)
    assert preview is not None
    assert_telegram_takes(preview)
    assert preview.text.startswith("…\nline ")
    assert preview.text.endswith("\nline 1999")
    assert len(preview.text) > 4000
    assert [(entity.type, entity.language, entity.offset) for entity in preview.entities] == [("pre", "py", 2)]
    family = render_preview("👩‍👩‍👧‍👦" * 2000)
    assert family is not None
    assert family.text == "…\n" + "👩‍👩‍👧‍👦" * ((4096 - 2) // 11)
