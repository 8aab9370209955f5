"""What Telegram's own library (tdjson, offline) says of a rendered part, and what a test reads in one."""

import json
import re
import unicodedata
from typing import Any

import tdjson

from bot.transports.telegram.render import Entity, Part, render

TD_TYPES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "code": "Code",
    "pre": "Pre",
    "text_link": "TextUrl",
    "blockquote": "BlockQuote",
}


def ask_tdlib(request: dict[str, Any]) -> dict[str, Any]:
    answer = tdjson.td_execute(json.dumps(request).encode())
    assert answer is not None
    return json.loads(answer)


ask_tdlib({"@type": "setLogVerbosityLevel", "new_verbosity_level": 0})


def td_entity(entity: Entity) -> dict[str, Any]:
    kind = "PreCode" if entity.language else TD_TYPES[entity.type]
    detail = {"url": entity.url, "language": entity.language}
    fields = {name: value for name, value in detail.items() if value is not None}
    return {
        "@type": "textEntity",
        "offset": entity.offset,
        "length": entity.length,
        "type": {"@type": f"textEntityType{kind}", **fields},
    }


def painted(entities: list[dict[str, Any]]) -> dict[int, set[str]]:
    """Which formatting each UTF-16 unit has: the same however the entities are cut and ordered."""
    units: dict[int, set[str]] = {}
    ours = {f"textEntityType{kind}" for kind in (*TD_TYPES.values(), "PreCode")}
    for entity in entities:
        if entity["type"]["@type"] in ours:
            for unit in range(entity["offset"], entity["offset"] + entity["length"]):
                units.setdefault(unit, set()).add(entity["type"]["@type"])
    return units


def assert_telegram_takes(part: Part, limit: int = 4096) -> None:
    """TDLib accepts the part and changes neither its text nor its formatting."""
    assert 1 <= len(part.text.encode("utf-16-le")) // 2 <= limit
    assert len(part.text.encode()) < 32_768
    assert part.text.strip() == part.text.strip("\n").rstrip() or part.entities  # only code starts with a space
    assert len(part.entities) <= 100
    entities = [td_entity(entity) for entity in part.entities]
    text = re.sub(r"[*_~|`\[\]()]", "x", part.text)  # else TDLib would read Markdown of its own in it
    answer = ask_tdlib(
        {"@type": "parseMarkdown", "text": {"@type": "formattedText", "text": text, "entities": entities}}
    )
    assert answer["@type"] == "formattedText", answer
    # Of a run of direction marks it leaves the last and makes joiners of the others, which moves nothing.
    neutral = str.maketrans("\u200c\u200f", "\u200e\u200e")
    assert answer["text"].translate(neutral) == text.translate(neutral)
    assert painted(answer["entities"]) == painted(entities)


def covered(part: Part, entity: Entity) -> str:
    raw = part.text.encode("utf-16-le")
    return raw[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le")


def shown(part: Part | None) -> tuple[str, list[tuple[str, str]]]:
    assert part is not None
    return part.text, [(entity.type, covered(part, entity)) for entity in part.entities]


def only(markdown: str) -> Part:
    (part,) = render(markdown)
    assert_telegram_takes(part)
    return part


def squeezed(*texts: str) -> str:
    """The characters that can be seen."""
    return "".join(
        character
        for character in "".join(texts)
        if not character.isspace() and unicodedata.category(character) not in {"Cc", "Cf"}
    )


def long_answer() -> str:
    section = """## {n}. Section 🎉

Some **bold {n}** prose with `code {n}`, _emphasis_ and [link {n}](https://example.org/a_b/{n}). It goes on for a while
so that paragraphs have a body, with é, 日本語 and 👩‍👩‍👧‍👦 in it; a < b.

- item **one**
  - nested `two`

```python
def f_{n}(x: list[str]) -> str:
    return "<b>" + x[0] * 2 + "&lt;"  # {filler}
```

| Key | Value |
|-----|------:|
| a{n} | {n} |

"""
    return "".join(section.format(n=n, filler="y" * 100) for n in range(30))
