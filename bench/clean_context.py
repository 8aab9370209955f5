"""What clean context saves: the same talk about ten drafts, which go, stay in the history, or are ordinary answers.

App, prompts and the adapter of Claude are the real ones; the model is the stand-in of the Messages API, which answers
at once, counts a token for four bytes and keeps a prompt cache: exact prefixes up to the marks that Merk sets.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.letter import DRAFTS, KEEP, SMALL_TALK, TITLE
from bot.app import App, make_memory, open_database
from bot.config import Access, Budget, Settings, Tenant
from bot.embedders.builtin import UseEmbedder
from bot.models.anthropic import AnthropicModel
from bot.providers import Chosen
from bot.transports.base import Pace
from memory.instants import SystemClock
from memory.ports import Tier
from memory.storage import log
from memory.storage.database import Database
from memory.types import Utterance
from tests.fakes.messages_api import MessagesApi, Reply, Request, newest_user
from tests.fakes.transport import RecordingTransport

METHOD = (
    "input tokens = UTF-8 bytes / 4, of every request that a turn makes; cached = read from the prompt cache, "
    "with less than an hour between two turns; with clean context the model reads the work before each version but "
    "the first"
)
MODEL = "claude-sonnet-5"
AGAIN = "Once more: "
"""Before the questions that are asked after the work is closed."""
HERE = "Here it is."
DRAFTING, BETWEEN, AFTER = "drafting", "between", "after"


@dataclass(frozen=True)
class Said:
    part: str
    text: str


@dataclass(frozen=True)
class Sent:
    """What one turn sent to the model, in tokens."""

    part: str
    said: str
    requests: int
    input: int
    cached: int


class Way(StrEnum):
    """How the drafts of a talk are made and what becomes of them."""

    CLEAN = "clean"
    """Working output of the tool, as Merk does it."""
    LEFT = "left"
    """The same tool, but each version stays in the history, so that the model need not read it again."""
    ANSWERS = "answers"
    """No tool: the model writes each version as its answer."""


async def measure() -> dict[str, object]:
    """Have the talk each way and compare it turn by turn."""
    talks = {way: await _talk(way) for way in Way}
    return {
        "benchmark": "context",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "method": METHOD,
        "drafts": len(DRAFTS),
        "characters_a_draft": sum(len(text) for _, text in DRAFTS) // len(DRAFTS),
        "turns": [
            {"part": clean.part, "said": clean.said, **{way: _figures([talks[way][at]]) for way in Way}}
            for at, clean in enumerate(talks[Way.CLEAN])
        ],
        "parts": [_part(talks, part) for part in (DRAFTING, BETWEEN, AFTER, "all")],
    }


def _script() -> Iterator[Said]:
    for (wish, _), (question, _) in zip(DRAFTS, SMALL_TALK, strict=True):
        yield Said(DRAFTING, wish)
        yield Said(BETWEEN, question)
    yield Said(DRAFTING, KEEP)
    for question, _ in SMALL_TALK:
        yield Said(AFTER, AGAIN + question)


async def _talk(way: Way) -> list[Sent]:
    """One session, from the first wish to ten questions after the letter is done."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            tenant=Tenant(data_dir=Path(folder)),
            access=Access(admit="open"),
            budget=Budget(messages_per_minute=1000),  # nobody writes as fast as this
        )
        clock, embedder = SystemClock(), UseEmbedder()
        database = await open_database(settings, clock)
        async with MessagesApi() as api:
            api.model.thinks = False
            api.on().reply(fn=MODELS[way])
            model = AnthropicModel(api_key=api.key, base_url=api.base_url, models={Tier.DEFAULT: MODEL})
            chosen = Chosen(model, "", "anthropic")
            memory = make_memory(settings, clock, database, chosen, embedder)
            await memory.open()
            transport = RecordingTransport(pace=Pace(0.0001, 100, 60), part_length=4000)
            app = App(settings, database, memory, chosen, [transport], clock)
            await app.start()
            sent: list[Sent] = []
            for said in _script():
                sent.append(await _turn(app, transport, api, said))
                if way is Way.LEFT:
                    await _leave(database, said)
            await app.stop()
            await memory.close()
            await model.close()
            if api.violations:
                raise RuntimeError(f"the figures are worth nothing, the API was not obeyed: {api.violations}")
        await database.close()
    return sent


