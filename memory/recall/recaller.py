"""What bears on a question: all facts of the audience, and at most a few earlier sessions.

Rule: recall never raises and never makes an answer wait; what did not answer in time is named instead.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import SQLAlchemyError

from memory.instants import from_ms
from memory.kinds.facts.facts import Facts
from memory.kinds.observations.finding import Sought
from memory.kinds.observations.reading import Reading
from memory.kinds.summaries.indexing import SummaryIndex
from memory.kinds.summaries.store import of_row
from memory.kinds.summaries.summary import FIELDS, Summary
from memory.language.text import clean
from memory.ports import Clock, Embedder, EmbedderError, Vector
from memory.recall import replaced
from memory.recall.evidence import Found
from memory.recall.finder import Finder, Ranked, asks
from memory.recall.injection import LINES, fitted
from memory.recall.question import Question
from memory.recall.ranking import Candidate, rank
from memory.scope import Audience, seen_by
from memory.storage.database import Database
from memory.storage.index import lexical
from memory.storage.tables import messages, sessions, summaries
from memory.types import Cited, Fact, MemorySettings, Noticed, Recall, Recollection

_CANDIDATES = 20
_TRACED = 10
_VIEWS = 60
_ARMS_SHARE = 0.8

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Search:
    """One recall as it goes: what is missing and how long the parts took."""

    began: float
    arms_by: float
    """Deadlines on the loop's clock: the arms leave time to load what they found."""
    all_by: float
    asks: bool
    """Whether memory is asked for anything: "hi" and "thanks" do not (pitfall P12)."""
    degraded: list[str] = field(default_factory=list[str])
    ms: dict[str, int] = field(default_factory=dict[str, int])

    def miss(self, part: str, error: BaseException) -> None:
        log.warning("recall.degraded", part=part, error=type(error).__name__)
        if part not in self.degraded:
            self.degraded.append(part)

    def took(self, part: str, since: float) -> None:
        self.ms[part] = round((time.monotonic() - since) * 1000)


