"""Observations as handlers and the program see them: what was noticed, and what people do about it.

Rule: what is told of a write is told from the stored row; whoever may see a row may judge it, only whose it is (or who
has `manage:observations`) may change it, and only who alone said it may show it to more people.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms, to_ms
from memory.kinds.observations import changing, losing, store
from memory.kinds.observations.keeping import Wish, keep
from memory.kinds.observations.learn import KIND
from memory.kinds.observations.observation import Content, Observation, Trigger, Type, is_empty, kept
from memory.kinds.observations.reading import Reading
from memory.kinds.observations.validity import ends_at
from memory.language.text import one_line, shorten
from memory.language.words import language_of
from memory.scope import PUBLIC, VIEW_SENSITIVE, Audience, is_narrower, own_key, scope_of, sensitive_key
from memory.storage import leases, members
from memory.storage.index import lexical
from memory.storage.tables import hook_events, messages, observation_feedback, observations, sessions, users
from memory.types import ObservationRefused

_ENOUGH_REJECTIONS = 2
_TITLE = 60


@dataclass(frozen=True, slots=True)
class Question:
    """Two values of one slot, of which only the person can say which holds. Asked once."""

    new: Observation
    old: Observation


@dataclass(frozen=True, slots=True)
class ScopeChange:
    """What came of it: done, or more people would see it, and the person has to say so first."""

    outcome: Literal["done", "ask"]
    observation: Observation


# built once: every answer asks it
_ASKS = (
    sa.select(observations.c.id)
    .where(
        observations.c.user_id == sa.bindparam("me"),
        observations.c.rival_id.is_not(None),
        observations.c.asked_at.is_(None),
    )
    .limit(1)
)


class Observations(Reading):
    """The facade: `memory.observations`."""

    # --- making -----------------------------------------------------------------------------------

    async def keep(self, audience: Audience, message_id: int) -> tuple[Observation, bool]:
        """Keep a message of this audience, whoever's words it holds: the tap of its reader is the trust.

        Return the row and whether it is new. Raises `ObservationRefused` ("gone", "empty").
        """
        now = self._now()
        async with self._database.write() as connection:
            query = (
                sa.select(messages, users.c.timezone)
                .join(sessions, sessions.c.id == messages.c.session_id)
                .outerjoin(users, users.c.id == messages.c.user_id)
                .where(messages.c.id == message_id, sessions.c.owner == audience.owner)
            )
            row = (await connection.execute(query)).mappings().first()
            if row is None:
                raise ObservationRefused("gone")
            content, quote = changing.of_message(row["text"])
            said_at = from_ms(row["created_at"]).astimezone(ZoneInfo(row["timezone"] or self._settings.timezone))
            ends = ends_at(quote, said_at)
            wish = Wish(
                content,
                audience.owner,
                audience.user_id,
                Trigger.MANUAL,
                message_id=message_id,
                quote=quote,
                session_id=row["session_id"],
                at=row["created_at"],
                valid_to=None if ends is None else to_ms(ends),
            )
            done = await keep(connection, wish, now)
            if done.outcome == "hidden":  # they ask for it again
                await self._restored(connection, done.id, now)
            found = await store.by_id(connection, (audience.owner,), done.id)
        assert found is not None
        return found, done.outcome not in ("known", "repeated")

    async def note_event(  # noqa: PLR0913 - an event, as a hook's template gives it
        self,
        owner: str,
        *,
        hook: str,
        event_id: str,
        title: str,
        narrative: str = "",
        type: Type = Type.EVENT,
        facts: Sequence[str] = (),
        concepts: Sequence[str] = (),
        subject: str = "",
        attribute: str = "",
        value: str = "",
        user_id: int | None = None,
        session_id: int | None = None,
        at: datetime | None = None,
        valid_to: datetime | None = None,
    ) -> int | None:
        """Note what a hook or Merk itself reports, once per (hook, event id); None where it was noted before.

        `owner` is a scope key (`memory.scope`). Raises ValueError for what is none, `ObservationRefused` ("empty").
        """
        scope_of(owner)
        content = kept(
            Content(
                type,
                title,
                narrative or title,
                language=language_of(f"{title} {narrative}"),
                facts=tuple(facts),
                concepts=tuple(concepts),
                subject=subject,
                attribute=attribute,
                value=value,
            )
        )
        if is_empty(content):
            raise ObservationRefused("empty")
        now = self._now()
        async with self._database.write() as connection:
            seen = self._database.insert(hook_events).values(hook=hook, event_id=event_id, received_at=now)
            if not (await connection.execute(seen.on_conflict_do_nothing())).rowcount:
                return None
            wish = Wish(
                content,
                owner,
                user_id,
                Trigger.HOOK,
                quote=content.narrative,
                session_id=session_id,
                at=None if at is None else to_ms(at),
                valid_to=None if valid_to is None else to_ms(valid_to),
            )
            return (await keep(connection, wish, now)).id

    async def edit(
        self, audience: Audience, observation_id: int, text: str, message_id: int | None = None
    ) -> Observation:
        """Put the person's own wording in the place of an observation, which becomes history. Raises
        `ObservationRefused`.
        """
        now = self._now()
        async with self._database.write() as connection:
            old = await self._own(connection, audience, observation_id)
            language = language_of(text)
            said = replace(old.content, title=shorten(one_line(text), _TITLE), narrative=text, facts=(), confidence=1.0)
            content = kept(replace(said, value=text if old.content.has_slot else "", language=language))
            if is_empty(content):
                raise ObservationRefused("empty")
            if content.hash_for(old.owner, old.user_id) == old.content_hash:
                return old
            done = await changing.put_in_place(connection, old, content, message_id, now)
            new = await store.by_id(connection, (old.owner,), done)
        await self.unindex(old.owner, [old.id])
        assert new is not None
        return new

    # --- judging ----------------------------------------------------------------------------------

    async def used(
        self,
        audience: Audience,
        observation_ids: Sequence[int],
        kind: Literal["retrieved", "cited"],
        message_id: int | None = None,
    ) -> None:
        """Note that an answer was made with these, or says that it used them."""
        async with self._database.write() as connection:
            keys = await members.shown(connection, audience, sensitive=True)
            for each in await store.load(connection, keys, observations.c.id.in_(observation_ids)):
                await changing.feed_back(connection, each.id, audience, kind, message_id, self._now())

    async def confirm(
        self, audience: Audience, observation_id: int, message_id: int | None = None, *, sensitive: bool = False
    ) -> Observation:
        """The person says that it is right. Raises `ObservationRefused` ("gone")."""
        async with self._database.write() as connection:
            found = await self._there(connection, audience, observation_id, sensitive=sensitive)
            await changing.feed_back(connection, found.id, audience, "confirmed", message_id, self._now())
            return found

    async def reject(
        self, audience: Audience, observation_id: int, message_id: int | None = None, *, sensitive: bool = False
    ) -> bool:
        """The person says that it is wrong; True where that was once too often, and it is hidden until restored.

        Two taps under the same answer are one rejection. Raises `ObservationRefused` ("gone").
        """
        async with self._database.write() as connection:
            found = await self._there(connection, audience, observation_id, sensitive=sensitive)
            if not await changing.is_judged(connection, found.id, audience, message_id):
                await changing.feed_back(connection, found.id, audience, "rejected", message_id, self._now())
            is_hidden = await changing.rejections(connection, found.id) >= _ENOUGH_REJECTIONS
            if is_hidden and not found.is_hidden:
                await store.update(connection, [found.id], self._now(), hidden_at=self._now(), indexed_as=None)
                await lexical.remove(connection, [found.id], table=lexical.OBSERVATIONS)
        if is_hidden:
            await self.unindex(found.owner, [found.id])
        return is_hidden

    async def restore(self, audience: Audience, observation_id: int, *, sensitive: bool = False) -> Observation:
        """Let one hold again that was hidden, is over or was replaced (both hold then). Raises `ObservationRefused`."""
        async with self._database.write() as connection:
            found = await self._own(connection, audience, observation_id, sensitive=sensitive)
            restored = await self._restored(connection, found.id, self._now())
            again = await store.by_id(connection, (found.owner,), restored)
        assert again is not None
        return again

    async def undo(self, audience: Audience, observation_id: int, *, sensitive: bool = False) -> Observation:
        """Take back one that was just learned: its row goes, and what it replaced holds again. Not a forget: its words
        stay where they were said. Raises `ObservationRefused`.
        """
        now = self._now()
        async with self._database.write() as connection:
            found = await self._own(connection, audience, observation_id, sensitive=sensitive)
            await store.delete(connection, [found.id])
            replaced = await store.load(connection, (found.owner,), observations.c.superseded_by == found.id)
            for each in replaced:
                await self._restored(connection, each.id, now)
        await self.unindex(found.owner, [found.id])
        return found

    # --- questions --------------------------------------------------------------------------------

    async def questions(self, audience: Audience) -> Sequence[Question]:
        """What is to be asked of this person here, oldest first; only of what they themselves said."""
        async with self._database.read() as connection:
            if (await connection.execute(_ASKS, {"me": audience.user_id})).first() is None:
                return ()
            mine = (
                observations.c.rival_id.is_not(None),
                observations.c.asked_at.is_(None),
                observations.c.user_id == audience.user_id,
                store.in_force(self._now()),
            )
            new = await store.load(connection, (audience.owner,), sa.and_(*mine))
            ids = [each.rival_id for each in new]
            which = sa.and_(observations.c.id.in_(ids), store.in_force(self._now()))
            old = {each.id: each for each in await store.load(connection, (audience.owner,), which)}
        return tuple(Question(each, old[each.rival_id]) for each in new if each.rival_id in old)

    async def asked(self, observation_ids: Sequence[int]) -> None:
        """The questions about these new observations were put: they are not put again."""
        async with self._database.write() as connection:
            await store.update(connection, observation_ids, self._now(), asked_at=self._now())

    async def settle(
        self, audience: Audience, new_id: int, choice: Literal["new", "both", "old"]
    ) -> tuple[Observation, ...]:
        """Decide between a new observation and its rival; return what holds now. Raises `ObservationRefused`."""
        now = self._now()
        async with self._database.write() as connection:
            new = await self._own(connection, audience, new_id)
            old = None if new.rival_id is None else await store.by_id(connection, (new.owner,), new.rival_id)
            await store.update(connection, [new.id], now, rival_id=None, asked_at=now)
            ended = None if old is None or choice == "both" else old if choice == "new" else new
            if old is not None and ended is not None:
                staying = new if ended is old else old
                await store.supersede(connection, [ended.id], staying.id, now, now)
            ids = [new.id] if old is None else [old.id, new.id]
            which = sa.and_(observations.c.id.in_(ids), store.in_force(now))
            holding = tuple(await store.load(connection, (new.owner,), which))
        if ended is not None:
            await self.unindex(ended.owner, [ended.id])
        return holding

    # --- scope ------------------------------------------------------------------------------------

    async def change_scope(
        self, audience: Audience, observation_id: int, to: str, *, is_confirmed: bool = False, sensitive: bool = False
    ) -> ScopeChange:
        """Move an observation to another scope key: narrower at once, wider only when confirmed.

        Raises `ObservationRefused`: "gone", "others" (somebody else's words are in it), "members" (the asker is not
        there), "grant" (`view:sensitive` is needed to see it again).
        """
        scope_of(to)
        now = self._now()
        async with self._database.write() as connection:
            found = await self._there(connection, audience, observation_id, sensitive=sensitive)
            await self._check_move(connection, audience, found, to)
            if not is_confirmed and not is_narrower(to, found.owner, audience.user_id):
                return ScopeChange("ask", found)
            moved = await changing.move(connection, found, to, now)
        if to != found.owner:
            await self.unindex(found.owner, [found.id])
        return ScopeChange("done", moved)

    async def _check_move(self, connection: AsyncConnection, audience: Audience, found: Observation, to: str) -> None:
        me = audience.user_id
        by_others = [each for each in found.evidence if each.message_id is not None and each.user_id != me]
        is_own = found.owner in (own_key(me), sensitive_key(me))
        if found.user_id != me or (by_others and not is_own):
            raise ObservationRefused("others")
        alone = Audience(me, 0, is_private=True)
        reachable = await members.shown(connection, alone, sensitive=True)
        if to == sensitive_key(me) and not await members.has(connection, me, VIEW_SENSITIVE):
            raise ObservationRefused("grant")
        if to not in (*reachable, audience.owner, PUBLIC):
            raise ObservationRefused("members")

    # --- keeping in step --------------------------------------------------------------------------

    async def reconsider(self, message_id: int) -> None:
        """A message was edited: what rested on its old words goes, and it is read again."""
        async with self._database.write() as connection:
            lost = await losing.settle(connection, await store.resting_on(connection, [message_id]), self._now())
            query = sa.select(messages.c.session_id).where(messages.c.id == message_id)
            session_id = (await connection.execute(query)).scalar_one_or_none()
            if session_id is not None:
                await leases.rewind(connection, KIND, session_id, message_id - 1)
        for owner, ids in lost.vectors.items():
            await self.unindex(owner, ids)

    async def purge(self, prompt_version: str) -> int:
        """Delete what an extractor of this version made, the whole tenant's; return how many rows."""
        async with self._database.write() as connection:
            bad = observations.c.prompt_version == prompt_version
            rows = (await connection.execute(sa.select(observations.c.id, observations.c.owner).where(bad))).all()
            ids = [row[0] for row in rows]
            replaced = list((await connection.execute(changing.replaced_by(ids))).scalars())
            for each in replaced:
                await self._restored(connection, each, self._now())
            gone = await store.delete(connection, ids)
        for owner in {row[1] for row in rows}:
            await self.unindex(owner, [row[0] for row in rows if row[1] == owner])
        return gone

    # --- inside -----------------------------------------------------------------------------------

    async def _there(
        self, connection: AsyncConnection, audience: Audience, observation_id: int, *, sensitive: bool
    ) -> Observation:
        found = await self._by_id(connection, audience, observation_id, sensitive=sensitive)
        if found is None:
            raise ObservationRefused("gone")
        return found

    async def _own(
        self, connection: AsyncConnection, audience: Audience, observation_id: int, *, sensitive: bool = False
    ) -> Observation:
        """One that this person may change."""
        found = await self._there(connection, audience, observation_id, sensitive=sensitive)
        if found.user_id != audience.user_id and not await members.manages(connection, audience):
            raise ObservationRefused("others")
        return found

    async def _restored(self, connection: AsyncConnection, observation_id: int, now: int) -> int:
        """Bring one back into force; where another row says the same by now, that one gets its evidence."""
        row = sa.select(observations.c.owner, observations.c.content_hash).where(observations.c.id == observation_id)
        owner, content_hash = (await connection.execute(row)).one()
        twin = await store.by_hash(connection, owner, content_hash, now)
        if twin is not None and twin.id != observation_id:
            await store.move_evidence(connection, observation_id, twin.id, now)
            await store.delete(connection, [observation_id])
            return twin.id
        await connection.execute(
            observation_feedback.delete().where(
                observation_feedback.c.observation_id == observation_id, observation_feedback.c.kind == "rejected"
            )
        )
        await store.update(connection, [observation_id], now, hidden_at=None, superseded_by=None, valid_to=None)
        await store.index_words(connection, [observation_id])
        return observation_id

    async def unindex(self, owner: str, ids: Sequence[int]) -> None:
        """Take vectors out; where the index is silent they go with its next opening, and SQL shows none of them."""
        with suppress(OSError):
            await self._vectors.drop(owner, ids)
