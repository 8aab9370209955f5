"""How much memory shows beyond what was asked for: PrecisionMemBench, through the shipped recall.

Its beliefs become observations: what belongs to a domain goes to a named team, what is universal to a team of its own,
and whoever asks within some domains is in those teams. Left out is what describes another product: a persona's
prelude, joins over relations, budgets below Merk's own. Pinned beliefs are stored and may mislead, but count neither
way, for Merk has facts for them. A case is active where it asks for something, empty where it asks for nothing.
"""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from bot.app import make_memory, open_database
from bot.config import Settings
from bot.embedders.builtin import UseEmbedder
from bot.errors import CommandError
from bot.models.none import NoModel
from bot.providers import Chosen
from memory.instants import SystemClock, to_ms
from memory.kinds.observations import store
from memory.kinds.observations.finding import LIMIT
from memory.kinds.observations.observation import Content, Trigger, Type, kept
from memory.memory import Memory
from memory.scope import Audience, own_key, team_key
from memory.storage import members, people
from memory.storage.database import Database
from memory.types import Role

FILES = ("beliefs.seed.json", "retrieval.cases.json")
LEFT_OUT = ("Persona prelude content", "Relation expansion")
HOLDER = "test-user"
UNIVERSAL = "user:universal"
_TYPES = {
    "preference": Type.PREFERENCE,
    "entity": Type.CONCEPT,
    "decision": Type.DECISION,
    "relation": Type.FACT,
    "open_question": Type.TASK,
}

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Belief:
    id: str
    type: Type
    is_pinned: bool
    raw: Raw


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked, and what may come back. None = nothing is said about it."""

    id: str
    category: str
    query: str
    scope: tuple[str, ...]
    user: str
    only: frozenset[str] | None
    never: frozenset[str]
    questions: frozenset[str]
    no_questions: frozenset[str]
    budget: int | None


@dataclass(slots=True)
class Judged:
    """One case as it was answered."""

    case: Case
    returned: list[str]
    wrong: list[str] = field(default_factory=list[str])
    """Which of its claims do not hold: only, never, questions."""
    precision: float | None = None
    recall: float | None = None
    ms: float = 0.0

    @property
    def is_active(self) -> bool:
        return bool(self.case.only or self.case.questions)


async def measure(data: Path) -> dict[str, object]:
    """All cases that apply. Raises CommandError for a folder that does not hold them."""
    beliefs, cases = load(data)
    applying = [case for case in cases if _applies(case)]
    embedder = UseEmbedder()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"tenant": {"data_dir": folder}})
        clock = SystemClock()
        database = await open_database(settings, clock)
        memory = make_memory(settings, clock, database, Chosen(NoModel("not needed here"), "", "none"), embedder)
        town = _Town(database, to_ms(clock.now()))
        names = await town.settle(beliefs)
        await memory.open()
        await memory.learn()
        judged = [await _judge(memory, case, await town.asker(case), beliefs, names) for case in applying]
        await memory.close()
        await database.close()
    return {
        "benchmark": "precision",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "embedder": embedder.name,
        "cases": len(applying),
        "left_out": len(cases) - len(applying),
        **_summary(judged),
        "by_category": {name: _summary(of) for name, of in sorted(_by_category(judged).items())},
        "failed": {
            each.case.id: {"claims": each.wrong, "returned": each.returned, "expected": sorted(each.case.only or ())}
            for each in judged
            if each.wrong
        },
    }


def load(data: Path) -> tuple[dict[str, Belief], list[Case]]:
    """Read a folder. Raises CommandError where it does not hold the benchmark."""
    try:
        raw_beliefs, raw_cases = (json.loads((data / name).read_text(encoding="utf-8")) for name in FILES)
        beliefs = [Belief(raw["_id"], _TYPES[raw["type"]], bool(raw["pinned"]), raw) for raw in raw_beliefs]
        return {each.id: each for each in beliefs}, [_case(raw) for raw in raw_cases]
    except OSError as error:
        wanted = " and ".join(FILES)
        raise CommandError(f"{data} cannot be read ({error.strerror}): name the folder with {wanted}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{data} does not hold PrecisionMemBench ({type(error).__name__}: {error}).") from error


def _case(raw: Raw) -> Case:
    def told(tier: str, claim: str) -> frozenset[str]:
        return frozenset(cast("Sequence[str]", raw["expect"].get(tier, {}).get(claim, ())))

    relevant: Raw = raw["expect"].get("relevantBeliefs", {})
    budget: Raw = raw.get("budget", {})
    return Case(
        id=raw["caseId"],
        category=raw["category"],
        query=raw["query"],
        scope=tuple(raw["scope"]),
        user=raw.get("userId") or HOLDER,
        only=frozenset(relevant["shouldOnlyInclude"]) if "shouldOnlyInclude" in relevant else None,
        never=told("relevantBeliefs", "mustExclude") | told("pinnedFacts", "mustExclude"),
        questions=told("openQuestions", "mustInclude"),
        no_questions=told("openQuestions", "mustExclude"),
        budget=budget.get("maxBeliefs"),
    )


def _applies(case: Case) -> bool:
    is_asked = case.only is not None or case.never or case.questions or case.no_questions
    return bool(is_asked) and case.category not in LEFT_OUT and (case.budget is None or case.budget >= LIMIT)


class _Town:
    """The people, teams and observations of the benchmark."""

    def __init__(self, database: Database, now: int) -> None:
        self._database = database
        self._now = now
        self._teams: dict[str, int] = {}
        self._askers: dict[tuple[str, tuple[str, ...]], Audience] = {}

    async def settle(self, beliefs: Mapping[str, Belief]) -> dict[int, str]:
        """Store all beliefs; return which observation is which."""
        domains = {scope for each in beliefs.values() for scope in each.raw["scope"]}
        rows: dict[str, int] = {}
        async with self._database.write() as connection:
            first = await people.admit(connection, "bench:first", "First", Role.MEMBER, "en", self._now)
            for domain in sorted(domains):
                self._teams[domain] = (await members.create_team(connection, domain, first.id, self._now)).id
            for each in beliefs.values():
                rows[each.id] = await store.insert(
                    connection,
                    kept(_content(each)),
                    self._owner(each, first.id),
                    user_id=first.id,
                    session_id=None,
                    trigger=Trigger.CHAT,
                    now=self._now,
                )
            for each in beliefs.values():
                if (newer := each.raw["superseded_by"]) or each.raw.get("resolved_at"):
                    await store.supersede(connection, [rows[each.id]], rows[newer or each.id], self._now, self._now)
        return {row: name for name, row in rows.items()}

    async def asker(self, case: Case) -> Audience:
        """Somebody alone with Merk who is in the teams of a case."""
        key = case.user, case.scope
        if key not in self._askers:
            identity = f"bench:{case.user}:{'+'.join(case.scope)}"
            async with self._database.write() as connection:
                user = await people.admit(connection, identity, case.user, Role.MEMBER, "en", self._now)
                for domain in {*case.scope, UNIVERSAL} if case.user == HOLDER else ():
                    if domain in self._teams:
                        await members.add_to_team(connection, self._teams[domain], user.id)
            self._askers[key] = Audience(user.id, 0, is_private=True)
        return self._askers[key]

    def _owner(self, belief: Belief, somebody: int) -> str:
        if belief.raw["user_id"] != HOLDER:
            return own_key(somebody)
        [scope] = belief.raw["scope"]
        return team_key(self._teams[scope])


def _content(belief: Belief) -> Content:
    names = (belief.raw["canonical_name"].replace("_", " "), *belief.raw["aliases"])
    return Content(belief.type, names[0], belief.raw["content"], concepts=names)


async def _judge(
    memory: Memory, case: Case, asker: Audience, beliefs: Mapping[str, Belief], names: Mapping[int, str]
) -> Judged:
    began = time.perf_counter()
    found = await memory.recall(asker, 0, case.query)
    took = (time.perf_counter() - began) * 1000
    returned = [names[each.id] for each in found.observations]
    questions = {name for name in returned if beliefs[name].type is Type.TASK}
    relevant = [name for name in returned if name not in questions and not beliefs[name].is_pinned]
    judged = Judged(case, returned, ms=took)
    if case.only is not None:
        hits = len(case.only & set(relevant))
        judged.precision = hits / len(relevant) if relevant else 0.0 if case.only else None
        judged.recall = hits / len(case.only) if case.only else None
        if frozenset(relevant) != case.only:
            judged.wrong.append("only")
    if case.never & (set(returned) - questions):
        judged.wrong.append("never")
    if not case.questions <= questions or case.no_questions & questions:
        judged.wrong.append("questions")
    return judged


def _by_category(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    found: dict[str, list[Judged]] = {}
    for each in judged:
        found.setdefault(each.case.category, []).append(each)
    return found


def _summary(judged: Sequence[Judged]) -> dict[str, object]:
    active = [each for each in judged if each.is_active]
    empty = [each for each in judged if not each.is_active]
    return {
        "passed": sum(not each.wrong for each in judged),
        "of": len(judged),
        "active_passed": sum(not each.wrong for each in active),
        "active": len(active),
        "empty_passed": sum(not each.wrong for each in empty),
        "empty": len(empty),
        "excluded_shown": sum("never" in each.wrong for each in judged),
        "precision": _mean([each.precision for each in judged]),
        "recall": _mean([each.recall for each in judged]),
        "ms": _mean([each.ms for each in judged]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    counted = [value for value in values if value is not None]
    return round(sum(counted) / len(counted), 3) if counted else None


def table(result: Mapping[str, Any]) -> str:
    """For people."""
    head = f"{'':34}{'passed':>9}{'asked for':>11}{'nothing':>9}{'precision':>11}{'recall':>8}"
    named: dict[str, Raw] = {"all": result, **result["by_category"]}
    lines = [
        f"{name:34}{row['passed']:>5}/{row['of']:<3}{row['active_passed']:>7}/{row['active']:<3}"
        f"{row['empty_passed']:>5}/{row['empty']:<3}{_figure(row['precision']):>11}{_figure(row['recall']):>8}"
        for name, row in named.items()
    ]
    end = f"{result['excluded_shown']} cases showed what they exclude; {result['left_out']} cases do not apply."
    return "\n".join([head, *lines, end])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
