"""Text and entities, judged by Telegram's own parser (tdjson, offline).

One rule: no entity leaves here that TDLib did not accept, and offsets are UTF-16 code units throughout.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import tdjson

from .errors import Json, refuse
from .limits import RAW_TEXT_BYTES

_NAMES = {
    "Bold": "bold",
    "Italic": "italic",
    "Underline": "underline",
    "Strikethrough": "strikethrough",
    "Spoiler": "spoiler",
    "Code": "code",
    "Pre": "pre",
    "PreCode": "pre",
    "TextUrl": "text_link",
    "MentionName": "text_mention",
    "CustomEmoji": "custom_emoji",
    "BlockQuote": "blockquote",
    "ExpandableBlockQuote": "expandable_blockquote",
    "DateTime": "date_time",
    "Mention": "mention",
    "Hashtag": "hashtag",
    "Cashtag": "cashtag",
    "BotCommand": "bot_command",
    "Url": "url",
    "EmailAddress": "email",
    "PhoneNumber": "phone_number",
}
_FOUND_BY_TELEGRAM = {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}
_UNBROKEN = {"code", "pre", "text_link", "text_mention", "custom_emoji", "date_time"}  # nothing is found inside these
_MARKDOWN_SIGNS = "_*~|`["
_PARSE_MODES = {
    "html": {"@type": "textParseModeHTML"},
    "markdown": {"@type": "textParseModeMarkdown", "version": 1},
    "markdownv2": {"@type": "textParseModeMarkdown", "version": 2},
}


@dataclass(frozen=True)
class Formatted:
    text: str
    entities: list[Json]


def tdlib(request: Json) -> Json:
    """Run one of TDLib's synchronous functions; an `error` object is an answer like any other."""
    answer = tdjson.td_execute(json.dumps(request).encode())
    assert answer is not None, "only synchronous functions answer"
    return cast("Json", json.loads(answer))


tdlib({"@type": "setLogVerbosityLevel", "new_verbosity_level": 0})


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_slice(text: str, offset: int, length: int) -> str:
    return text.encode("utf-16-le")[2 * offset : 2 * (offset + length)].decode("utf-16-le")


def format_text(text: str, parse_mode: str | None, entities: Sequence[Json] | None) -> Formatted:
    """Turn a request's text into what is stored: parsed, cleaned, trimmed, with the entities Telegram finds itself.

    Raises BotApiError in the real words. An empty result is returned as it is: only callers know whether it may be.
    """
    _check_raw(text)
    if text and parse_mode and parse_mode.lower() != "none":
        mode = _PARSE_MODES.get(parse_mode.lower())
        if mode is None:
            raise refuse("unsupported parse_mode")
        answer = tdlib({"@type": "parseTextEntities", "text": text, "parse_mode": mode})
    else:
        given = [_for_tdlib(entity) for entity in entities or () if entity["type"] not in _FOUND_BY_TELEGRAM]
        answer: Json = {"@type": "formattedText", "text": text, "entities": given}
    if answer["@type"] == "error":
        raise refuse(answer["message"])
    return _with_found(_settle(answer["text"], answer["entities"]))


def find_entities(text: str) -> list[Json]:
    """What Telegram marks by itself: links, commands, hashtags, mentions, addresses."""
    found: list[Json] = tdlib({"@type": "getTextEntities", "text": text})["entities"] if text else []
    return [_from_tdlib(entity) for entity in found if _name(entity) in _FOUND_BY_TELEGRAM]


def quote_position(text: str, quote: str, position: int) -> int | None:
    """Where TDLib finds the quote in the text (UTF-16 units), or None if it is not an exact part of it."""
    answer = tdlib(
        {
            "@type": "searchQuote",
            "text": {"@type": "formattedText", "text": text, "entities": []},
            "quote": {"@type": "formattedText", "text": quote, "entities": []},
            "quote_position": position,
        }
    )
    return None if answer["@type"] == "error" else int(answer["position"])


def _check_raw(text: str) -> None:
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise refuse("strings must be encoded in UTF-8") from None
    if len(raw) > RAW_TEXT_BYTES:
        raise refuse("text is too long")


def _name(entity: Json) -> str | None:
    return _NAMES.get(entity["type"]["@type"].removeprefix("textEntityType"))