class Recaller:
    """Reads only; holds nothing of a turn."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of memory
        self,
        database: Database,
        facts: Facts,
        observations: Reading,
        index: SummaryIndex,
        finder: Finder,
        embedder: Embedder,
        clock: Clock,
        settings: MemorySettings,
    ) -> None:
        self._database = database
        self._facts = facts
        self._observations = observations
        self._index = index
        self._finder = finder
        self._embedder = embedder
        self._clock = clock
        self._settings = settings

    @property
    def floor(self) -> float:
        return self._embedder.floor if self._settings.floor is None else self._settings.floor

    async def recall(self, audience: Audience, session_id: int, text: str) -> Recall:
        """Facts in full and the earlier sessions that bear on `text`, never `session_id` itself. Never raises."""
        now = asyncio.get_running_loop().time()
        search = _Search(
            began=time.monotonic(),
            arms_by=now + self._settings.recall_seconds * _ARMS_SHARE,
            all_by=now + self._settings.recall_seconds,
            asks=self._settings.recall_sessions > 0 and asks(text),
        )
        async with asyncio.TaskGroup() as arms:  # none outlives another's failure: it would hold a connection
            vector = arms.create_task(self._embedded(search, text))  # what takes longest begins first
            sought = arms.create_task(self._sought(search, audience, session_id, text, vector))  # ranking waits for it
            meaning = arms.create_task(self._meaning(search, audience, vector))
            noticed = arms.create_task(self._noticed(search, sought))
            by_words = arms.create_task(self._words(search, audience, text))
            in_log = arms.create_task(self._said(search, audience, text))
            ranking = arms.create_task(self._ranked(search, audience, in_log, vector, sought))
            kept = arms.create_task(self._all_facts(search, audience))
        cosines, words, ranked, facts = meaning.result(), by_words.result(), ranking.result(), kept.result()
        candidates = rank(
            [] if ranked is None else ranked.sessions(_CANDIDATES, without=session_id, lines=LINES, floor=self.floor),
            {each: cosine for each, cosine in cosines.items() if each != session_id},  # what is going on
            {each: weight for each, weight in words.items() if each != session_id},  # is no memory (pitfall P11)
            floor=self.floor,
            limit=_CANDIDATES,
        )
        found = await self._sessions(search, audience, candidates)
        search.took("all", search.began)
        return Recall(
            facts=tuple(facts),
            recollections=fitted([recollection for _, recollection in found]),
            observations=noticed.result(),
            degraded=tuple(search.degraded),
            trace=self._trace(search, facts, [each for each, _ in found])
            | {"candidates": _candidates(ranked), "observations": _figures(noticed.result())},
        )

    async def _all_facts(self, search: _Search, audience: Audience) -> list[Fact]:
        started = time.monotonic()
        try:
            async with asyncio.timeout_at(search.arms_by):
                return await self._facts.list(audience)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return []
        finally:
            search.took("facts", started)

    async def _said(self, search: _Search, audience: Audience, text: str) -> tuple[Question, Found, set[int]] | None:
        """The messages of this audience and where the question's words stand in them."""
        if not search.asks:
            return None
        started = time.monotonic()
        try:
            async with asyncio.timeout_at(search.arms_by):
                question, found = await self._finder.words(audience.visible, text, self._clock.now().date())
                async with self._database.read() as connection:
                    return question, found, await replaced.messages_of(connection, audience)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return None
        finally:
            search.took("said", started)

    async def _ranked(
        self,
        search: _Search,
        audience: Audience,
        in_log: "asyncio.Task[tuple[Question, Found, set[int]] | None]",
        vector: "asyncio.Task[Vector | None]",
        sought: "asyncio.Task[Sought | None]",
    ) -> Ranked | None:
        said, wanted, keys = await in_log, await vector, await sought
        if said is None:
            return None
        started = time.monotonic()
        question, found, outdated = said
        try:
            return await self._finder.rank(
                question,
                found,
                wanted,
                asker=audience.user_id,
                replaced=outdated,
                leads=keys.leads if keys else (),
                floor=self.floor,
            )
        finally:
            search.took("rank", started)

    async def _sessions(
        self, search: _Search, audience: Audience, candidates: Sequence[Candidate]
    ) -> list[tuple[Candidate, Recollection]]:
        if not candidates:
            return []
        try:
            async with asyncio.timeout_at(search.all_by):
                return await self._load(audience, candidates)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return []

    async def _sought(
        self, search: _Search, audience: Audience, session_id: int, text: str, vector: "asyncio.Task[Vector | None]"
    ) -> Sought | None:
        """The observations that may bear on it: ways to messages, before they are read."""
        if not search.asks:
            return None
        started = time.monotonic()
        try:
            async with asyncio.timeout_at(search.all_by):
                heard = await self._observations.hear(audience, text, session_id=session_id)
                return None if heard is None else await self._observations.seek(heard, await vector)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return None
        finally:
            search.took("observations", started)

    async def _noticed(self, search: _Search, sought: "asyncio.Task[Sought | None]") -> tuple[Noticed, ...]:
        found = await sought
        if found is None:
            return ()
        try:
            async with asyncio.timeout_at(search.all_by):
                return await self._observations.shown(found, floor=self.floor)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return ()

    async def _words(self, search: _Search, audience: Audience, text: str) -> dict[int, float]:
        if not search.asks:
            return {}
        started = time.monotonic()
        try:
            async with asyncio.timeout_at(search.arms_by), self._database.search() as connection:
                hits = await lexical.search(connection, audience.visible, text, _CANDIDATES)
                return {hit.session_id: hit.weight for hit in hits}
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return {}
        finally:
            search.took("words", started)

    async def _embedded(self, search: _Search, text: str) -> Vector | None:
        """The question as the embedder sees it; None where it did not answer, or nothing is asked."""
        if not search.asks:
            return None
        try:
            async with asyncio.timeout_at(search.arms_by):
                return await self._embedder.embed_query(text)
        except (EmbedderError, OSError, TimeoutError) as error:
            search.miss("embedder", error)
            return None
        finally:
            search.took("embedder", search.began)

    async def _meaning(
        self, search: _Search, audience: Audience, vector: "asyncio.Task[Vector | None]"
    ) -> dict[int, float]:
        wanted = await vector
        if wanted is None:
            return {}
        try:
            async with asyncio.timeout_at(search.arms_by):
                return await self._index.nearest(audience.visible, wanted, _VIEWS)
        except (OSError, TimeoutError) as error:
            search.miss("index", error)
            return {}
        finally:
            search.took("meaning", search.began)

    async def _load(self, audience: Audience, candidates: Sequence[Candidate]) -> list[tuple[Candidate, Recollection]]:
        """The best of them that are still there and which this audience may see, with something to show."""
        ids = [each.session_id for each in candidates]
        async with self._database.read() as connection:
            rows = (await connection.execute(_sessions_for(audience), {"found": ids})).mappings().all()
            there = {row["id"]: row for row in rows}
            best = [
                each
                for each in candidates
                if each.session_id in there and (each.lines or there[each.session_id]["text"])
            ][: self._settings.recall_sessions]
            wanted = [line.message_id for each in best for line in each.lines]
            said = (await connection.execute(_LINES, {"found": wanted})).all()
        lines = {int(row[0]): Cited(row[0], row[1], clean(row[2]), from_ms(row[3])) for row in said}
        return [(each, _recollection(there[each.session_id], each, lines)) for each in best]

    def _trace(self, search: _Search, facts: Sequence[Fact], evidence: Sequence[Candidate]) -> dict[str, Any]:
        """Ids and figures of how this was found; never text."""
        return {
            "facts": [fact.id for fact in facts],
            "sessions": [
                {
                    "id": each.session_id,
                    "score": round(each.score, 3),
                    "cosine": None if each.cosine is None else round(each.cosine, 3),
                    "words": round(each.words, 2),
                    "lines": [line.message_id for line in each.lines],
                }
                for each in evidence
            ],
            "floor": self.floor,
            "ms": search.ms,
            "degraded": list(search.degraded),
        }


