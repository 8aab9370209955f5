"""What an owner says of a hook: its secret, whose the events are, and how a JSON body becomes words.

Rule: a template names dotted paths into the body and nothing else; what a body says is never looked into for more.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, SecretStr, field_validator

OWN = "merk"
"""Merk's own writes are noted under it (handlers.remembering.own_events; not imported, as every command reads this)."""
NAME = re.compile(r"^[a-z0-9][a-z0-9_-]{0,63}$")
SCOPE = re.compile(r"^(public|team:\S.*|(?:chat|user|sensitive):[a-z]+:\S+)$")
SHORTEST_SECRET = 16

_PIECE = re.compile(r"\{\{|\}\}|\{([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\}|[{}]")
_DIGITS = re.compile(r"\d{1,6}", re.ASCII)


class MissingPath(Exception):  # noqa: N818 - it is an answer to the sender, not a fault
    """The body has no single value at this path."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True, slots=True)
class Template:
    """Text with `{dotted.paths}`; `{{` and `}}` stand for braces."""

    pieces: tuple[tuple[str, str], ...]
    """(text, path): the text comes before the value at the path; "" = no path."""

    @classmethod
    def of(cls, text: str) -> "Template":
        """Raises ValueError for a brace that opens no path."""
        pieces: list[tuple[str, str]] = []
        literal, at = "", 0
        for found in _PIECE.finditer(text):
            literal += text[at : found.start()]
            at = found.end()
            if found[1]:
                pieces.append((literal, found[1]))
                literal = ""
            elif len(found[0]) == 1:
                raise ValueError(f"{text!r}: braces hold a dotted path, such as {{order.id}}; {{{{ is a brace itself")
            else:
                literal += found[0][0]
        return cls((*pieces, (literal + text[at:], "")))

    def render(self, body: Mapping[str, object]) -> str:
        """Raises `MissingPath`."""
        return "".join(text + (_value(body, path) if path else "") for text, path in self.pieces)


class Hook(BaseModel):
    """[web.hooks.NAME]: all but `secret`, `scope` and `type` are templates over the JSON body."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    secret: SecretStr
    """Both sides know it: the key of the signature."""
    scope: str
    """public, team:NAME, chat:TRANSPORT:ID, user:IDENTITY or sensitive:IDENTITY."""
    type: Literal["event", "fact"] = "event"
    event_id: str = "{id}"
    """What a repeat is known by."""
    title: str = "{title}"
    narrative: str = ""
    subject: str = ""
    at: str = ""
    """When it happened: ISO 8601, or seconds since the epoch; empty = when it comes."""

    @field_validator("secret")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        if len(value.get_secret_value()) < SHORTEST_SECRET:
            raise ValueError(f"must have at least {SHORTEST_SECRET} characters: `openssl rand -hex 32` makes one")
        return value

    @field_validator("scope")
    @classmethod
    def _scope(cls, value: str) -> str:
        if not SCOPE.match(value):
            raise ValueError(
                'must be "public", "team:Sales", "chat:telegram:-100123", "user:telegram:42" or "sensitive:telegram:42"'
            )
        return value

    @field_validator("event_id", "title", "narrative", "subject", "at")
    @classmethod
    def _template(cls, value: str) -> str:
        Template.of(value)
        return value

    @field_validator("event_id", "title")
    @classmethod
    def _said(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return value


def checked_names(hooks: Mapping[str, Hook]) -> Mapping[str, Hook]:
    """The hooks as they are. Raises ValueError for a name that cannot stand in an address, or is Merk's own."""
    for name in hooks:
        if not NAME.match(name) or name == OWN:
            raise ValueError(f"{name!r} must be a-z 0-9 _ -, begin with a letter or digit, and not be {OWN!r}")
    return hooks


def _value(body: Mapping[str, object], path: str) -> str:
    """A text, number or truth value as it stands in the body."""
    here: object = body
    for key in path.split("."):
        here = _inside(here, key)
    if here is None or isinstance(here, dict | list):
        raise MissingPath(path)
    return here if isinstance(here, str) else json.dumps(here)


def _inside(here: object, key: str) -> object:
    if isinstance(here, dict):
        return cast("dict[str, object]", here).get(key)
    if isinstance(here, list) and _DIGITS.fullmatch(key):
        items = cast("list[object]", here)
        return items[int(key)] if int(key) < len(items) else None
    return None
