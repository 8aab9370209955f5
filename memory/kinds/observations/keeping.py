"""One memory, not ten copies: how a draft becomes a row, a further proof of one, or the end of another.

Rule: what it resembles is looked up and asked before the transaction; what it is and what it ends is decided inside.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import to_ms
from memory.kinds.observations import merging, store
from memory.kinds.observations.merging import Likeness
from memory.kinds.observations.observation import Content, Observation, Trigger
from memory.ports import Embedder, EmbedderError, LanguageModel, ModelError, Tier
from memory.storage.database import Database
from memory.storage.index import lexical
from memory.storage.index.vectors import OfKind
from memory.storage.tables import observations

_NEIGHBOURS = 8
_DOUBTS = 2
"""Questions to the model that one observation is worth."""

Outcome = Literal["new", "repeated", "superseded", "asked", "history", "known", "hidden"]
"""new; said again; took another's place; stands beside a rival until somebody says which holds; older than what holds;
made of this very message before; rejected by a person before."""


@dataclass(slots=True)
class Budget:
    """Calls of a model that are left to one piece of work."""

    calls: int
    tokens: int = 0
    """Spent so far, in and out."""

    def take(self) -> bool:
        self.calls -= 1
        return self.calls >= 0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be kept, for whom, and on what it rests."""

    content: Content
    owner: str
    user_id: int | None
    trigger: Trigger
    message_id: int | None = None
    quote: str = ""
    session_id: int | None = None
    at: int | None = None
    """When it was said, milliseconds since the epoch; None = now."""
    valid_to: int | None = None
    prompt_version: str | None = None
    cost_tokens: int = 0
    repeats: tuple[int, ...] = field(default=())
    """Rows that were found to say the same."""
    like: int | None = None
    """The place of an earlier wish of the same batch that says the same."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a wish."""

    id: int
    outcome: Outcome
    ended: tuple[int, ...] = ()
    """Rows that hold no more."""
    rival_id: int | None = None


class Neighbours:
    """What in a scope resembles an observation. Reads only."""

    def __init__(self, database: Database, vectors: OfKind, embedder: Embedder, model: LanguageModel) -> None:
        self._database = database
        self._vectors = vectors
        self._embedder = embedder
        self._model = model

    async def same_as(
        self, content: Content, owner: str, user_id: int | None, now: int, budget: Budget, *, but: Iterable[int] = ()
    ) -> tuple[int, ...]:
        """The rows in force that say the same, the likeliest first. `but` leaves some out."""
        found = await self._near(content, owner, user_id, now, set(but))
        cosines = await self._cosines(content, [each.content for each in found])
        pairs = sorted(zip(found, cosines, strict=True), key=lambda pair: -(pair[1] or 0.0))
        judged = [(each, merging.compare(content, each.content, cosine)) for each, cosine in pairs]
        if same := [each.id for each, likeness in judged if likeness is Likeness.SAME]:
            return tuple(same)
        doubtful = [each for each, likeness in judged if likeness is Likeness.DOUBTFUL]
        for each in doubtful[:_DOUBTS]:
            if await self._is_same(content, each.content, budget):
                return (each.id,)
        return ()

    async def twin_among(self, content: Content, earlier: Sequence[Content], budget: Budget) -> int | None:
        """The place of the first content that says the same; None where there is none."""
        cosines = await self._cosines(content, earlier)
        judged = [merging.compare(content, each, cosine) for each, cosine in zip(earlier, cosines, strict=True)]
        if Likeness.SAME in judged:
            return judged.index(Likeness.SAME)
        if Likeness.DOUBTFUL in judged:
            at = judged.index(Likeness.DOUBTFUL)
            return at if await self._is_same(content, earlier[at], budget) else None
        return None

    async def _is_same(self, content: Content, other: Content, budget: Budget) -> bool:
        try:
            if not (await self._model.traits(Tier.SMALL)).can_follow_schema or not budget.take():
                return False
            verdict, finished = await merging.ask(self._model, content, other)
        except ModelError:
            return False  # kept beside it; the nightly round looks again
        budget.tokens += finished.usage.input + finished.usage.output
        return verdict

    async def _near(
        self, content: Content, owner: str, user_id: int | None, now: int, but: set[int]
    ) -> list[Observation]:
        """By words and by meaning in turn: fusing ranks would drop the twin that only one of them finds."""
        async with self._database.search() as connection:
            hits = await lexical.search(connection, (owner,), content.body, _NEIGHBOURS, table=lexical.OBSERVATIONS)
        by_meaning = await self._by_meaning(content, owner)
        turns = zip_longest([hit.session_id for hit in hits], by_meaning)
        ids = [each for each in dict.fromkeys(each for turn in turns for each in turn) if each is not None]
        async with self._database.search() as connection:
            which = sa.and_(observations.c.id.in_([each for each in ids if each not in but]), store.in_force(now))
            rows = await store.load(connection, (owner,), which)
        return [row for row in rows if is_one_person_or_thing(content, row, owner, user_id)]

    async def _by_meaning(self, content: Content, owner: str) -> list[int]:
        try:
            vector = await self._embedder.embed_query(store.views(content)[0])
            return list(await self._vectors.nearest((owner,), vector, _NEIGHBOURS))
        except (EmbedderError, OSError):
            return []

    async def _cosines(self, content: Content, others: Sequence[Content]) -> list[float | None]:
        """Worked out anew: what was kept a moment ago has no vector yet."""
        if not others:
            return []
        texts = [store.views(each)[0] for each in (content, *others)]
        try:
            mine, *theirs = await self._embedder.embed_documents(texts)
        except EmbedderError:
            return [None] * len(others)
        return [float(cosine) for cosine in np.stack(theirs) @ mine]


