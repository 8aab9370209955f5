"""How an answer came to be, read from its stored trace: what was recalled, the choice of the model, the times.

Rule: a trace is data of any age; what it does not hold is left out, and what it holds is looked up under scope.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bot.web.pages.visit import Visit
from bot.web.reports import NANO
from memory.instants import from_ms
from memory.storage import turns
from memory.storage.turns import Turn

_ARMS = ("meaning", "words", "facts", "observations", "evidence", "all")


@dataclass(frozen=True, slots=True)
class Recalled:
    """Something that was put before the model. Without words where they are not for the reader, or gone."""

    id: int
    text: str | None
    link: str | None = None
    when: str = ""
    figures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """A trace, ready to be read."""

    facts: tuple[Recalled, ...] = ()
    sessions: tuple[Recalled, ...] = ()
    observations: tuple[Recalled, ...] = ()
    missing: tuple[str, ...] = ()
    model: tuple[tuple[str, str], ...] = ()
    times: tuple[tuple[str, float, str], ...] = ()
    """What took so long: its name, its share of the longest, and the time."""
    calls: tuple[tuple[str, ...], ...] = ()
    """Of the model: tokens in, out, read from the cache, written to it."""


async def told(visit: Visit, turn: Turn, keys: Collection[str], data: Mapping[str, Any]) -> Told:
    """Read the trace of a turn for this visitor. `data` is that of its event."""
    trace = turn.trace
    w = visit.site_words
    return Told(
        facts=await _facts(visit, _ids(trace.get("facts"))),
        sessions=await _sessions(visit, _rows(trace.get("sessions")), keys),
        observations=await _observations(visit, _rows(trace.get("observations"))),
        missing=tuple(str(each) for each in _list(trace.get("degraded"))),
        model=_model(visit, turn, trace),
        times=_times(visit, _map(trace.get("ms")), data),
        calls=tuple(
            tuple(w.count(_number(each.get(key))) for key in ("input", "output", "cache_read", "cache_write"))
            for each in _rows(trace.get("usage"))
        ),
    )


async def _facts(visit: Visit, ids: Sequence[int]) -> tuple[Recalled, ...]:
    known = {fact.id: fact for fact in await visit.site.memory.facts.list(visit.audience)} if ids else {}
    return tuple(
        Recalled(each, fact.text, f"/memory/facts/{each}", visit.words.day(fact.created_at))
        if (fact := known.get(each))
        else Recalled(each, None)
        for each in ids
    )


async def _sessions(visit: Visit, rows: Sequence[Mapping[str, Any]], keys: Collection[str]) -> tuple[Recalled, ...]:
    say, w = visit.words.say, visit.site_words
    ids = [each["id"] for each in rows if isinstance(each.get("id"), int)]
    async with visit.site.database.search() as connection:
        titles = await turns.titles(connection, ids, keys)
    found: list[Recalled] = []
    for row in rows:
        title, used = titles.get(row.get("id", 0), (None, 0))
        names = (("score", "web-score"), ("cosine", "web-meaning"), ("words", "web-by-words"))
        figures = tuple((say(key), w.figure(row[name])) for name, key in names if row.get(name) is not None)
        shown = title if title is None or title else say("chat-untitled")
        found.append(Recalled(row.get("id", 0), shown, None, w.day(from_ms(used)) if used else "", figures))
    return tuple(found)


async def _observations(visit: Visit, rows: Sequence[Mapping[str, Any]]) -> tuple[Recalled, ...]:
    say, w = visit.words.say, visit.site_words
    ids = [each["id"] for each in rows if isinstance(each.get("id"), int)]
    known = {each.id: each for each in await visit.site.memory.observations.by_ids(visit.audience, ids)} if ids else {}
    found: list[Recalled] = []
    for row in rows:
        one = known.get(row.get("id", 0))
        figures = [(say("web-score"), w.figure(row.get("score")))]
        if row.get("reason"):
            figures.append((say("web-why"), str(row["reason"])))
        if one is None:
            found.append(Recalled(row.get("id", 0), None, None, "", tuple(figures)))
        else:
            when = visit.words.day(one.valid_from)
            found.append(Recalled(one.id, one.title, f"/memory/noticed/{one.id}", when, tuple(figures)))
    return tuple(found)


def _model(visit: Visit, turn: Turn, trace: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    say, w = visit.words.say, visit.site_words
    found = [(say("web-model"), turn.model)] if turn.model else []
    routing = _map(trace.get("routing"))
    found += [
        (say(f"web-routing-{key}"), _said(visit, key, str(routing[key])))
        for key in ("tier", "kind", "reason")
        if routing.get(key)
    ]
    if routing.get("confidence") is not None:
        found.append((say("web-routing-confidence"), w.share(_number(routing["confidence"]))))
    if (nano := _number(trace.get("nano_usd"))) is not None:
        found.append((say("web-cost"), w.money(nano / NANO)))
    return tuple(found)


def _said(visit: Visit, key: str, value: str) -> str:
    phrase = f"web-{key}-{value}"
    return visit.words.say(phrase) if phrase in visit.words.say else value


def _times(visit: Visit, recall: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[tuple[str, float, str], ...]:
    say = visit.words.say
    found = [(say(f"web-time-{arm}"), number) for arm in _ARMS if (number := _number(recall.get(arm))) is not None]
    for key, phrase in (("firstTokenMs", "web-first-word"), ("durationMs", "web-whole-answer")):
        if (number := _number(data.get(key))) is not None:
            found.append((say(phrase), number))
    longest = max((number for _, number in found), default=0) or 1
    return tuple((name, number / longest, visit.site_words.duration(number)) for name, number in found)


# --- reading what has no type --------------------------------------------------------------------------


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _map(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _rows(value: object) -> list[dict[str, Any]]:
    return [row for each in _list(value) if (row := _map(each))]


def _ids(value: object) -> list[int]:
    return [each for each in _list(value) if isinstance(each, int)]


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
