"""The shape of the Bot API as data, and the one checker that holds requests and answers to it.

One rule: `problems` decides for the hand-written table and for a full schema file alike.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from .errors import Json

_SPEC = re.compile(
    r"(?P<types>[^!~=\s]+)(?P<required>!)?(?P<unbuilt>~)?"
    r"(?: (?P<low>\d+)-(?P<high>\d+) (?P<unit>characters|bytes|items|parsed))?(?: =(?P<fixed>\w+))?"
)
_MARKUP = ("InlineKeyboardMarkup", "ReplyKeyboardMarkup", "ReplyKeyboardRemove", "ForceReply")


@dataclass(frozen=True)
class Upload:
    """A file that came with the request."""

    name: str
    mime: str
    data: bytes


@dataclass(frozen=True)
class Field:
    """One parameter or one field of an object.

    `unit` says what `low` and `high` count; "parsed" means characters after entity parsing, which only the
    emulator's text code can judge. `built` is False where the emulator does not act on the parameter.
    """

    types: tuple[str, ...]
    required: bool = False
    low: int | None = None
    high: int | None = None
    unit: str | None = None
    fixed: str | None = None
    built: bool = True


Fields = dict[str, Field]


@dataclass(frozen=True)
class Method:
    name: str
    returns: tuple[str, ...]
    fields: Fields


@dataclass(frozen=True)
class Union:
    members: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where: `path` is dotted from the method's or the type's name."""

    path: str
    kind: Literal["unknown", "missing", "type", "fixed", "short", "long"]
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


@dataclass
class Spec:
    """All that is known: methods by their real name, objects by type name; an unknown type accepts any object."""

    methods: dict[str, Method] = field(default_factory=dict[str, Method])
    objects: dict[str, Fields | Union] = field(default_factory=dict[str, "Fields | Union"])

    def find(self, name: str) -> Method | None:
        """Method names ignore case."""
        wanted = name.lower()
        return next((method for known, method in self.methods.items() if known.lower() == wanted), None)

    def request_problems(self, method: Method, params: Mapping[str, object]) -> list[Problem]:
        return list(self._object_problems(method.fields, params, method.name))

    def value_problems(self, types: tuple[str, ...], value: object, path: str) -> list[Problem]:
        """Nothing if one of the types fits; else what is wrong with the nearest one."""

        def distance(problems: list[Problem]) -> tuple[int, int]:
            at_hand = [p for p in problems if p.kind in _MISFITS and p.path.rpartition(".")[0] == path]
            return len(at_hand), len(problems)

        return min((list(self._type_problems(name, value, path)) for name in types), key=distance)

    def _object_problems(self, fields: Fields, values: Mapping[str, object], path: str) -> Iterator[Problem]:
        for name, value in values.items():
            here = f"{path}.{name}"
            if name not in fields:
                yield Problem(here, "unknown", "there is no such field")
            else:
                yield from self.value_problems(fields[name].types, value, here) or _limit_problems(
                    fields[name], value, here
                )
        for name, known in fields.items():
            if known.required and name not in values:
                yield Problem(f"{path}.{name}", "missing", "this field is required")

    def _type_problems(self, name: str, value: object, path: str) -> Iterator[Problem]:
        if name.startswith("[") and isinstance(value, list):
            for index, item in enumerate(cast("list[object]", value)):
                yield from self._type_problems(name[1:-1], item, f"{path}[{index}]")
        elif name in _SCALARS or name.startswith("[") or not isinstance(value, dict):
            if name not in _SCALARS or not _SCALARS[name](value):
                yield Problem(path, "type", f"expected {name}, got {type(value).__name__} {value!r}"[:120])
        else:
            shape = self.objects.get(name, {})
            values = cast("Json", value)
            if isinstance(shape, Union):
                yield from self.value_problems(shape.members, values, path)
            elif shape:
                yield from self._object_problems(shape, values, path)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_MISFITS = ("unknown", "missing", "fixed", "type")
_SCALARS: dict[str, Callable[[object], bool]] = {
    "Integer": _is_integer,
    "Float": lambda value: isinstance(value, float) or _is_integer(value),
    "Boolean": lambda value: isinstance(value, bool),
    "True": lambda value: value is True,
    "String": lambda value: isinstance(value, str),
    "InputFile": lambda value: isinstance(value, Upload),
}


def _limit_problems(known: Field, value: object, path: str) -> Iterator[Problem]:
    if known.fixed is not None and value != known.fixed:
        yield Problem(path, "fixed", f"must be {known.fixed}, got {value!r}")
    length: int | None = None
    if isinstance(value, str) and known.unit == "characters":
        length = len(value)
    elif isinstance(value, str) and known.unit == "bytes":
        length = len(value.encode(errors="surrogatepass"))
    elif isinstance(value, list) and known.unit == "items":
        length = len(cast("list[object]", value))
    if length is not None and known.low is not None and known.high is not None:
        allowed = f"{length} {known.unit}, allowed are {known.low}-{known.high}"
        if length < known.low:
            yield Problem(path, "short", allowed)
        elif length > known.high:
            yield Problem(path, "long", allowed)


def parse_field(row: str) -> Field:
    """Read one cell of the hand-written tables: `TYPE|TYPE[!][~] [LOW-HIGH UNIT] [=FIXED]`.

    `!` is required, `~` is known but not built, `[X]` is an array of X, `Markup` is any reply markup.
    """
    match = _SPEC.fullmatch(row)
    if match is None:
        raise ValueError(f"cannot read the field {row!r}: write TYPE|TYPE[!][~] [LOW-HIGH UNIT] [=FIXED]")
    names = tuple(name for part in match["types"].split("|") for name in (_MARKUP if part == "Markup" else (part,)))
    return Field(
        types=names,
        required=bool(match["required"]),
        low=int(match["low"]) if match["low"] else None,
        high=int(match["high"]) if match["high"] else None,
        unit=match["unit"],
        fixed=match["fixed"],
        built=not match["unbuilt"],
    )


def parse_table(
    methods: Mapping[str, tuple[str, Mapping[str, str]]], objects: Mapping[str, Mapping[str, str] | tuple[str, ...]]
) -> Spec:
    spec = Spec()
    for name, (returns, rows) in methods.items():
        fields = {key: parse_field(row) for key, row in rows.items()}
        spec.methods[name] = Method(name, tuple(returns.split("|")), fields)
    for name, shape in objects.items():
        if isinstance(shape, tuple):
            spec.objects[name] = Union(shape)
        else:
            spec.objects[name] = {key: parse_field(row) for key, row in shape.items()}
    return spec
