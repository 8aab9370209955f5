"""The writes behind what people do with observations; each in its caller's transaction."""

from collections.abc import Sequence
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.observations import store
from memory.kinds.observations.keeping import Wish, keep
from memory.kinds.observations.observation import Content, Observation, Trigger, Type, is_empty, kept
from memory.language.text import MARK, one_line, sentences, shorten
from memory.language.words import language_of
from memory.scope import Audience, scope_of
from memory.storage.tables import observation_feedback, observations
from memory.types import ObservationRefused

Feedback = Literal["retrieved", "cited", "confirmed", "rejected"]
_QUOTE = 500  # characters
_TITLE = 60


def of_message(text: str) -> tuple[Content, str]:
    """What is kept of a message as it stands: its own words are its evidence."""
    words = max((" ".join(part.split()) for part in text.split(MARK)), key=len, default="")
    quote = words[:_QUOTE] if len(words) <= _QUOTE else words[:_QUOTE].rpartition(" ")[0] or words[:_QUOTE]
    first = next((one_line(each) for each in sentences(words) if each.strip()), "")
    content = kept(Content(Type.FACT, shorten(first, _TITLE), words, language=language_of(words)))
    if is_empty(content):
        raise ObservationRefused("empty")
    return content, quote


async def put_in_place(
    connection: AsyncConnection, old: Observation, content: Content, message_id: int | None, now: int
) -> int:
    """End a row by its own author's new wording."""
    await store.supersede(connection, [old.id], old.id, now, now)  # out of force first: the hash may be the same
    wish = Wish(
        content,
        old.owner,
        old.user_id,
        Trigger.MANUAL,
        message_id=message_id,
        quote=content.narrative,
        session_id=old.session_id,
    )
    done = await keep(connection, wish, now)
    await store.update(connection, [old.id], now, superseded_by=done.id)
    return done.id


async def move(connection: AsyncConnection, found: Observation, to: str, now: int) -> Observation:
    twin = await store.by_hash(connection, to, found.content.hash_for(to, found.user_id), now)
    if to != found.owner and twin is not None:
        await store.move_evidence(connection, found.id, twin.id, now)
        await store.delete(connection, [found.id])
        return twin
    content_hash = found.content.hash_for(to, found.user_id)
    await store.update(
        connection, [found.id], now, owner=to, scope=scope_of(to), content_hash=content_hash, indexed_as=None
    )
    await store.index_words(connection, [found.id])
    moved = await store.by_id(connection, (to,), found.id)
    assert moved is not None
    return moved


async def feed_back(
    connection: AsyncConnection,
    observation_id: int,
    audience: Audience,
    kind: Feedback,
    message_id: int | None,
    now: int,
) -> None:
    row = {"observation_id": observation_id, "user_id": audience.user_id, "message_id": message_id, "kind": kind}
    await connection.execute(observation_feedback.insert().values(**row, created_at=now))
    if kind in ("cited", "confirmed"):
        count = observations.c.relevance_count + 1
        await connection.execute(
            observations.update().where(observations.c.id == observation_id).values(relevance_count=count)
        )


async def is_judged(
    connection: AsyncConnection, observation_id: int, audience: Audience, message_id: int | None
) -> bool:
    c = observation_feedback.c
    mine = c.observation_id == observation_id, c.user_id == audience.user_id, c.kind == "rejected"
    query = sa.select(c.id).where(*mine, c.message_id == message_id)
    return message_id is not None and (await connection.execute(query)).first() is not None


async def rejections(connection: AsyncConnection, observation_id: int) -> int:
    c = observation_feedback.c
    query = sa.select(sa.func.count()).where(c.observation_id == observation_id, c.kind == "rejected")
    return int((await connection.execute(query)).scalar_one())


def replaced_by(ids: Sequence[int]) -> sa.Select[Any]:
    return sa.select(observations.c.id).where(observations.c.superseded_by.in_(ids), observations.c.id.not_in(ids))