def is_one_person_or_thing(content: Content, other: Observation | Wish, owner: str, user_id: int | None) -> bool:
    """Say whether two rows may become one at all: what two people say of themselves stays two (pitfall P06)."""
    if owner.startswith(("u", "s")) or other.user_id == user_id:
        return True
    return all(each.subject and not each.subject.startswith("person:") for each in (content, other.content))


async def keep_all(connection: AsyncConnection, wishes: Sequence[Wish | None], now: int) -> list[Kept | None]:
    """A batch, in its order; None stands for a wish that came to nothing."""
    kept: list[Kept | None] = []
    for wish in wishes:
        earlier = kept[wish.like] if wish is not None and wish.like is not None else None
        if wish is not None and earlier is not None:
            wish = replace(wish, repeats=(earlier.id, *wish.repeats))  # noqa: PLW2901 - now its id is known
        kept.append(None if wish is None else await keep(connection, wish, now))
    return kept


async def keep(connection: AsyncConnection, wish: Wish, now: int) -> Kept:
    """Put a wish into memory, in the caller's transaction."""
    if known := await _made_of_it_before(connection, wish):
        return Kept(known, "known")
    twin = await store.by_hash(connection, wish.owner, wish.content.hash_for(wish.owner, wish.user_id), now)
    if twin is not None and twin.is_hidden:
        return Kept(twin.id, "hidden")
    holding = await store.in_slot(connection, wish.owner, wish.content, now)
    same = twin or next((each for each in holding if merging.agree(each.content.value, wish.content.value)), None)
    same = same or await _still_there(connection, wish, now)
    if same is not None:
        await _repeat(connection, same, wish, now)
        return Kept(same.id, "repeated")
    return await _insert(connection, wish, holding, now)


async def _insert(connection: AsyncConnection, wish: Wish, rivals: Sequence[Observation], now: int) -> Kept:
    at = now if wish.at is None else wish.at
    new_id = await store.insert(
        connection,
        wish.content,
        wish.owner,
        user_id=wish.user_id,
        session_id=wish.session_id,
        trigger=wish.trigger,
        now=now,
        valid_from=at,
        valid_to=wish.valid_to,
        prompt_version=wish.prompt_version,
        cost_tokens=wish.cost_tokens,
    )
    if wish.quote:
        await store.add_evidence(connection, new_id, wish.message_id, wish.quote)
    if not rivals:
        return Kept(new_id, "new")
    latest = max(rivals, key=lambda each: (each.valid_from, each.id))
    if to_ms(latest.valid_from) > at:  # an earlier session was read later: it was so before
        await store.supersede(connection, [new_id], latest.id, to_ms(latest.valid_from), now)
        return Kept(new_id, "history")
    is_sure = wish.content.confidence >= merging.SURE and all(each.user_id == wish.user_id for each in rivals)
    if is_sure or wish.trigger is Trigger.HOOK:
        ended = [each.id for each in rivals]
        await store.supersede(connection, ended, new_id, at, now)
        return Kept(new_id, "superseded", ended=tuple(ended))
    await store.update(connection, [new_id], now, rival_id=latest.id)
    return Kept(new_id, "asked", rival_id=latest.id)


async def _made_of_it_before(connection: AsyncConnection, wish: Wish) -> int | None:
    """The row that was made of the same words of the same message: reading them twice makes no second one, and what
    somebody moved to another scope does not come back to the old one.
    """
    if wish.message_id is None:
        return None
    for each in await store.of_message(connection, wish.message_id):
        quotes = [evidence.quote for evidence in each.evidence if evidence.message_id == wish.message_id]
        slot = (each.content.subject, each.content.attribute) == (wish.content.subject, wish.content.attribute)
        is_it = each.owner != wish.owner or (slot and each.type is wish.content.type)
        if is_it and any(quote in wish.quote or wish.quote in quote for quote in quotes):
            return each.id
    return None


async def _still_there(connection: AsyncConnection, wish: Wish, now: int) -> Observation | None:
    which = sa.and_(observations.c.id.in_(wish.repeats), store.in_force(now))
    found = {each.id: each for each in await store.load(connection, (wish.owner,), which)}
    return next((found[each] for each in wish.repeats if each in found), None)


async def _repeat(connection: AsyncConnection, same: Observation, wish: Wish, now: int) -> None:
    if wish.quote:
        await store.prove(connection, same.id, wish.message_id, wish.quote, now)
    if wish.valid_to is not None:
        await store.update(connection, [same.id], now, valid_to=wish.valid_to)
