"""Rows of observations and their evidence: every query carries the scope keys it may see."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms
from memory.kinds.observations.observation import Content, Evidence, Observation, Trigger, Type, kept_quote
from memory.language.text import clean
from memory.language.words import Language
from memory.scope import Scope, scope_of, seen_by
from memory.storage.index import lexical
from memory.storage.index.vectors import Indexed
from memory.storage.tables import messages, observation_evidence, observation_feedback, observations

_LONGEST_VIEW = 400  # characters of one vector's text
_MOST_VIEWS = 4


def in_force(now: int) -> sa.ColumnElement[bool]:
    """What holds now: neither over, nor replaced, nor hidden."""
    return sa.and_(
        sa.or_(observations.c.valid_to.is_(None), observations.c.valid_to > now),
        observations.c.superseded_by.is_(None),
        observations.c.hidden_at.is_(None),
    )


# --- reading ------------------------------------------------------------------------------------


async def has_some(connection: AsyncConnection, keys: Sequence[str]) -> bool:
    """Whether anything was ever noticed that these may see."""
    return (await connection.execute(_any_of(tuple(keys)))).first() is not None


@lru_cache(maxsize=1000)
def _any_of(keys: tuple[str, ...]) -> sa.Select[Any]:
    """Built once for each audience: every message asks it."""
    return sa.select(observations.c.id).where(seen_by(observations.c.owner, keys)).limit(1)


async def load(
    connection: AsyncConnection, keys: Sequence[str], which: sa.ColumnElement[bool], query: sa.Select[Any] | None = None
) -> list[Observation]:
    """Observations with their evidence, oldest first; `query` brings another order or a limit."""
    found = sa.select(observations) if query is None else query
    found = found.where(seen_by(observations.c.owner, keys), which)
    if query is None:
        found = found.order_by(observations.c.id)
    rows = (await connection.execute(found)).mappings().all()
    evidence = await _evidence_of(connection, [row["id"] for row in rows])
    return [_observation(row, evidence.get(row["id"], ())) for row in rows]


async def by_id(connection: AsyncConnection, keys: Sequence[str], observation_id: int) -> Observation | None:
    """One that these keys show, whether it holds or not."""
    found = await load(connection, keys, observations.c.id == observation_id)
    return found[0] if found else None


async def page(
    connection: AsyncConnection, keys: Sequence[str], which: sa.ColumnElement[bool], *, offset: int, limit: int
) -> list[Observation]:
    """Newest first."""
    query = sa.select(observations).order_by(observations.c.id.desc()).offset(offset).limit(limit)
    return await load(connection, keys, which, query)


async def count(connection: AsyncConnection, keys: Sequence[str], which: sa.ColumnElement[bool]) -> int:
    query = sa.select(sa.func.count()).select_from(observations).where(seen_by(observations.c.owner, keys), which)
    return int((await connection.execute(query)).scalar_one())


async def in_slot(connection: AsyncConnection, owner: str, content: Content, now: int) -> list[Observation]:
    """What holds of the same subject and attribute, oldest first."""
    if not content.has_slot:
        return []
    slot = observations.c.subject == content.subject, observations.c.attribute == content.attribute
    return await load(connection, (owner,), sa.and_(*slot, observations.c.value != "", in_force(now)))


async def by_hash(connection: AsyncConnection, owner: str, content_hash: str, now: int) -> Observation | None:
    """The same content, also where a person has hidden it: then it is not to come back."""
    is_there = observations.c.content_hash == content_hash, observations.c.superseded_by.is_(None)
    still = sa.or_(observations.c.valid_to.is_(None), observations.c.valid_to > now)
    found = await load(connection, (owner,), sa.and_(*is_there, still))
    return found[0] if found else None


async def of_message(connection: AsyncConnection, message_id: int) -> list[Observation]:
    """What was made of a message, whether it holds or not, and wherever somebody has moved it since."""
    rests = sa.select(observation_evidence.c.observation_id).where(observation_evidence.c.message_id == message_id)
    which = observations.c.id.in_(rests)
    owners = list((await connection.execute(sa.select(observations.c.owner).distinct().where(which))).scalars())
    return await load(connection, owners, which) if owners else []


async def resting_on(connection: AsyncConnection, message_ids: Iterable[int]) -> list[int]:
    """The ids of all observations, whoever's, with evidence in these messages."""
    query = sa.select(observation_evidence.c.observation_id).distinct()
    query = query.where(observation_evidence.c.message_id.in_(sorted(message_ids)))
    return list((await connection.execute(query.order_by(observation_evidence.c.observation_id))).scalars())


