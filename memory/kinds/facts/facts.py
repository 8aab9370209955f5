"""Facts: what somebody asked to be kept, word for word, shown to the model in full.

Rule: what is told of a write is told from the stored row (pitfall P09); nothing is written without an audience.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import to_ms
from memory.kinds.facts import store
from memory.language.matching import by_words, clearly_nearest
from memory.language.slots import are_rivals, say_the_same, slot
from memory.language.text import clean, content_hash, has_words, normal_form
from memory.language.vocabulary import FIRST_PERSON
from memory.language.words import content_words, tokens
from memory.ports import Clock, Embedder, EmbedderError, Vector
from memory.scope import Audience
from memory.secrets import redact_secrets
from memory.storage.database import Database
from memory.types import Fact, FactRefused, Found, MemorySettings, Remembered

_FactList = list[Fact]  # in the class `list` is the method

log = structlog.get_logger(__name__)


class Facts:
    """The facts of every owner; each call says for whom."""

    def __init__(self, database: Database, clock: Clock, embedder: Embedder, settings: MemorySettings) -> None:
        self._database = database
        self._clock = clock
        self._embedder = embedder
        self._settings = settings

    async def list(self, audience: Audience) -> _FactList:
        """Everything that holds for this audience, in the order it was told."""
        async with self._database.read() as connection:
            return await store.in_force(connection, audience)

    async def page(self, audience: Audience, *, offset: int, limit: int) -> tuple[_FactList, int]:
        """A page of `list`, and how many there are in all."""
        async with self._database.read() as connection:
            found = await store.page(connection, audience, offset=offset, limit=limit)
            return found, await store.count(connection, audience)

    async def by_id(self, audience: Audience, fact_id: int) -> Fact | None:
        async with self._database.read() as connection:
            return await store.by_id(connection, audience, fact_id)

    async def budget_used(self, audience: Audience) -> float:
        """Share of the facts budget in use, 1.0 = full."""
        async with self._database.read() as connection:
            return await store.characters(connection, audience) / self._settings.facts_budget

    async def find(self, audience: Audience, query: str) -> _FactList:
        """The facts of `search`."""
        return [*(await self.search(audience, query)).facts]

    async def search(self, audience: Audience, query: str) -> Found:
        """The facts that a few words mean, best first: by the words, else by meaning."""
        facts = await self.list(audience)
        if found := by_words([fact.text for fact in facts], query):
            return Found(tuple(facts[i] for i in found))
        return Found(tuple(await self._by_meaning(facts, query)), by_words=False)

    async def remember(
        self, audience: Audience, speaker: str, text: str, source_message_ids: Sequence[int] = ()
    ) -> Remembered:
        """Keep a fact for this audience. Raises `FactRefused` ("empty", "full")."""
        kept, redacted = self._kept_form(text)
        async with self._database.write() as connection:
            known = await self._known(connection, audience, kept)
            if known is not None:
                fact = await store.add_evidence(connection, known, source_message_ids)
                return await self._remembered(connection, audience, fact, was_known=True, redacted=redacted)
            await self._check_budget(connection, audience, added=len(kept))
            fact = await self._insert(connection, audience, speaker, kept, source_message_ids)
            return await self._remembered(connection, audience, fact, redacted=redacted)

    async def edit(self, audience: Audience, fact_id: int, text: str) -> Remembered:
        """Put another wording in the place of a fact; the old one becomes history. Raises `FactRefused`."""
        kept, redacted = self._kept_form(text)
        async with self._database.write() as connection:
            old = await store.by_id(connection, audience, fact_id)
            if old is None:
                raise FactRefused("gone")
            if kept == old.text:
                return await self._remembered(connection, audience, old, was_known=True, redacted=redacted)
            await self._check_budget(connection, audience, added=len(kept) - len(old.text))
            # the old row must be out of force first: the same wording in another case is the same hash
            await store.supersede(connection, audience, [old.id], 0, self._now())
            known = await store.by_hash(connection, audience, hash_of(audience, kept))
            new = known or await self._insert(connection, audience, old.speaker, kept, old.source_message_ids)
            await store.point_to(connection, audience, old.id, new.id)
            return await self._remembered(connection, audience, new, was_known=known is not None, redacted=redacted)

    async def settle(self, audience: Audience, new_id: int, choice: Literal["new", "both", "old"]) -> _FactList:
        """Decide between a new fact and its rivals; return what holds of them now. Raises `FactRefused` ("gone")."""
        async with self._database.write() as connection:
            new = await store.by_id(connection, audience, new_id)
            if new is None:
                raise FactRefused("gone")
            rivals = await self._rivals(connection, audience, new)
            if choice == "new":
                await store.supersede(connection, audience, [rival.id for rival in rivals], new.id, self._now())
                return [new]
            if choice == "old" and rivals:
                await store.supersede(connection, audience, [new.id], rivals[-1].id, self._now())
                return rivals
            return [*rivals, new]

    async def undo(self, audience: Audience, fact_id: int) -> Fact | None:
        """Take back a fact that was just kept: its row goes and what it replaced holds again. None when it is gone."""
        async with self._database.write() as connection:
            fact = await store.by_id(connection, audience, fact_id)
            if fact is not None:
                await store.delete(connection, audience, fact.id)
                await store.revive(connection, audience, fact.id)
            return fact

    # --- writing ----------------------------------------------------------------------------------

    def _kept_form(self, text: str) -> tuple[str, bool]:
        redacted, had_secrets = redact_secrets(clean(text))
        kept = redacted.rstrip(" \t\n.;,")
        if not has_words(kept):
            raise FactRefused("empty")
        return kept, had_secrets

    async def _known(self, connection: AsyncConnection, audience: Audience, text: str) -> Fact | None:
        """The fact that says the same: by its wording, or by slot, value and all other words."""
        known = await store.by_hash(connection, audience, hash_of(audience, text))
        if known is not None or (about := slot(text)) is None:
            return known
        others = await store.in_slot(connection, audience, about)
        return next((other for other in others if say_the_same(other.text, text)), None)

    async def _insert(
        self, connection: AsyncConnection, audience: Audience, speaker: str, text: str, sources: Sequence[int]
    ) -> Fact:
        now = self._now()
        return await store.insert(
            connection,
            {
                "owner": audience.owner,
                "scope": audience.scope,
                "user_id": audience.user_id,
                "speaker": clean(speaker),
                "text": text,
                "content_hash": hash_of(audience, text),
                "slot": slot(text),
                "source_message_ids": sorted(set(sources)),
                "network": store.network_of(audience),
                "valid_from": now,
                "created_at": now,
            },
        )

    async def _check_budget(self, connection: AsyncConnection, audience: Audience, *, added: int) -> None:
        """Refuse what would not fit; what makes the total smaller always fits (pitfall P21)."""
        total = await store.characters(connection, audience) + added
        if added > 0 and total > self._settings.facts_budget:
            raise FactRefused("full")

    async def _remembered(
        self,
        connection: AsyncConnection,
        audience: Audience,
        fact: Fact,
        *,
        was_known: bool = False,
        redacted: bool = False,
    ) -> Remembered:
        rivals = () if was_known else tuple(await self._rivals(connection, audience, fact))
        used = await store.characters(connection, audience) / self._settings.facts_budget
        return Remembered(fact, was_known=was_known, redacted=redacted, rivals=rivals, budget_used=used)

    async def _rivals(self, connection: AsyncConnection, audience: Audience, fact: Fact) -> _FactList:
        if fact.slot is None:
            return []
        others = await store.in_slot(connection, audience, fact.slot)
        return [other for other in others if other.id != fact.id and are_rivals(other.text, fact.text)]

    # --- finding ----------------------------------------------------------------------------------

    async def nearness(self, facts: Sequence[Fact], wanted: Vector) -> Sequence[float]:
        """How near each is to a vector: embedded on the fly, for their vectors are stored nowhere. Raises
        EmbedderError.
        """
        if not facts:
            return ()
        return (np.stack(await self._embedder.embed_documents([fact.text for fact in facts])) @ wanted).tolist()

    async def _by_meaning(self, facts: Sequence[Fact], query: str) -> _FactList:
        if not facts or not content_words(query):
            return []
        try:
            near = await self.nearness(facts, await self._embedder.embed_query(normal_form(query)))
        except EmbedderError:
            log.warning("facts.find_without_embedder")
            return []
        return [facts[i] for i in clearly_nearest(np.asarray(near, np.float32), self._embedder.floor)]

    def _now(self) -> int:
        return to_ms(self._clock.now())


def hash_of(audience: Audience, text: str) -> str:
    """Hash of the normal form. What two people of a group say of themselves are two facts, not one."""
    is_of_oneself = not audience.is_private and not FIRST_PERSON.isdisjoint(tokens(text))
    return content_hash(text, str(audience.user_id)) if is_of_oneself else content_hash(text)
