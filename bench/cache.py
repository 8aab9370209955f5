"""What a long chat costs: 60 turns with memory, tools and window cuts, billed by exact prefixes at list prices.

The turns are those of a whole Merk at the strict stand-in. The two others are sent the same words at the same times in
another order: all that Merk keeps for the newest turn stands in the system prompt, or the window slides with each turn.
"""

import copy
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bench.stage import SUMMARY
from bot.app import open_database
from bot.config import Settings, Tenant
from bot.models.anthropic_bill import bill
from bot.models.prices import read_prices
from memory.instants import SystemClock
from memory.ports import Billed, Usage
from memory.storage.database import Database
from memory.storage.tables import telemetry_events
from tests.fakes.claude import claude_house
from tests.fakes.house import House
from tests.fakes.messages_api import MessagesApi, Request
from tests.fakes.messages_api.cache import InputUsage, PromptCache
from tests.fakes.messages_api.catalogue import MODELS

TURNS = 60
SETTLED = 5  # turns after which the cache must carry the chat
WINDOW = 12
WIDER = 48
"""Messages: with reads at a twentieth of the price a window may grow further before a cut pays."""
PAUSE_MINUTES = 2
FACTS = 20
LEAST_SHARE = 0.9
MOST_COST = 0.4
EARLIER_CHATS = 3
TOOL_EVERY = 6
RECALL_EVERY = 3  # turns: the others have nothing to do with earlier chats
ANSWER = (
    "Then it should be done before the frost comes. Cut the roses back to three buds, cover the beds with leaves, "
    "and bring the lemon tree inside. The tools can wait for a dry day; oil them before you hang them up. I would "
    "start with the hedge, for that is the longest piece of work, and keep the pond for the week after."
)
TOPICS = ("roses", "beds", "lemon tree", "hedge", "pond", "tools", "fence", "compost", "lawn", "herbs")
ELSE = (
    "Which train leaves for Riga after {} o'clock, and where would one change on the way there?",
    "Translate chapter {} of the manual into plain English, my colleague reads no German at all.",
    "Explain once more how paragraph {} of our rental contract treats a broken boiler, briefly.",
    "My sister visits us with {} friends: suggest a vegetarian supper that keeps until midnight.",
)
PRICES = read_prices(None)


@dataclass(frozen=True)
class Run:
    """One way to send the chat. `share` is of the input tokens from turn 5 on, costs are dollars a turn."""

    name: str
    share: float
    least_share: float
    usd_per_turn: float
    of_everything: float = 1.0


@dataclass(frozen=True)
class Call:
    """One request of the chat and when it came, in seconds."""

    turn: int
    at: float
    request: Request