@lru_cache(maxsize=1000)
def _sessions_for(audience: Audience) -> sa.Select[Any]:
    """The sessions that were `found`, as far as this audience may see them, with their summaries."""
    last = sa.select(messages.c.created_at).where(messages.c.id == summaries.c.watermark).scalar_subquery()
    of_it = sa.and_(summaries.c.session_id == sessions.c.id, seen_by(summaries.c.owner, audience))
    return (
        sa.select(
            sessions.c.id,
            sessions.c.title,
            *(summaries.c[name] for name in FIELDS),
            sa.func.coalesce(last, summaries.c.updated_at, sessions.c.last_used_at).label("at"),
        )
        .select_from(sessions.outerjoin(summaries, of_it))
        .where(seen_by(sessions.c.owner, audience), sessions.c.id.in_(sa.bindparam("found", expanding=True)))
    )


_LINES = sa.select(messages.c.id, messages.c.speaker, messages.c.text, messages.c.created_at).where(
    messages.c.id.in_(sa.bindparam("found", expanding=True)), ~messages.c.is_ephemeral
)


def _candidates(ranked: Ranked | None) -> list[dict[str, Any]]:
    """The best messages with their score in every view: why these and no others."""
    if ranked is None or not len(ranked.shelf):
        return []
    return [
        {
            "message": int(ranked.shelf.ids[place]),
            "session": int(ranked.shelf.sessions[place]),
            "score": round(float(ranked.scores[place]), 3),
            "views": {name: round(value, 3) for name, value in ranked.why(place).items()},
        }
        for place in ranked.best(_TRACED).tolist()
    ]


def _figures(noticed: Sequence[Noticed]) -> list[dict[str, Any]]:
    return [{"id": each.id, "score": round(each.score, 3), "reason": each.reason} for each in noticed]


def _recollection(row: sa.RowMapping, candidate: Candidate, lines: Mapping[int, Cited]) -> Recollection:
    return Recollection(
        session_id=row["id"],
        title=clean(row["title"]),
        text=clean(as_record(of_row(row))) if row["text"] else "",
        at=from_ms(row["at"]),
        score=candidate.score,
        reason=candidate.reason,
        lines=tuple(lines[line.message_id] for line in candidate.lines if line.message_id in lines),
    )


def as_record(summary: Summary) -> str:
    """A summary as lines to read: what was said and found, and what was open at its end (never a task, P18)."""
    still_open = f"Open at that time: {summary.next_steps}" if summary.next_steps else ""
    lines = (summary.text, summary.learned, summary.completed, summary.notes, still_open)
    return "\n".join(dict.fromkeys(line for line in lines if line))
