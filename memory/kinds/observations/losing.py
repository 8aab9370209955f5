"""What becomes of observations when messages were redacted, edited or deleted: they stand on what is still said.

Rule: evidence that is said no more goes; a row without evidence goes with it; one that has some left is made anew of
the words that remain. Whose row it is does not matter: its words were the forgetter's.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.observations import store
from memory.kinds.observations.observation import Content, Evidence, Observation, Trigger, kept
from memory.language.text import shorten
from memory.language.words import keys_of, tokens
from memory.scope import Scope
from memory.storage.tables import messages, observation_evidence, observations

Tells = Callable[[str], bool]
"""Whether a text gives away what is to be forgotten."""


@dataclass(slots=True)
class Lost:
    """What went or changed: their vectors have to follow."""

    vectors: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Owner -> ids."""
    deleted: int = 0

    def add(self, observation: Observation, *, is_deleted: bool) -> None:
        self.vectors.setdefault(observation.owner, []).append(observation.id)
        self.deleted += is_deleted


async def withdraw(connection: AsyncConnection, message_ids: Sequence[int], now: int) -> Lost:
    """These messages are about to be deleted: nothing rests on them any more."""
    ids = await store.resting_on(connection, message_ids)
    await connection.execute(observation_evidence.delete().where(observation_evidence.c.message_id.in_(message_ids)))
    return await settle(connection, ids, now, hit=frozenset(ids))


async def keep_ones_own(connection: AsyncConnection, message_ids: Sequence[int]) -> None:
    """Before messages go by their age: what somebody kept by hand stays, as a fact does, and points at no message any
    more; not the words of others among whom they were said.
    """
    mine = (
        sa.select(observation_evidence.c.id)
        .join(observations, observations.c.id == observation_evidence.c.observation_id)
        .join(messages, messages.c.id == observation_evidence.c.message_id)
        .where(messages.c.id.in_(message_ids), _is_ones_own())
    )
    detached = observation_evidence.update().where(observation_evidence.c.id.in_(mine)).values(message_id=None)
    await connection.execute(detached)


def only_resting_on(old: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """The observations that go with the messages that are `old`: a condition on `observations`."""
    evidence = sa.select(observation_evidence.c.id).outerjoin(
        messages, messages.c.id == observation_evidence.c.message_id
    )
    of = observation_evidence.c.observation_id == observations.c.id
    goes = evidence.where(of, messages.c.id.is_not(None), old, ~_is_ones_own())
    stays = evidence.where(of, sa.or_(messages.c.id.is_(None), ~old, _is_ones_own()))
    return sa.and_(goes.exists(), ~stays.exists())


def _is_ones_own() -> sa.ColumnElement[bool]:
    """Kept by hand: one's own words, or in private what Merk answered."""
    is_answer = sa.and_(messages.c.user_id.is_(None), observations.c.scope == Scope.PRIVATE)
    is_mine = sa.func.coalesce(observations.c.user_id == messages.c.user_id, sa.false())
    return sa.and_(observations.c.trigger_source == Trigger.MANUAL, sa.or_(is_mine, is_answer))


async def settle(
    connection: AsyncConnection,
    ids: Iterable[int],
    now: int,
    tells: Tells = lambda _text: False,
    *,
    hit: frozenset[int] = frozenset(),
) -> Lost:
    """Bring these observations into line with what the log still says and with what is told no more.

    `hit` have lost evidence already.
    """
    lost = Lost()
    for each in await _load(connection, ids):
        standing = await _standing(connection, each)
        is_whole = len(standing) == len(each.evidence) and each.id not in hit
        if is_whole and not any(map(tells, (*each.content.texts, each.content.body))):
            continue
        anew = _anew(each.content, standing)
        if not standing or any(map(tells, (*anew.texts, anew.body))):
            await store.delete(connection, [each.id])
            lost.add(each, is_deleted=True)
        else:
            await _keep_anew(connection, each, anew, standing, now, lost)
    return lost


async def telling(connection: AsyncConnection, owners: Sequence[str], tells: Tells) -> list[int]:
    """The ids of the observations of these owners that give something away, in whatever place."""
    found = await store.load(connection, owners, sa.true())
    quotes = {each.id: [evidence.quote for evidence in each.evidence] for each in found}
    return [each.id for each in found if any(map(tells, (*each.content.texts, each.content.body, *quotes[each.id])))]


async def _keep_anew(
    connection: AsyncConnection, old: Observation, anew: Content, standing: Sequence[Evidence], now: int, lost: Lost
) -> None:
    if await store.rewrite(connection, old, anew, now):
        await store.update(connection, [old.id], now, proof_count=len(standing))
        lost.add(old, is_deleted=False)
        return
    twin = await store.by_hash(connection, old.owner, anew.hash_for(old.owner, old.user_id), now)
    if twin is not None:  # what is left of it is said by another row
        await store.move_evidence(connection, old.id, twin.id, now)
    await store.delete(connection, [old.id])
    lost.add(old, is_deleted=True)


async def _load(connection: AsyncConnection, ids: Iterable[int]) -> list[Observation]:
    wanted = observations.c.id.in_(sorted(set(ids)))
    owners = list((await connection.execute(sa.select(observations.c.owner).distinct().where(wanted))).scalars())
    return await store.load(connection, owners, wanted) if owners else []


async def _standing(connection: AsyncConnection, observation: Observation) -> list[Evidence]:
    """The evidence that is still said, word for word; the rest is deleted here."""
    standing: list[Evidence] = []
    for each in observation.evidence:
        if each.message_id is None:
            standing.append(each)
            continue
        text = (
            await connection.execute(sa.select(messages.c.text).where(messages.c.id == each.message_id))
        ).scalar_one_or_none()
        if text is not None and each.quote in " ".join(text.split()):
            standing.append(each)
        else:
            await connection.execute(
                observation_evidence.delete().where(
                    observation_evidence.c.observation_id == observation.id,
                    observation_evidence.c.message_id == each.message_id,
                )
            )
    return standing


def _anew(content: Content, standing: Sequence[Evidence]) -> Content:
    """The same observation, of nothing but the words that remain."""
    quotes = list(dict.fromkeys(each.quote for each in standing))
    narrative = " ".join(quotes)
    there = keys_of(tokens(narrative))
    is_said = bool(content.value) and all(not keys_of([word]).isdisjoint(there) for word in tokens(content.value))
    slot = (content.subject, content.attribute, content.value) if is_said else ("", "", "")
    return kept(
        replace(
            content,
            title=shorten(quotes[0], 60) if quotes else "",
            narrative=narrative,
            facts=(),
            concepts=(),
            aliases=(),
            subject=slot[0],
            attribute=slot[1],
            value=slot[2],
        )
    )
