"""What bears on a question: all facts of the audience, and at most a few earlier sessions.

Rule: recall never raises and never makes an answer wait; what did not answer in time is named instead.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import SQLAlchemyError

from memory.instants import from_ms
from memory.kinds.facts.facts import Facts
from memory.kinds.summaries.indexing import SummaryIndex
from memory.kinds.summaries.store import of_row
from memory.kinds.summaries.summary import Summary
from memory.language.text import clean
from memory.language.words import content_words
from memory.ports import Embedder, EmbedderError
from memory.recall.ranking import Evidence, rank
from memory.scope import Audience, seen_by
from memory.storage import lexical
from memory.storage.database import Database
from memory.storage.tables import messages, sessions, summaries
from memory.types import Fact, MemorySettings, Recall, Recollection

_CANDIDATES = 20
_VIEWS = 60
_ARMS_SHARE = 0.8

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Search:
    """One recall as it goes: what is missing and how long the parts took."""

    arms_by: float
    """Deadlines on the loop's clock: the arms leave time to load what they found."""
    all_by: float
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

    def __init__(
        self, database: Database, facts: Facts, index: SummaryIndex, embedder: Embedder, settings: MemorySettings
    ) -> None:
        self._database = database
        self._facts = facts
        self._index = index
        self._embedder = embedder
        self._settings = settings

    @property
    def floor(self) -> float:
        return self._embedder.floor if self._settings.floor is None else self._settings.floor

    async def recall(self, audience: Audience, session_id: int, text: str) -> Recall:
        """Facts in full and the earlier sessions that bear on `text`, never `session_id` itself. Never raises."""
        started = time.monotonic()
        now = asyncio.get_running_loop().time()
        search = _Search(
            arms_by=now + self._settings.recall_seconds * _ARMS_SHARE, all_by=now + self._settings.recall_seconds
        )
        facts, found = await asyncio.gather(
            self._all_facts(search, audience), self._sessions(search, audience, session_id, text)
        )
        search.took("all", started)
        return Recall(
            facts=tuple(facts),
            recollections=tuple(recollection for _, recollection in found),
            degraded=tuple(search.degraded),
            trace=self._trace(search, facts, [evidence for evidence, _ in found]),
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

    async def _sessions(
        self, search: _Search, audience: Audience, session_id: int, text: str
    ) -> list[tuple[Evidence, Recollection]]:
        if not content_words(text) or self._settings.recall_sessions == 0:
            return []  # "hi" and "thanks" ask nothing (pitfall P12)
        words, cosines = await asyncio.gather(
            self._words(search, audience, text), self._meaning(search, audience, text)
        )
        for arm in (words, cosines):
            arm.pop(session_id, None)  # what is going on is no memory (pitfall P11)
        evidence = rank(cosines, words, floor=self.floor, limit=_CANDIDATES)
        try:
            async with asyncio.timeout_at(search.all_by):
                recollections = await self._load(audience, [each.session_id for each in evidence], evidence)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return []
        pairs = [(each, recollections[each.session_id]) for each in evidence if each.session_id in recollections]
        return pairs[: self._settings.recall_sessions]

    async def _words(self, search: _Search, audience: Audience, text: str) -> dict[int, float]:
        started = time.monotonic()
        try:
            async with asyncio.timeout_at(search.arms_by), self._database.read() as connection:
                hits = await lexical.search(connection, audience.visible, text, _CANDIDATES)
                return {hit.session_id: hit.weight for hit in hits}
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            search.miss("store", error)
            return {}
        finally:
            search.took("words", started)

    async def _meaning(self, search: _Search, audience: Audience, text: str) -> dict[int, float]:
        started = time.monotonic()
        part = "embedder"
        try:
            async with asyncio.timeout_at(search.arms_by):
                vector = await self._embedder.embed_query(text)
                part = "index"
                return await self._index.nearest(audience.visible, vector, _VIEWS)
        except (EmbedderError, OSError, TimeoutError) as error:
            search.miss(part, error)
            return {}
        finally:
            search.took("meaning", started)

    async def _load(
        self, audience: Audience, session_ids: Sequence[int], evidence: Sequence[Evidence]
    ) -> dict[int, Recollection]:
        """The summaries that are still there and that this audience may see."""
        last = sa.select(messages.c.created_at).where(messages.c.id == summaries.c.watermark).scalar_subquery()
        query = (
            sa.select(summaries, sessions.c.title, sa.func.coalesce(last, summaries.c.updated_at).label("at"))
            .join(sessions, sessions.c.id == summaries.c.session_id)
            .where(
                seen_by(summaries.c.owner, audience),
                seen_by(sessions.c.owner, audience),
                summaries.c.session_id.in_(session_ids),
            )
        )
        why = {each.session_id: each for each in evidence}
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return {row["session_id"]: _recollection(row, why[row["session_id"]]) for row in rows}

    def _trace(self, search: _Search, facts: Sequence[Fact], evidence: Sequence[Evidence]) -> dict[str, Any]:
        """Ids and figures of how this was found; never text."""
        return {
            "facts": [fact.id for fact in facts],
            "sessions": [
                {
                    "id": each.session_id,
                    "score": round(each.score, 3),
                    "cosine": None if each.cosine is None else round(each.cosine, 3),
                    "words": round(each.words, 2),
                }
                for each in evidence
            ],
            "floor": self.floor,
            "ms": search.ms,
            "degraded": list(search.degraded),
        }


def _recollection(row: sa.RowMapping, evidence: Evidence) -> Recollection:
    return Recollection(
        session_id=row["session_id"],
        title=clean(row["title"]),
        text=clean(as_record(of_row(row))),
        at=from_ms(row["at"]),
        score=evidence.score,
        reason=evidence.reason,
    )


def as_record(summary: Summary) -> str:
    """A summary as lines to read: what was said and found, and what was open at its end (never a task, P18)."""
    still_open = f"Open at that time: {summary.next_steps}" if summary.next_steps else ""
    lines = (summary.text, summary.learned, summary.completed, summary.notes, still_open)
    return "\n".join(dict.fromkeys(line for line in lines if line))
