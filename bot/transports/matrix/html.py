"""Markdown as the HTML that Matrix allows, and as plain text beside it. Pure; raw HTML stays text.

Rule: nothing here pings anybody: links to people (matrix.to) are their words only.
"""

from collections.abc import Callable
from html import escape
from itertools import count

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

_PARSER = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])

_WRAPPED = {
    "strong": "strong",
    "em": "em",
    "s": "del",
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "list_item": "li",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
}
_SCHEMES = ("https://", "http://", "ftp://", "mailto:", "magnet:")
_PEOPLE = ("https://matrix.to/", "http://matrix.to/")
_LITERAL = ("text", "text_special", "html_inline", "html_block")
_BREAKS = ("softbreak", "hardbreak", "hr")


def parse(markdown: str) -> SyntaxTreeNode:
    return SyntaxTreeNode(_PARSER.parse(markdown))


def top_lines(markdown: str) -> list[int]:
    """The lines on which the outermost blocks begin."""
    return sorted({token.map[0] for token in _PARSER.parse(markdown) if token.level == 0 and token.map})


def to_html(node: SyntaxTreeNode) -> str:
    kind = node.type
    if kind in _LITERAL:
        return escape(node.content, quote=False)
    if kind in _BREAKS:
        return "<br>" if kind != "hr" else "<hr>"
    if make := _HTML.get(kind):
        return make(node)
    tag = _WRAPPED.get(kind)
    if tag is None or (tag == "p" and node.hidden):  # of a tight list
        return _inside(node)
    return f"<{tag}>{_inside(node)}</{tag}>"


def _inside(node: SyntaxTreeNode) -> str:
    return "".join(to_html(child) for child in node.children)


def _numbered(node: SyntaxTreeNode) -> str:
    start = f' start="{int(node.attrs["start"])}"' if "start" in node.attrs else ""
    return f"<ol{start}>{_inside(node)}</ol>"


def _code(node: SyntaxTreeNode) -> str:
    language = node.info.split()[0] if node.type == "fence" and node.info.strip() else ""
    mark = f' class="language-{escape(language)}"' if language else ""
    return f"<pre><code{mark}>{escape(node.content, quote=False)}</code></pre>"


def _link(url: str, words: str) -> str:
    if not url.lower().startswith(_SCHEMES) or url.lower().startswith(_PEOPLE):
        return words
    return f'<a href="{escape(url)}">{words}</a>'


def to_plain(node: SyntaxTreeNode) -> str:
    kind = node.type
    if kind in _LITERAL or kind == "code_inline":
        return node.content
    if kind in _BREAKS:
        return "\n" if kind != "hr" else "---"
    make = _PLAIN.get(kind)
    return make(node) if make else "".join(to_plain(child) for child in node.children)


def _table(node: SyntaxTreeNode) -> str:
    rows = [row for part in node.children for row in part.children]
    return "\n".join(" | ".join(to_plain(cell) for cell in row.children) for row in rows)


def _blocks(node: SyntaxTreeNode) -> str:
    return "\n\n".join(to_plain(child) for child in node.children)


def _list(node: SyntaxTreeNode) -> str:
    numbers = count(int(node.attrs.get("start", 1)))
    lines: list[str] = []
    for item in node.children:
        mark = f"{next(numbers)}. " if node.type == "ordered_list" else "• "
        words = "\n".join(to_plain(child) for child in item.children)
        lines.append(_indented(words, mark, " " * len(mark)))
    return "\n".join(lines)


def _indented(text: str, first: str, others: str) -> str:
    return first + text.replace("\n", f"\n{others}")


def _spelled(url: str, words: str) -> str:
    """A link in plain words: its address is said where the words do not say it."""
    if not url.lower().startswith(_SCHEMES) or url.lower().startswith(_PEOPLE):
        return words
    address = url.removeprefix("mailto:")
    return words if address in (words, f"https://{words}", f"http://{words}") else f"{words} ({address})".lstrip()


Make = Callable[[SyntaxTreeNode], str]

_HTML: dict[str, Make] = {
    "code_inline": lambda node: f"<code>{escape(node.content, quote=False)}</code>",
    "fence": _code,
    "code_block": _code,
    "heading": lambda node: f"<{node.tag}>{_inside(node)}</{node.tag}>",
    "ordered_list": _numbered,
    "link": lambda node: _link(str(node.attrs.get("href", "")), _inside(node)),
    "image": lambda node: _link(str(node.attrs.get("src", "")), escape(node.content, quote=False) or "🖼"),
}
_PLAIN: dict[str, Make] = {
    "fence": lambda node: node.content.rstrip("\n"),
    "code_block": lambda node: node.content.rstrip("\n"),
    "blockquote": lambda node: _indented(_blocks(node), "> ", "> "),
    "bullet_list": _list,
    "ordered_list": _list,
    "table": _table,
    "link": lambda node: _spelled(str(node.attrs.get("href", "")), "".join(to_plain(child) for child in node.children)),
    "image": lambda node: _spelled(str(node.attrs.get("src", "")), node.content),
    "root": _blocks,
}