async def _turn(app: App, transport: RecordingTransport, api: MessagesApi, said: Said) -> Sent:
    """Say it; where the work is done, also Yes."""
    assert transport.accept is not None
    before = len(api.requests)
    await transport.accept(f"said {before}", {"text": said.text})
    await app.settled()
    yes = next((token for label, token in transport.tokens().items() if label.endswith("Yes, close")), None)
    if yes is not None:
        await transport.accept(f"tapped {before}", {"text": "", "token": yes})
        await app.settled()
    made = [request for request in api.requests[before:] if request.is_stream]
    read = [int(request.usage["cache_read_input_tokens"]) for request in made]
    fresh = [int(request.usage["input_tokens"]) + int(request.usage["cache_creation_input_tokens"]) for request in made]
    return Sent(said.part, said.text, len(made), sum(read) + sum(fresh), sum(read))


async def _leave(database: Database, said: Said) -> None:
    """Put the version that was just shown into the history."""
    version = _version(said.text)
    if version is not None:
        async with database.write() as connection:
            await log.append(connection, Utterance(session_id=1, role="assistant", speaker="Merk", text=version), 0)


# --- the model --------------------------------------------------------------------------------------


def _with_tools(request: Request) -> Reply | None:
    """Reads the work, writes the version, says what it did."""
    if _version(newest_user(request)) is not None and request.scene.tool_result is None:
        is_first = newest_user(request) == DRAFTS[0][0]
        return _without_reading(request) if is_first else Reply(tools=(("read_work", {}),))
    return _without_reading(request)


def _without_reading(request: Request) -> Reply | None:
    said, result = newest_user(request), request.scene.tool_result
    version = _version(said)
    if said == KEEP:
        return Reply("Kept.") if result else Reply(tools=(("keep_draft", {}),))
    if version is None:
        return _small_talk(request)
    if result is None or "is shown to the person" not in result:
        return Reply(tools=(("write_draft", {"title": TITLE, "text": version}),))
    return Reply(HERE)


def _as_answers(request: Request) -> Reply | None:
    """Says the whole version."""
    said = newest_user(request)
    version = _version(said)
    if said == KEEP:
        return Reply("Kept.")
    return Reply(f"{HERE}\n\n{version}") if version is not None else _small_talk(request)


def _version(said: str) -> str | None:
    return next((text for wish, text in DRAFTS if wish == said), None)


def _small_talk(request: Request) -> Reply | None:
    said = newest_user(request).removeprefix(AGAIN)
    return next((Reply(answer) for question, answer in SMALL_TALK if question == said), None)


MODELS = {Way.CLEAN: _with_tools, Way.LEFT: _without_reading, Way.ANSWERS: _as_answers}


# --- figures ----------------------------------------------------------------------------------------


def _part(talks: dict[Way, list[Sent]], name: str) -> dict[str, object]:
    """The turns of a part together, and what clean context spares against the other ways."""
    of = {way: [turn for turn in sent if name in (turn.part, "all")] for way, sent in talks.items()}
    saved = {f"saved_against_{way}": _saved(of[Way.CLEAN], of[way]) for way in (Way.LEFT, Way.ANSWERS)}
    return {"part": name, **{way: _figures(sent) for way, sent in of.items()}, **saved}


def _figures(sent: list[Sent]) -> dict[str, float]:
    total, cached = sum(each.input for each in sent), sum(each.cached for each in sent)
    return {
        "requests": sum(each.requests for each in sent),
        "input": total,
        "cached": cached,
        "cached_share": round(cached / total, 3),
    }


def _saved(clean: list[Sent], other: list[Sent]) -> dict[str, float]:
    """The share that clean context spares, of the tokens that are sent and of those that no cache holds."""
    sent = [sum(each.input for each in side) for side in (clean, other)]
    fresh = [sum(each.input - each.cached for each in side) for side in (clean, other)]
    return {"input": round(1 - sent[0] / sent[1], 3), "not_cached": round(1 - fresh[0] / fresh[1], 3)}


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    headings = ("clean context", "left in the history", "ordinary answers")
    lines = [
        result["method"],
        "",
        f"{'':<36}" + "".join(f"{heading:>23}" for heading in headings),
        f"{'':<36}" + 3 * f"{'calls':>8}{'tokens':>8}{'cached':>7}",
    ]
    lines += [_row(each["said"], each) for each in result["turns"]]
    lines += ["", *(_row(each["part"], each) for each in result["parts"]), ""]
    for each in result["parts"]:
        left, answers = each["saved_against_left"], each["saved_against_answers"]
        lines.append(
            f"{each['part']:<9} saved {left['input']:.0%} ({left['not_cached']:.0%} of the uncached) against left in "
            f"the history, {answers['input']:.0%} ({answers['not_cached']:.0%}) against ordinary answers"
        )
    return "\n".join(lines)


def _row(name: str, of: dict[str, dict[str, float]]) -> str:
    sides = [f"{of[way]['requests']:>8}{of[way]['input']:>8}{of[way]['cached_share']:>7.0%}" for way in Way]
    return f"{name[:34]:<36}" + "".join(sides)
