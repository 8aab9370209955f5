"""What a person means to forget by a few words: facts and observations, found by one rule, within their scope.

Rule: only what this person may forget is offered; what was noticed in the very words of a fact goes with the fact.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from memory.kinds.facts.facts import Facts
from memory.kinds.observations.observation import Observation
from memory.kinds.observations.observations import Observations
from memory.language.matching import all_words, by_words, clearly_nearest
from memory.language.text import normal_form
from memory.language.words import content_words
from memory.ports import Embedder, EmbedderError, Vector
from memory.scope import Audience
from memory.storage import erasure
from memory.storage.database import Database
from memory.types import Fact

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Match:
    """One thing that can be forgotten: a fact with what was noticed in its words, or an observation."""

    fact: Fact | None
    observations: tuple[Observation, ...] = ()

    @property
    def text(self) -> str:
        return self.fact.text if self.fact else self.observations[0].narrative


@dataclass(frozen=True, slots=True)
class Matches:
    """Best first."""

    things: tuple[Match, ...] = ()
    by_words: bool = True
    """False: none has the words, these are near in meaning. A guess, to be offered one by one."""
    is_others: bool = False
    """Nothing was found but what only somebody else may forget."""


class Forgettable:
    """Finds it."""

    def __init__(self, database: Database, facts: Facts, observations: Observations, embedder: Embedder) -> None:
        self._database = database
        self._facts = facts
        self._observations = observations
        self._embedder = embedder

    async def find(self, audience: Audience, query: str, *, sensitive: bool = False) -> Matches:
        """By the words, in what holds before what was replaced; else by meaning. `sensitive` as in `shown_to`."""
        facts = await self._facts.list(audience)
        mine, others = await self._observations.everything(audience, sensitive=sensitive)
        current = [each for each in mine if each.superseded_by is None]
        # a thread, so that a memory of years holds nobody's answer up
        for rows in ((*facts, *current), tuple(each for each in mine if each.superseded_by is not None)):
            if found := await asyncio.to_thread(by_words, [_text(each) for each in rows], query):
                return Matches(fold([rows[i] for i in found]))
        if await asyncio.to_thread(by_words, [_text(each) for each in others], query):
            return Matches(is_others=True)
        near = await self._by_meaning(audience, (facts, current), query, sensitive=sensitive)
        return Matches(fold(near), by_words=False)

    async def chosen(
        self, audience: Audience, fact_ids: Sequence[int], observation_ids: Sequence[int], *, sensitive: bool = False
    ) -> tuple[Match, ...]:
        """Those of them that are still there, and may be forgotten by this person."""
        facts = {fact.id: fact for fact in await self._facts.list(audience)}
        rows = await self._observations.disposable(audience, observation_ids, sensitive=sensitive)
        return fold([*(facts[id] for id in fact_ids if id in facts), *rows])

    async def said_in(self, audience: Audience, query: str) -> list[int]:
        """The sessions of this audience in which these words were said, all of them in one message, newest first."""
        async with self._database.search() as connection:
            lines = await erasure.lines_of(connection, audience.visible)
        found = await asyncio.to_thread(all_words, [line.text for line in lines], query)
        newest = {lines[i].session_id: lines[i].id for i in sorted(found)}
        return sorted(newest, key=lambda session_id: -newest[session_id])

    async def _by_meaning(
        self, audience: Audience, among: tuple[Sequence[Fact], Sequence[Observation]], query: str, *, sensitive: bool
    ) -> list[Fact | Observation]:
        facts, rows = among
        if not (facts or rows) or not content_words(query):
            return []
        try:
            wanted = await self._embedder.embed_query(normal_form(query))
            cosines = [*await self._facts.nearness(facts, wanted)]
        except EmbedderError:
            log.warning("forget.find_without_embedder")
            return []
        near = await self._noticed(audience, wanted, sensitive=sensitive)
        every: list[Fact | Observation] = [*facts, *(each for each in rows if each.id in near)]
        cosines += [near[each.id] for each in every[len(facts) :]]
        return [every[i] for i in clearly_nearest(np.asarray(cosines, np.float32), self._embedder.floor)]

    async def _noticed(self, audience: Audience, wanted: Vector, *, sensitive: bool) -> dict[int, float]:
        try:
            return await self._observations.nearness(audience, wanted, sensitive=sensitive)
        except OSError:
            log.warning("forget.find_without_index")
            return {}


def fold(found: Sequence[Fact | Observation]) -> tuple[Match, ...]:
    """One match a thing: an observation that rests on nothing but the messages of a fact goes with that fact."""
    noticed = [each for each in found if isinstance(each, Observation)]
    with_facts: dict[int, list[Observation]] = {}
    for fact in found:
        if isinstance(fact, Fact):
            said = set(fact.source_message_ids)
            with_facts[fact.id] = [each for each in noticed if _sources(each) and _sources(each) <= said]
            noticed = [each for each in noticed if each not in with_facts[fact.id]]
    return tuple(
        Match(each, tuple(with_facts[each.id])) if isinstance(each, Fact) else Match(None, (each,))
        for each in found
        if isinstance(each, Fact) or each in noticed
    )


def _sources(observation: Observation) -> set[int | None]:
    return {each.message_id for each in observation.evidence}


def _text(thing: Fact | Observation) -> str:
    if isinstance(thing, Fact):
        return thing.text
    return "\n".join((thing.content.body, *thing.content.texts, *(each.quote for each in thing.evidence)))
