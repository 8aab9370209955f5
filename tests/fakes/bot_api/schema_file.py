"""A full description of the Bot API from a JSON file, where one is at hand: it checks requests and our own answers.

One rule: the file is never needed and never copied; the hand-written table stands on its own.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any, cast

from .errors import Json
from .spec import Field, Fields, Method, Spec, Union

VARIABLE = "MERK_BOT_API_SPEC"
_BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data" / "telegram-bot-api.json"
_LENGTH = re.compile(r"(\d+)-(\d+) (characters|bytes)")
_FIXED = re.compile(r"(?:always|must be) [\"“]?([a-z_]+)[\"”]?$")
_DISCRIMINATORS = ("type", "status", "source")


def find_schema_file() -> Path | None:
    """The file that the variable names, else one beside the checkout; a named file that is missing is an error."""
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise FileNotFoundError(f"{VARIABLE} names {named}, which is not there: unset it or correct the path")
        return Path(named)
    return _BESIDE if _BESIDE.is_file() else None


@cache
def load_schema(path: Path) -> Spec:
    """Read the format of telegram-bot-api-spec: `methods` and `types`, each with `fields` or `subtypes`."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    spec = Spec()
    for name, method in cast("dict[str, Json]", document["methods"]).items():
        spec.methods[name] = Method(name, tuple(map(_type, method["returns"])), _fields(method))
    for name, described in cast("dict[str, Json]", document["types"]).items():
        subtypes = described.get("subtypes")
        spec.objects[name] = Union(tuple(subtypes)) if subtypes else _fields(described)
    return spec


def _fields(owner: Json) -> Fields:
    return {described["name"]: _field(described) for described in owner.get("fields", [])}


def _field(described: Json) -> Field:
    text: str = described["description"]
    length = _LENGTH.search(text)
    fixed = _FIXED.search(text) if described["name"] in _DISCRIMINATORS else None
    return Field(
        types=tuple(map(_type, described["types"])),
        required=described["required"],
        low=int(length[1]) if length else None,
        high=int(length[2]) if length else None,
        unit=None if not length else "parsed" if re.search(r"after entit(y|ies) parsing", text) else length[3],
        fixed=fixed[1] if fixed else None,
    )


def _type(name: str) -> str:
    """`Array of X` is written `[X]` here."""
    inner = name.removeprefix("Array of ")
    return name if inner == name else f"[{_type(inner)}]"