async def measure() -> dict[str, object]:
    """The runs, the reasons why the beginning of a prompt changed, and the targets that were missed."""
    windowed, breaks = await _live(betas=[])
    wider, _ = await _live(betas=[], window_max=WIDER)
    as_it_comes, condensed = await _live()
    compacting, compacted = await _live(compact_from=4000)
    in_system = [replace(call, request=_everything(call.request)) for call in windowed]
    bare = [replace(call, request=_without_breakpoints(call.request)) for call in in_system]
    merk = [
        _price("Merk as it comes", as_it_comes),
        _price("Merk, condensed from 4,000 tokens on", compacting),
        _price(f"Merk, windows of 12 to {WIDER} only", wider),
        _price("Merk, windows of 12 to 24 only", windowed),
    ]
    others = [
        _price("everything in system, same breakpoints", in_system),
        _price("everything in system, no breakpoints", bare),
        _price("stable system, window slides at 12", [replace(c, request=_sliding(c.request)) for c in windowed]),
    ]
    baseline = min(others[0].usd_per_turn, others[1].usd_per_turn)  # the one that is harder to beat
    merk, others = (
        [replace(run, of_everything=round(run.usd_per_turn / baseline, 3)) for run in runs] for runs in (merk, others)
    )
    missed = [f"{run.name}: {run.share:.1%} of the input cached" for run in merk if run.share < LEAST_SHARE]
    missed += [f"{run.name}: {run.of_everything:.0%} of the cost" for run in merk if run.of_everything > MOST_COST]
    return {
        "runs": [asdict(run) for run in (*merk, *others)],
        "prefix_changed": {"as it comes": condensed, "condensed": compacted, "windows": breaks},
        "not_read": {"windows of 12 to 24": _not_read(windowed), f"windows of 12 to {WIDER}": _not_read(wider)},
        "missed": missed,
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{'':<40}{'cached':>8}{'least':>8}{'$ a turn':>11}{'of all in system':>18}"]
    lines += [
        f"{run['name']:<40}{run['share']:>8.1%}{run['least_share']:>8.1%}{run['usd_per_turn']:>11.5f}"
        f"{run['of_everything']:>18.0%}"
        for run in result["runs"]
    ]
    lines.append(f"prefix changed: {result['prefix_changed']}")
    for name, shares in result["not_read"].items():
        lines.append(
            f"{name}: not read from the cache are {', '.join(f'{of:.1%} {what}' for what, of in shares.items())}"
        )
    return "\n".join([*lines, *(f"MISSED: {each}" for each in result["missed"])])


async def _live(**section: Any) -> tuple[list[Call], dict[str, int]]:
    """Let a Merk live through the chat; return its requests and the reasons of cache breaks."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(tenant=Tenant(data_dir=Path(folder)))
        database = await open_database(settings, SystemClock())
        async with MessagesApi() as api:
            api.on(background=True).reply(json=SUMMARY)
            api.on(background=False, after_tool=True).reply(ANSWER)
            api.on().reply(ANSWER)
            api.on("look it up").reply(tool=("search_memory", {"query": "the pond"}))
            async with claude_house(database, Path(folder), api, **section) as house:
                await _live_before(house)
                calls: list[Call] = []
                for turn in range(1, TURNS + 1):
                    before = len(api.requests)
                    await house.say(_question(turn))
                    await house.app.past.settled()
                    await house.memory.learn()  # as it does after five quiet seconds
                    at = house.clock.now().timestamp()
                    calls += [Call(turn, at, each) for each in api.requests[before:] if "haiku" not in each.model]
                    house.clock.advance(minutes=PAUSE_MINUTES)
            assert not api.violations, api.violations
        breaks = await _breaks(database)
        await database.close()
        return calls, breaks


async def _live_before(house: House) -> None:
    """What there is to remember: facts, and chats that were summed up."""
    for number in range(FACTS):
        await house.say(f"/remember The {TOPICS[number % 10]} number {number} came from my grandmother's garden")
    for chat in range(EARLIER_CHATS):
        for turn in range(4):
            await house.say(_question((chat * 4 + turn) * RECALL_EVERY))
        await house.memory.learn()
        await house.say("/newchat")


def _question(turn: int) -> str:
    """A question of the garden, on which the earlier chats bear, or of something else."""
    first, second = TOPICS[turn % 10], TOPICS[turn * 3 % 10]
    look = ", please look it up" if turn % TOOL_EVERY == 0 else ""
    if turn % RECALL_EVERY == 0:
        return (
            f"What is to be done about the {first} in week {turn}{look}? The {second} can wait, it rained on Tuesday."
        )
    return ELSE[turn % len(ELSE)].format(turn)


async def _breaks(database: Database) -> dict[str, int]:
    query = sa.select(telemetry_events.c.data).where(telemetry_events.c.name == "memory.cache_break")
    async with database.read() as connection:
        return dict(Counter(data["reason"] for data in (await connection.execute(query)).scalars()))


# --- the same words in another order ------------------------------------------------------------------


def _everything(request: Request) -> Request:
    """Facts, recollections and the clock in front, as one system prompt; the question alone at the end."""
    body = copy.deepcopy(request.body)
    newest = next(each for each in reversed(body["messages"]) if any(b["type"] == "text" for b in each["content"]))
    *volatile, question = newest["content"]
    newest["content"] = [question]
    words = "\n\n".join(block["text"] for block in (*body["system"], *volatile))
    body["system"] = [{"type": "text", "text": words, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    return replace(request, body=body)


def _without_breakpoints(request: Request) -> Request:
    body = copy.deepcopy(request.body)
    blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
    for holder in (body, *blocks):
        holder.pop("cache_control", None)
    return replace(request, body=body)


def _sliding(request: Request) -> Request:
    """The newest twelve messages, whatever fell out a turn ago."""
    body = copy.deepcopy(request.body)
    asked = [at for at, each in enumerate(body["messages"]) if _is_question(each)]
    first = asked[-WINDOW // 2 - 1] if len(asked) > WINDOW // 2 else 0
    body["messages"] = body["messages"][first:]
    return replace(request, body=body)


def _is_question(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and any(block["type"] == "text" for block in message["content"])


def _not_read(calls: Sequence[Call]) -> dict[str, float]:
    """Which shares of the input had to be written or read anew, and why."""
    why: Counter[str] = Counter()
    total, length = 0, 0
    for call, used in _charged(calls):
        was_cut = len(call.request.messages) < length
        length = len(call.request.messages)
        if call.turn >= SETTLED:
            total += used.total
            why["the newest turn"] += used.fresh + used.written_5m  # whatever is said and recalled, it is new
            why["a window that was cut" if was_cut else "the answer before"] += used.written_1h
    return {what: round(tokens / total, 4) for what, tokens in why.items()}


# --- the bill -----------------------------------------------------------------------------------------


def _price(name: str, calls: Sequence[Call]) -> Run:
    nano, of_turn = 0, dict[int, tuple[int, int]]()
    for call, used in _charged(calls):
        output = sum(line.usage.output for line in bill(call.request.model, call.request.usage))
        written = used.written_5m + used.written_1h
        usage = Usage(used.fresh, output, used.read, written, used.written_1h)
        nano += PRICES.cost(Billed(call.request.model, usage)) or 0
        read, total = of_turn.get(call.turn, (0, 0))
        of_turn[call.turn] = (read + used.read, total + used.total)
    settled = [figures for turn, figures in of_turn.items() if turn >= SETTLED]
    return Run(
        name,
        share=round(sum(read for read, _ in settled) / sum(total for _, total in settled), 4),
        least_share=round(min(read / total for read, total in settled), 4),
        usd_per_turn=round(nano / 1e9 / TURNS, 6),
    )


def _charged(calls: Sequence[Call]) -> Iterator[tuple[Call, InputUsage]]:
    now = 0.0
    cache = PromptCache(clock=lambda: now)
    for call in calls:
        now = call.at
        yield call, cache.charge(call.request, MODELS[call.request.model])
