"""Fills a JSON schema with words of the conversation, so that an unscripted summary speaks of what was said."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.fakes.messages_api.wire import Json, listing, mapping, mappings

BUDGET: Final = 1_200  # characters a string field carries
DEEPEST: Final = 12  # a schema that refers to itself ends here
FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "duration": "P1D",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def gist(said: str, budget: int = BUDGET) -> str:
    """The newest lines that fit into `budget` characters, each once, in their order."""
    kept: list[str] = []
    room = budget
    for line in reversed(said.splitlines()):
        words = " ".join(line.split())[-budget // 2 :]  # one line does not crowd out all others
        if not re.search(r"\w", words) or any(words in other for other in kept):
            continue
        if len(words) > room:
            break
        kept.append(words)
        room -= len(words) + 1
    return "\n".join(reversed(kept)) or "nothing"


@dataclass(frozen=True)
class Filler:
    """`said` is what string fields carry. Lists of objects stay as short as the schema allows unless `fills_lists`."""

    schema: Json
    said: str
    fills_lists: bool = False

    def value(self) -> Any:
        return self._any(self.schema, 0)

    def _any(self, schema: Json, depth: int) -> Any:
        if "$ref" in schema:
            return self._any(self._resolve(str(schema["$ref"])), depth + 1)
        if "const" in schema:
            return schema["const"]
        if choices := listing(schema.get("enum")):
            return choices[0]
        if options := mappings(schema.get("anyOf") or schema.get("oneOf")):
            ends = depth > DEEPEST and any(option.get("type") == "null" for option in options)
            return None if ends else self._any(options[0], depth + 1)
        if parts := mappings(schema.get("allOf")):
            return self._any(_merge([schema, *parts]), depth + 1)
        return self._typed(schema, depth)

    def _typed(self, schema: Json, depth: int) -> Any:
        kinds = listing(schema.get("type")) or [schema.get("type", "object" if "properties" in schema else "string")]
        match kinds[0]:
            case "object":
                properties = mapping(schema.get("properties")) or {}
                return {name: self._any(mapping(part) or {}, depth + 1) for name, part in properties.items()}
            case "array":
                return self._list(schema, depth)
            case "boolean":
                return False
            case "integer" | "number":
                return _number(schema)
            case "null":
                return None
            case _:
                return self._text(schema)

    def _list(self, schema: Json, depth: int) -> list[Any]:
        items = mapping(schema.get("items")) or {}
        plain = self._resolve(str(items["$ref"])) if "$ref" in items else items
        wanted = 1 if self.fills_lists or plain.get("type") == "string" else 0
        wanted = 0 if depth > DEEPEST else wanted
        count = min(max(wanted, int(schema.get("minItems", 0))), int(schema.get("maxItems", 1_000)))
        return [self._any(items, depth + 1) for _ in range(count)]

    def _text(self, schema: Json) -> str:
        if known := FORMATS.get(str(schema.get("format"))):
            return known
        return gist(self.said)[: int(schema.get("maxLength", BUDGET))].ljust(int(schema.get("minLength", 0)), ".")

    def _resolve(self, reference: str) -> Json:
        found: Any = self.schema
        for step in reference.removeprefix("#").strip("/").split("/"):
            found = (mapping(found) or {}).get(step) if step else found
        return mapping(found) or {}


def _number(schema: Json) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    high = schema.get("maximum", low)
    return min(low, high) if low <= 0 else low


def _merge(schemas: list[Json]) -> Json:
    """`allOf` as one object schema."""
    merged: Json = {"type": "object", "properties": {}}
    for schema in schemas:
        merged["properties"] |= mapping(schema.get("properties")) or {}
    return merged
