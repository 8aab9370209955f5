"""The script over HTTP, for a stand-in in a process of its own."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from tests.fakes.messages_api.faults import Fault, matching
from tests.fakes.messages_api.rules import Call, Match, R, RuleBook
from tests.fakes.messages_api.wire import Json, listing, mapping, mappings

if TYPE_CHECKING:
    from tests.fakes.messages_api.server import MessagesApi

CONDITIONS: Final = frozenset(field.name for field in fields(Match))
REPLIES: Final = frozenset({"text", "tool", "tools", "json", "thinking", "advice", "stop_reason", "times"})
FAULT_OPTIONS: Final = frozenset(field.name for field in fields(Fault)) - {"hits"}
SETTINGS: Final = frozenset({"thinks", "fills_lists", "windows"})


def control_routes(api: "MessagesApi") -> Sequence[web.RouteDef]:
    """POST rules, faults, set, down, up, clear, reset; GET requests, counted (both `?since=N`), violations, status.

    A body is one JSON object, or a list of them for rules and faults.
    """
    posts: dict[str, Callable[[Any], None]] = {
        "rules": lambda body: add_rules(api.model.book, body),
        "faults": lambda body: api.faults.extend(_read_fault(entry) for entry in _entries(body)),
        "set": lambda body: _set(api, _only(_entries(body)[0], SETTINGS)),
        "down": lambda _: api.down(),
        "up": lambda _: api.up(),
        "clear": lambda _: api.clear(),
        "reset": lambda _: api.reset(),
    }
    reads: dict[str, Callable[[int], Json]] = {
        "requests": lambda since: {"requests": [entry.record() for entry in api.requests if entry.number > since]},
        "counted": lambda since: {"requests": [entry.record() for entry in api.counted if entry.number > since]},
        "violations": lambda _: {"violations": [asdict(violation) for violation in api.violations]},
        "status": lambda _: {"requests": len(api.requests), "violations": len(api.violations), "down": api.is_down},
    }
    return [
        *(web.post(f"/ctl/{name}", posting(act)) for name, act in posts.items()),
        *(web.get(f"/ctl/{name}", _reading(read)) for name, read in reads.items()),
    ]


def add_rules(book: RuleBook[R], body: Any) -> None:
    """Each `{user?, system?, model?, after_tool?, has_tool?, background?, reply: {text | tool | tools | json, …}}`.

    Raises ValueError or TypeError for what is no rule.
    """
    for entry in _entries(body):
        reply = dict(_only(mapping(entry.get("reply")) or {}, REPLIES))
        conditions = _only({name: value for name, value in entry.items() if name != "reply"}, CONDITIONS)
        calls = [_call(pair) for pair in listing(reply.pop("tools", None)) or []]
        tool = reply.pop("tool", None)
        book.add(Match(**conditions), **reply, tools=calls, tool=_call(tool) if tool is not None else None)


def _read_fault(entry: Json) -> Fault:
    """`{kind, times?, match?: regex | {user?, …}, retry_after?, seconds?, after?}`."""
    options = dict(_only(entry, FAULT_OPTIONS))
    match = options.pop("match", None)
    conditions = mapping(match)
    return Fault(match=Match(**_only(conditions, CONDITIONS)) if conditions is not None else matching(match), **options)


def _call(pair: Any) -> Call:
    parts = listing(pair)
    if parts is None or len(parts) != 2 or mapping(parts[1]) is None:
        raise ValueError("a tool call is written as [name, {arguments}]")
    return str(parts[0]), mapping(parts[1]) or {}


def _set(api: "MessagesApi", settings: Json) -> None:
    api.model.thinks = bool(settings.get("thinks", api.model.thinks))
    api.model.fills_lists = bool(settings.get("fills_lists", api.model.fills_lists))
    for name, window in (mapping(settings.get("windows")) or {}).items():
        api.shrink(name, int(window))


def _entries(body: Any) -> list[Json]:
    return mappings(body) if isinstance(body, list) else [mapping(body) or {}]


def _only(entry: Json, known: frozenset[str]) -> Json:
    if unknown := entry.keys() - known:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}")
    return entry


def posting(act: Callable[[Any], None]) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A handler that hands the JSON body to `act` and answers 400 with the reason if it objects."""

    async def post(http: web.Request) -> web.Response:
        try:
            act(await http.json() if http.can_read_body else {})
        except (ValueError, TypeError, KeyError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response({"ok": True})

    return post


def _reading(read: Callable[[int], Json]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def get(http: web.Request) -> web.Response:
        return web.json_response(read(int(http.query.get("since", "0"))))

    return get