def _from_tdlib(entity: Json) -> Json:
    kind: Json = entity["type"]
    named: Json = {"type": _name(entity), "offset": entity["offset"], "length": entity["length"]}
    for field, value in kind.items():
        if field in ("url", "language", "unix_time"):
            named[field] = value
    if named["type"] == "custom_emoji":
        named["custom_emoji_id"] = str(kind["custom_emoji_id"])
    if named["type"] == "text_mention":
        named["user"] = {"id": kind["user_id"], "is_bot": False, "first_name": f"User {kind['user_id']}"}
    return named


def _for_tdlib(entity: Json) -> Json:
    makers: dict[str, Callable[[], Json]] = {
        "text_link": lambda: {"@type": "textEntityTypeTextUrl", "url": entity["url"]},
        "text_mention": lambda: {"@type": "textEntityTypeMentionName", "user_id": entity["user"]["id"]},
        "custom_emoji": lambda: {"@type": "textEntityTypeCustomEmoji", "custom_emoji_id": entity["custom_emoji_id"]},
        "date_time": lambda: {"@type": "textEntityTypeDateTime", "unix_time": entity["unix_time"]},
        "pre": lambda: {"@type": "textEntityTypePreCode", "language": entity.get("language", "")},
    }
    kind = entity["type"]
    plain = {name: td_name for td_name, name in _NAMES.items()}
    if kind not in plain:
        raise refuse("can't parse MessageEntity: Unsupported type specified")
    try:
        described = makers[kind]() if kind in makers else {"@type": f"textEntityType{plain[kind]}"}
    except KeyError as missing:
        raise refuse(f"can't parse MessageEntity: Can't find field \"{missing.args[0]}\"") from None
    return {"@type": "textEntity", "offset": entity["offset"], "length": entity["length"], "type": described}


def _settle(text: str, entities: list[Json]) -> Formatted:
    """What TDLib makes of them before sending: cleaned text, merged and sorted entities; raises where they do not fit.

    Its two offline calls that do so also speak Markdown: one writes it, and is asked for the verdict alone; the other
    reads it, so Markdown's signs are hidden from it behind private characters.
    """
    formatted: Json = {"@type": "formattedText", "text": text, "entities": entities}
    verdict = tdlib({"@type": "getMarkdownText", "text": formatted})
    if verdict["@type"] == "error":
        raise refuse(verdict["message"])
    base = next(base for base in range(0xE000, 0xF8F0, 8) if not any(chr(base + n) in text for n in range(8)))
    hidden = {ord(sign): base + number for number, sign in enumerate(_MARKDOWN_SIGNS)}
    shown = {private: sign for sign, private in hidden.items()}
    settled = tdlib({"@type": "parseMarkdown", "text": {**formatted, "text": text.translate(hidden)}})
    return _trim(settled["text"].translate(shown), [_from_tdlib(entity) for entity in settled["entities"]])


def _trim(text: str, entities: list[Json]) -> Formatted:
    """Drop blanks at both ends, but none at the beginning that lies inside an entity."""
    leading = len(text) - len(text.lstrip(" \n"))  # blanks are one UTF-16 unit each
    cut = min([leading, *(entity["offset"] for entity in entities)])
    trimmed = text[cut:].rstrip(" \n")
    end = utf16_length(trimmed)
    moved = ({**entity, "offset": entity["offset"] - cut} for entity in entities)
    fitted = ({**entity, "length": min(entity["length"], end - entity["offset"])} for entity in moved)
    return Formatted(trimmed, [entity for entity in fitted if entity["length"] > 0])


def _with_found(formatted: Formatted) -> Formatted:
    closed = [entity for entity in formatted.entities if entity["type"] in _UNBROKEN]
    free = [found for found in find_entities(formatted.text) if not any(_overlap(found, entity) for entity in closed)]

    def order(entity: Json) -> tuple[Any, ...]:
        return entity["offset"], -entity["length"], entity["type"]

    return Formatted(formatted.text, sorted([*formatted.entities, *free], key=order))


def _overlap(one: Json, other: Json) -> bool:
    return one["offset"] < other["offset"] + other["length"] and other["offset"] < one["offset"] + one["length"]