async def _evidence_of(connection: AsyncConnection, ids: Sequence[int]) -> dict[int, tuple[Evidence, ...]]:
    if not ids:
        return {}
    query = (
        sa.select(
            observation_evidence.c.observation_id,
            observation_evidence.c.message_id,
            observation_evidence.c.quote,
            messages.c.user_id,
            messages.c.created_at,
        )
        .outerjoin(messages, messages.c.id == observation_evidence.c.message_id)
        .where(observation_evidence.c.observation_id.in_(ids))
        .order_by(observation_evidence.c.id)
    )
    found: dict[int, tuple[Evidence, ...]] = {}
    for of, message_id, quote, user_id, at in (await connection.execute(query)).all():
        each = Evidence(message_id, quote, user_id, None if at is None else from_ms(at))
        found[of] = (*found.get(of, ()), each)
    return found


def _observation(row: sa.RowMapping, evidence: tuple[Evidence, ...]) -> Observation:
    valid_to = row["valid_to"]
    return Observation(
        id=row["id"],
        owner=row["owner"],
        scope=Scope(row["scope"]),
        user_id=row["user_id"],
        session_id=row["session_id"],
        content=content_of(row),
        trigger_source=Trigger(row["trigger_source"]),
        evidence=evidence,
        content_hash=row["content_hash"],
        prompt_version=row["prompt_version"],
        relevance_count=row["relevance_count"],
        proof_count=row["proof_count"],
        cost_tokens=row["cost_tokens"],
        valid_from=from_ms(row["valid_from"]),
        valid_to=None if valid_to is None else from_ms(valid_to),
        superseded_by=row["superseded_by"],
        rival_id=row["rival_id"],
        is_hidden=row["hidden_at"] is not None,
        created_at=from_ms(row["created_at"]),
        updated_at=from_ms(row["updated_at"]),
    )


def content_of(row: sa.RowMapping) -> Content:
    """Cleaned on load, too: a row may be older than the rules (pitfall P22)."""
    concepts = cast("list[dict[str, Any]]", row["concepts"])
    return Content(
        type=Type(row["type"]),
        title=clean(row["title"]),
        narrative=clean(row["narrative"]),
        language=cast("Language", row["language"]),
        facts=tuple(clean(each) for each in row["facts"]),
        concepts=tuple(clean(each["name"]) for each in concepts if not each.get("alias")),
        aliases=tuple(clean(each["name"]) for each in concepts if each.get("alias")),
        subject=row["subject"],
        attribute=row["attribute"],
        value=row["value"],
        confidence=row["confidence"],
    )


# --- writing ------------------------------------------------------------------------------------


async def insert(  # noqa: PLR0913 - a row
    connection: AsyncConnection,
    content: Content,
    owner: str,
    *,
    user_id: int | None,
    session_id: int | None,
    trigger: Trigger,
    now: int,
    valid_from: int | None = None,
    valid_to: int | None = None,
    prompt_version: str | None = None,
    cost_tokens: int = 0,
) -> int:
    """Add a row, without evidence; return its id."""
    values = values_of(content, owner, user_id) | {
        "owner": owner,
        "scope": scope_of(owner),
        "user_id": user_id,
        "session_id": session_id,
        "trigger_source": trigger,
        "prompt_version": prompt_version,
        "cost_tokens": cost_tokens,
        "valid_from": now if valid_from is None else valid_from,
        "valid_to": valid_to,
        "created_at": now,
        "updated_at": now,
    }
    key = (await connection.execute(observations.insert().values(values))).inserted_primary_key
    assert key is not None
    observation_id = int(key[0])
    await index_words(connection, [observation_id])
    return observation_id


def values_of(content: Content, owner: str, user_id: int | None) -> dict[str, Any]:
    """The columns that hold what an observation says."""
    names = [{"name": each} for each in content.concepts] + [{"name": each, "alias": True} for each in content.aliases]
    return {
        "type": content.type,
        "title": content.title,
        "narrative": content.narrative,
        "facts": list(content.facts),
        "concepts": names,
        "language": content.language,
        "subject": content.subject,
        "attribute": content.attribute,
        "value": content.value,
        "confidence": content.confidence,
        "content_hash": content.hash_for(owner, user_id),
        "discovery_tokens": content.discovery_tokens(),
    }


async def add_evidence(connection: AsyncConnection, observation_id: int, message_id: int | None, quote: str) -> bool:
    """Note where it was said; the same message says it once. True where that is a further proof."""
    of = observation_evidence.c.observation_id == observation_id
    if message_id is not None:
        query = sa.select(observation_evidence.c.id).where(of, observation_evidence.c.message_id == message_id)
        if (await connection.execute(query)).first() is not None:
            return False
    row = {"observation_id": observation_id, "message_id": message_id, "quote": kept_quote(quote)}
    await connection.execute(observation_evidence.insert().values(row))
    return True


