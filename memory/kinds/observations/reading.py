"""Observations as people read them: pages, search, one by one, the history of a slot, what changed since."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import to_ms
from memory.kinds.observations import finding, store
from memory.kinds.observations.finding import Asked, Heard, Sought
from memory.kinds.observations.observation import Observation, Type
from memory.language.words import content_words
from memory.ports import Clock, Embedder, EmbedderError, Vector
from memory.scope import Audience, Scope
from memory.storage import members
from memory.storage.database import Database
from memory.storage.index.vectors import OfKind
from memory.storage.tables import observations
from memory.types import MemorySettings, Noticed

Rows = list[Observation]  # in the class `list` is the method
State = Literal["in_force", "expired", "superseded", "hidden", "all"]
_FOUND = 40
_UNUSED_MS = 30 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Page:
    observations: tuple[Observation, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened since an instant, for a digest."""

    learned: tuple[Observation, ...] = ()
    superseded: tuple[Observation, ...] = ()
    expired: tuple[Observation, ...] = ()
    unused: tuple[Observation, ...] = ()
    """In force, a month old, and never cited or confirmed."""


class Reading:
    """Each call says for whom; what is sensitive is shown to whoever asks for it explicitly, has the grant and is
    alone with Merk.
    """

    def __init__(
        self, database: Database, clock: Clock, embedder: Embedder, vectors: OfKind, settings: MemorySettings
    ) -> None:
        self._database = database
        self._clock = clock
        self._embedder = embedder
        self._vectors = vectors
        self._settings = settings

    async def list(  # noqa: PLR0913 - what a person can filter by
        self,
        audience: Audience,
        *,
        kinds: Sequence[Type] = (),
        scope: Scope | None = None,
        state: State = "in_force",
        sensitive: bool = False,
        offset: int = 0,
        limit: int = 10,
    ) -> Page:
        """A page, newest first. `scope` SENSITIVE needs `sensitive`."""
        async with self._database.search() as connection:
            keys = await members.shown(connection, audience, sensitive=sensitive)
            which = sa.and_(self._in_state(state), _of(kinds, scope))
            found = await store.page(connection, keys, which, offset=offset, limit=limit)
            return Page(tuple(found), await store.count(connection, keys, which))

    async def search(  # noqa: PLR0913 - what a person can filter by
        self,
        audience: Audience,
        words: str,
        *,
        kinds: Sequence[Type] = (),
        scope: Scope | None = None,
        sensitive: bool = False,
        offset: int = 0,
        limit: int = 10,
    ) -> Page:
        """What holds and has these words, best first; where none has, what is near in meaning."""
        if not content_words(words):
            return Page()
        async with self._database.search() as connection:
            keys = await members.shown(connection, audience, sensitive=sensitive)
            hits = await finding.by_words(connection, Asked(keys, words), finding.CANDIDATES)
            scores = hits or await self._near(keys, words)
            which = sa.and_(self._in_state("in_force"), _of(kinds, scope), observations.c.id.in_([*scores]))
            rows = await store.load(connection, keys, which)
        rows.sort(key=lambda each: (-scores[each.id], -each.id))
        return Page(tuple(rows[offset : offset + limit]), len(rows))

    async def by_id(self, audience: Audience, observation_id: int, *, sensitive: bool = False) -> Observation | None:
        """One, whether it holds or not; None where this audience may not see it."""
        async with self._database.read() as connection:
            return await self._by_id(connection, audience, observation_id, sensitive=sensitive)

    async def by_ids(self, audience: Audience, observation_ids: Sequence[int], *, sensitive: bool = False) -> Rows:
        """Those of them that this audience may see, in the order asked: what an answer used, for /why."""
        async with self._database.read() as connection:
            keys = await members.shown(connection, audience, sensitive=sensitive)
            rows = await store.load(connection, keys, observations.c.id.in_(observation_ids))
        return sorted(rows, key=lambda each: observation_ids.index(each.id))

    async def history_of_slot(self, audience: Audience, observation_id: int, *, sensitive: bool = False) -> Rows:
        """All that was ever said of the same subject and attribute in its scope, oldest first."""
        async with self._database.read() as connection:
            one = await self._by_id(connection, audience, observation_id, sensitive=sensitive)
            if one is None or not (one.content.subject and one.content.attribute):
                return [] if one is None else [one]
            same = (
                observations.c.subject == one.content.subject,
                observations.c.attribute == one.content.attribute,
                observations.c.hidden_at.is_(None),
            )
            rows = await store.load(connection, (one.owner,), sa.and_(*same))
        return sorted(rows, key=lambda each: (each.valid_from, each.id))

    async def changes(self, audience: Audience, since: datetime) -> Changes:
        """For a digest: what was learned, replaced and over since then, and what nobody needed."""
        now, from_ = self._now(), to_ms(since)
        c = observations.c
        wanted = {
            "learned": sa.and_(c.created_at >= from_, store.in_force(now)),
            "superseded": sa.and_(c.superseded_by.is_not(None), c.updated_at >= from_),
            "expired": sa.and_(c.superseded_by.is_(None), c.hidden_at.is_(None), c.valid_to > from_, c.valid_to <= now),
            "unused": sa.and_(store.in_force(now), c.relevance_count == 0, c.created_at < now - _UNUSED_MS),
        }
        async with self._database.search() as connection:
            keys = await members.shown(connection, audience)
            found = {name: tuple(await store.load(connection, keys, which)) for name, which in wanted.items()}
        return Changes(**found)

    async def hear(self, audience: Audience, text: str, *, session_id: int) -> Heard | None:
        """What the words of a question find, which needs no embedder; None for small talk, and where nothing was
        noticed yet. Raises SQLAlchemyError.
        """
        if not content_words(text):
            return None
        async with self._database.read() as connection:
            keys = await members.shown(connection, audience)
            if not await store.has_some(connection, keys):
                return None
        asked = Asked(keys, text, session_id, self._settings.window_max)
        async with self._database.search() as connection:
            return Heard(asked, await finding.by_words(connection, asked, finding.KEYS))

    async def seek(self, heard: Heard, vector: Vector | None) -> Sought:
        """What may bear on the question. Raises SQLAlchemyError; a silent index only costs its arm. `vector` is the
        embedded text, None where the embedder did not answer.
        """
        cosines: dict[int, float] = {}
        if vector is not None:
            try:
                cosines = await self._vectors.nearest(heard.asked.keys, vector, finding.KEYS)
            except OSError:
                cosines = {}
        async with self._database.search() as connection:
            return await finding.seek(connection, heard, cosines, self._now())

    async def shown(self, sought: Sought, *, floor: float) -> tuple[Noticed, ...]:
        """What of it bears on the question, best first. Raises SQLAlchemyError."""
        async with self._database.search() as connection:
            return tuple(await finding.shown(connection, sought, floor=floor, now=self._now()))

    async def disposable(
        self, audience: Audience, observation_ids: Sequence[int], *, sensitive: bool = False
    ) -> tuple[Observation, ...]:
        """Those of them that this person may change or forget."""
        async with self._database.read() as connection:
            keys = await members.shown(connection, audience, sensitive=sensitive)
            found = await store.load(connection, keys, observations.c.id.in_(observation_ids))
            is_manager = await members.manages(connection, audience)
        return tuple(each for each in found if is_manager or each.user_id == audience.user_id)

    async def everything(self, audience: Audience, *, sensitive: bool = False) -> tuple[Rows, Rows]:
        """All that this audience may see, whether it holds or not: what this person may forget, and the rest."""
        async with self._database.search() as connection:
            keys = await members.shown(connection, audience, sensitive=sensitive)
            found = await store.load(connection, keys, sa.true())
            is_manager = await members.manages(connection, audience)
        mine = [each for each in found if is_manager or each.user_id == audience.user_id]
        return mine, [each for each in found if not is_manager and each.user_id != audience.user_id]

    async def nearness(self, audience: Audience, wanted: Vector, *, sensitive: bool = False) -> dict[int, float]:
        """How near what this audience may see is to a vector, of the nearest ones. Raises OSError."""
        async with self._database.search() as connection:
            keys = await members.shown(connection, audience, sensitive=sensitive)
        return await self._vectors.nearest(keys, wanted, _FOUND)

    async def _by_id(
        self, connection: AsyncConnection, audience: Audience, observation_id: int, *, sensitive: bool
    ) -> Observation | None:
        keys = await members.shown(connection, audience, sensitive=sensitive)
        return await store.by_id(connection, keys, observation_id)

    async def _near(self, keys: Sequence[str], words: str) -> dict[int, float]:
        try:
            vector = await self._embedder.embed_query(words)
            found = await self._vectors.nearest(keys, vector, _FOUND)
        except (EmbedderError, OSError):
            return {}
        return {each: cosine for each, cosine in found.items() if cosine >= self._embedder.floor}

    def _in_state(self, state: State) -> sa.ColumnElement[bool]:
        now = self._now()
        c = observations.c
        if state == "in_force":
            return store.in_force(now)
        if state == "expired":
            return sa.and_(c.valid_to <= now, c.superseded_by.is_(None), c.hidden_at.is_(None))
        if state == "superseded":
            return c.superseded_by.is_not(None)
        return c.hidden_at.is_not(None) if state == "hidden" else sa.true()

    def _now(self) -> int:
        return to_ms(self._clock.now())


def _of(kinds: Sequence[Type], scope: Scope | None) -> sa.ColumnElement[bool]:
    wanted: list[sa.ColumnElement[bool]] = [sa.true()]
    if kinds:
        wanted.append(observations.c.type.in_(kinds))
    if scope is not None:
        wanted.append(observations.c.scope == scope)
    return sa.and_(*wanted)
