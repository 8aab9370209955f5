"""How well recall does on a person's own chats: measured on what their answers cited and on what they confirmed.

Rule: a question is asked again as it was then: only of what was said before it, and never of its own session.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import structlog

from memory import telemetry
from memory.instants import from_ms, to_ms
from memory.kinds.observations.reading import Reading
from memory.ports import Clock, Embedder, EmbedderError, Vector
from memory.recall import replaced
from memory.recall.finder import Finder, Ranked, asks
from memory.recall.fitting import Sample, refit, whole
from memory.recall.fusion import WEIGHTS
from memory.recall.shelf import Ints
from memory.scope import Audience
from memory.storage import kept
from memory.storage.database import Database
from memory.storage.feedback import use
from memory.storage.labelled import Labelled, labelled

WINDOW = timedelta(days=30)
MOST = 200
"""Questions of one person that are asked again in a night."""
_SAMPLED = 300
"""The best messages of a question, from which weights are learned."""
_PAUSE_SECONDS = 0.02
_WEIGHTS = "memory.fusion_weights"
"""kept_values: weights that did better than the default on questions held out."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question asked again: where its evidence stands now, best first, counted from 0."""

    ranks: tuple[int, ...]
    newer_first: tuple[bool, ...]
    """For each memory that was replaced: what replaced it is found before it."""
    sample: Sample


class Quality:
    """Measures once a night; writes only figures."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        finder: Finder,
        observations: Reading,
        embedder: Embedder,
        *,
        learns: bool,
    ) -> None:
        self._database = database
        self._clock = clock
        self._finder = finder
        self._observations = observations
        self._embedder = embedder
        self._learns = learns

    @property
    def weights(self) -> Mapping[str, float]:
        """With which messages are ranked now."""
        return self._finder.weights

    async def load(self) -> None:
        """Take the weights that were learned before, where they are wanted."""
        if self._learns:
            async with self._database.read() as connection:
                found = await kept.load(connection, _WEIGHTS)
            if found:
                self._finder.weights = dict(WEIGHTS) | found["weights"]

    async def run(self) -> list[telemetry.RecallQuality]:
        """Measure for everybody of whom something can be told; return what was recorded."""
        since = to_ms(self._clock.now() - WINDOW)
        async with self._database.search() as connection:
            by_person = await labelled(connection, since, MOST)
        told: list[telemetry.RecallQuality] = []
        samples: list[Sample] = []
        for user_id, questions in by_person.items():
            try:
                asked = [found for each in questions if (found := await self._again(each)) is not None]
            except EmbedderError as error:  # without it the figures would be another system's
                log.warning("quality.not_measured", error=type(error).__name__)
                return told
            samples += [each.sample for each in asked]
            if (event := await self._event(user_id, asked, since)) is not None:
                told.append(event)
        async with self._database.write() as connection:
            await telemetry.record_all(connection, told, to_ms(self._clock.now()))
        if self._learns:
            await self._learn(samples)
        return told

    async def _event(self, user_id: int, asked: Sequence[Asked], since: int) -> telemetry.RecallQuality | None:
        async with self._database.search() as connection:
            judged = await use(connection, Audience(user_id, 0, is_private=True).visible, since)
        if not asked and judged.right_share is None:
            return None
        newer = [each for one in asked for each in one.newer_first]
        right = judged.right_share
        return telemetry.RecallQuality(
            user_id=user_id,
            questions=len(asked),
            recall_at_1=_recall(asked, 1),
            recall_at_3=_recall(asked, 3),
            recall_at_10=_recall(asked, 10),
            updates=len(newer),
            update_precedence=float(np.mean(newer)) if newer else None,
            judged=judged.confirmed + judged.rejected,
            rejected_share=None if right is None else 1 - right,
        )

    async def _again(self, one: Labelled) -> Asked | None:
        """None where nothing of its evidence is left to be found."""
        if not asks(one.text):
            return None
        vector = await self._embedder.embed_query(one.text)
        ranked = await self._ranked(one, vector)
        await asyncio.sleep(_PAUSE_SECONDS)
        shelf = ranked.shelf
        then = np.flatnonzero((shelf.ids < one.question_id) & (shelf.sessions != one.session_id))
        order = ranked.ordered(then)
        rank_of = {int(shelf.ids[place]): rank for rank, place in enumerate(order)}
        gold = [rank_of[each] for each in one.evidence if each in rank_of]
        if not gold:
            return None
        pairs = [(_best(new, rank_of), _best(old, rank_of)) for new, old in one.replaced]
        return Asked(
            ranks=tuple(sorted(gold)),
            newer_first=tuple(new < old for new, old in pairs if new is not None and old is not None),
            sample=_sample(ranked, order, gold),
        )

    async def _ranked(self, one: Labelled, vector: Vector) -> Ranked:
        audience = Audience(one.user_id, one.chat_id, is_private=True)
        question, found = await self._finder.words(audience.visible, one.text, from_ms(one.at).date())
        floor = self._embedder.floor
        heard = await self._observations.hear(audience, one.text, session_id=one.session_id)
        sought = None if heard is None else await self._observations.seek(heard, vector)
        async with self._database.search() as connection:
            outdated = await replaced.messages_of(connection, audience)
        return await self._finder.rank(
            question,
            found,
            vector,
            asker=one.user_id,
            replaced=outdated,
            leads=sought.leads if sought else (),
            floor=floor,
        )

    async def _learn(self, samples: Sequence[Sample]) -> None:
        found = await asyncio.to_thread(refit, samples)
        if found is None:
            return
        log.info("quality.refitted", default=round(found.default, 4), fitted=round(found.fitted, 4))
        value = {"weights": dict(found.weights), "default": found.default, "fitted": found.fitted}
        async with self._database.write() as connection:
            await kept.put(connection, _WEIGHTS, value if found.is_better else None, to_ms(self._clock.now()))
        self._finder.weights = found.weights if found.is_better else WEIGHTS


def _recall(asked: Sequence[Asked], k: int) -> float | None:
    """Of the evidence, how much is among the first `k`: mean over questions."""
    return float(np.mean([sum(rank < k for rank in one.ranks) / len(one.ranks) for one in asked])) if asked else None


def _best(messages: Sequence[int], rank_of: Mapping[int, int]) -> int | None:
    return min((rank_of[each] for each in messages if each in rank_of), default=None)


def _sample(ranked: Ranked, order: Ints, gold: Sequence[int]) -> Sample:
    """The best messages and the evidence, wherever it stands."""
    kept_ranks = sorted({*range(min(_SAMPLED, len(order))), *gold})
    places = order[kept_ranks]
    return Sample(
        views={name: view[places] for name, view in whole(ranked.views).items()},
        gold=[kept_ranks.index(rank) for rank in gold],
        foreign=ranked.foreign[places],
    )