async def prove(connection: AsyncConnection, observation_id: int, message_id: int | None, quote: str, now: int) -> bool:
    """It was said again: one more proof and its evidence. False where this message is known to say it."""
    if not await add_evidence(connection, observation_id, message_id, quote):
        return False
    await update(connection, [observation_id], now, proof_count=observations.c.proof_count + 1)
    return True


async def update(connection: AsyncConnection, ids: Sequence[int], now: int, **values: Any) -> None:
    await connection.execute(observations.update().where(observations.c.id.in_(ids)).values(**values, updated_at=now))


async def supersede(connection: AsyncConnection, old_ids: Sequence[int], new_id: int, at: int, now: int) -> None:
    """End what another one replaces; it stays as history, and is found no more."""
    if old_ids:
        await update(connection, old_ids, now, valid_to=at, superseded_by=new_id, indexed_as=None, rival_id=None)
        await lexical.remove(connection, old_ids, table=lexical.OBSERVATIONS)


async def rewrite(connection: AsyncConnection, observation: Observation, content: Content, now: int) -> bool:
    """Put another content in place. False where the same is said by another row: then nothing was changed."""
    values = values_of(content, observation.owner, observation.user_id)
    twin = sa.select(observations.c.id).where(
        observations.c.owner == observation.owner,
        observations.c.content_hash == values["content_hash"],
        observations.c.id != observation.id,
        observations.c.valid_to.is_(None),
    )
    if observation.valid_to is None and (await connection.execute(twin)).first() is not None:
        return False
    await update(connection, [observation.id], now, **values, indexed_as=None)
    await index_words(connection, [observation.id])
    return True


async def delete(connection: AsyncConnection, ids: Sequence[int]) -> int:
    """Remove rows for good, with evidence, feedback and words; what they replaced stays history."""
    await lexical.remove(connection, ids, table=lexical.OBSERVATIONS)
    gone = (await connection.execute(observations.delete().where(observations.c.id.in_(ids)))).rowcount
    await connection.execute(observations.update().where(observations.c.rival_id.in_(ids)).values(rival_id=None))
    return gone


async def move_evidence(connection: AsyncConnection, old_id: int, new_id: int, now: int) -> None:
    """Give the evidence and the feedback of a row to another that says the same."""
    query = sa.select(observation_evidence.c.message_id, observation_evidence.c.quote)
    query = query.where(observation_evidence.c.observation_id == old_id).order_by(observation_evidence.c.id)
    for message_id, quote in (await connection.execute(query)).all():
        await prove(connection, new_id, message_id, quote, now)
    await connection.execute(
        observation_feedback.update()
        .where(observation_feedback.c.observation_id == old_id)
        .values(observation_id=new_id)
    )


# --- the indexes --------------------------------------------------------------------------------


async def index_words(connection: AsyncConnection, ids: Sequence[int]) -> None:
    """Index the words of rows, as they are now."""
    query = sa.select(observations).where(observations.c.id.in_(ids))
    for row in (await connection.execute(query)).mappings().all():
        content = content_of(row)
        text = "\n".join((content.body, *content.concepts))
        tokens = cast("list[str]", row["discovery_tokens"])
        await lexical.put(connection, row["id"], row["owner"], text, table=lexical.OBSERVATIONS, further=tokens)


async def rebuild_words(connection: AsyncConnection, now: int) -> None:
    """Fill the word index from SQL."""
    await lexical.clear(connection, table=lexical.OBSERVATIONS)
    ids = list((await connection.execute(sa.select(observations.c.id).where(in_force(now)))).scalars())
    await index_words(connection, ids)


async def with_views(
    connection: AsyncConnection, which: sa.ColumnElement[bool], limit: int | None = None
) -> list[Indexed]:
    """Rows with the texts under which they are found by meaning: what they say, and each of their facts."""
    query = sa.select(observations).where(which).order_by(observations.c.id).limit(limit)
    rows = (await connection.execute(query)).mappings().all()
    return [Indexed(row["id"], row["owner"], views(content_of(row))) for row in rows]


def views(content: Content) -> tuple[str, ...]:
    said = f"{content.title}. {content.narrative}" if content.title not in content.narrative else content.narrative
    texts = dict.fromkeys(text[:_LONGEST_VIEW] for text in (said, *content.facts) if text.strip())
    return tuple(texts)[:_MOST_VIEWS]
