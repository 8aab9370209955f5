"""A model that notices what a script says: for each message that holds some words, one observation."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memory.ports import Json, ModelRequest, ModelTraits, Purpose, TextBlock
from tests.fakes.model import TRAITS, ScriptedModel

_LINE = re.compile(r"^\[(\d+)\] \w+ \S+ \S+ ([^:]+): (.*)$", re.MULTILINE)
_SUMMARY = {
    **dict.fromkeys(("request", "investigated", "learned", "completed", "next_steps", "notes"), ""),
    "title": "A talk",
    "text": "They talked.",
}


def noticed(quote: str, type_: str = "fact", **fields: Any) -> Json:
    """An item of the extractor's answer; `message` is filled in by the script."""
    defaults: Json = {
        "quote": quote,
        "type": type_,
        "title": quote,
        "narrative": quote,
        "facts": [],
        "concepts": [],
        "aliases": [],
        "subject": "",
        "attribute": "",
        "value": "",
        "until": "",
        "confidence": 0.9,
    }
    return {**defaults, **fields}


@dataclass
class Noticing:
    """The script: words of a message -> what is noticed in it. `same` decides the doubtful middle."""

    rules: dict[str, Json | list[Json]] = field(default_factory=dict[str, Any])
    same: Callable[[str, str], bool] = lambda _one, _other: False
    always: Callable[[int, str], list[Json]] | None = None
    """Instead of the rules: what is noticed in a message, by its number and text."""

    def __call__(self, request: ModelRequest) -> Json:
        if request.account.purpose is Purpose.SUMMARY:
            return _SUMMARY
        shown = _text(request)
        if request.account.purpose is Purpose.CONSOLIDATION:
            pair = json.loads(shown)
            return {"same": self.same(pair["first"], pair["second"])}
        found: list[Json] = []
        for number, _, text in _LINE.findall(shown):
            found += [{"message": int(number), **item} for item in self._in(int(number), text)]
        return {"observations": found}

    def model(self, traits: ModelTraits = TRAITS) -> ScriptedModel:
        return ScriptedModel(always=self, traits=traits)

    def _in(self, number: int, text: str) -> list[Json]:
        if self.always is not None:
            return self.always(number, text)
        found: list[Json] = []
        for words, items in self.rules.items():
            if words in text:
                found += items if isinstance(items, list) else [items]
        return found


def _text(request: ModelRequest) -> str:
    [message] = request.messages
    [block] = message.blocks
    assert isinstance(block, TextBlock)
    return block.text


def shown_to_extractor(model: ScriptedModel) -> list[str]:
    """What the extractor was shown, request by request."""
    return [_text(each) for each in model.requests if each.account.purpose is Purpose.EXTRACTION]
