"""What a forget reaches: the rows that go, the words that give them away, and the rows beside them that stay."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.observations import store as observation_store
from memory.kinds.observations.observation import Observation
from memory.kinds.summaries import store as summary_store
from memory.language.telling import Forgotten, Line, Log, Telling, is_told, redactions, tell
from memory.scope import Audience, number_of, own_key, seen_by
from memory.storage import instructions, kept, reminders
from memory.storage.sessions import UNSWEPT
from memory.storage.tables import facts, messages, observations, sessions, summaries


async def with_history(connection: AsyncConnection, audience: Audience, fact_ids: Sequence[int]) -> list[sa.RowMapping]:
    """The facts in force with these ids, and all that they ever replaced."""
    mine = seen_by(facts.c.owner, audience)
    query = sa.select(facts).where(mine, facts.c.id.in_(fact_ids), facts.c.valid_to.is_(None)).order_by(facts.c.id)
    found = list((await connection.execute(query)).mappings())
    newest = found
    while newest:
        ids = [row["id"] for row in newest]
        known = [row["id"] for row in found]
        query = sa.select(facts).where(mine, facts.c.superseded_by.in_(ids), facts.c.id.not_in(known))
        newest = list((await connection.execute(query)).mappings())
        found += newest
    return found


async def still_said(connection: AsyncConnection, audience: Audience, rewrite: Callable[[str], str]) -> tuple[str, ...]:
    """What a person set up with the words in it stays until they change it; what held before is rewritten."""
    places: list[str] = []
    if audience.is_private and await instructions.rewrite_history(connection, audience.owner, rewrite):
        places.append("instructions")
    if any(rewrite(text) != text for text in await reminders.texts(connection, audience.owner)):
        places.append("reminders")
    return tuple(places)


async def texts_in_force(connection: AsyncConnection, audience: Audience) -> list[str]:
    query = sa.select(facts.c.text).where(seen_by(facts.c.owner, audience), facts.c.valid_to.is_(None))
    return [str(text) for text in (await connection.execute(query)).scalars()]


async def summaries_that_tell(connection: AsyncConnection, audience: Audience, tellings: Sequence[Telling]) -> set[int]:
    query = sa.select(summaries).where(seen_by(summaries.c.owner, audience))
    rows = (await connection.execute(query)).mappings()
    return {row["session_id"] for row in rows if is_told(tellings, summary_store.of_row(row).body)}


async def messages_in(connection: AsyncConnection, session_ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """The ids of the messages of sessions, and of the updates they came from."""
    query = sa.select(messages.c.id, messages.c.inbox_id).where(messages.c.session_id.in_(session_ids))
    rows = (await connection.execute(query)).all()
    return [row[0] for row in rows], [row[1] for row in rows if row[1] is not None]


async def unlink_sources(connection: AsyncConnection, owners: set[str], message_ids: Sequence[int]) -> None:
    gone = set(message_ids)
    query = sa.select(facts.c.id, facts.c.source_message_ids).where(facts.c.owner.in_(sorted(owners)))
    for fact_id, sources in (await connection.execute(query)).all():
        left = [each for each in sources if each not in gone]
        if left != sources:
            await connection.execute(facts.update().where(facts.c.id == fact_id).values(source_message_ids=left))


async def count_redacted(connection: AsyncConnection, message_ids: set[int]) -> int:
    query = (
        sa.select(sa.func.count())
        .select_from(messages)
        .where(messages.c.id.in_(sorted(message_ids)), messages.c.redacted_at.is_not(None))
    )
    return int((await connection.execute(query)).scalar_one())


async def unswept(connection: AsyncConnection) -> list[str]:
    found: list[str] | None = await kept.load(connection, UNSWEPT)
    return found or []


def decide(
    said: Sequence[Forgotten], kept: Sequence[str], lines: Sequence[Line]
) -> tuple[list[Telling], dict[int, str]]:
    """What gives the facts away, and the log without it."""
    log_of_owner = Log(lines)
    here = {line.id for line in lines}
    gone = [replace(each, source_ids=each.source_ids & here) for each in said]
    tellings = [tell(each, kept, log_of_owner) for each in gone]
    return tellings, redactions(tellings, log_of_owner)


def place_of(owner: str, audience: Audience) -> Audience | None:
    """The audience as which this person may redact under a scope key; None where the words are somebody else's."""
    if owner == own_key(audience.user_id):
        return Audience(audience.user_id, chat_id=0, is_private=True)
    if owner.startswith("c"):
        return Audience(audience.user_id, number_of(owner), is_private=False)
    return None


def words_said_in(owner: str, rows: Sequence[Observation], said_in: dict[int, str]) -> list[Forgotten]:
    """The words of observations that were said in the sessions of an owner."""
    return [
        Forgotten(each.quote, each.user_id, frozenset((each.message_id,)))
        for row in rows
        for each in row.evidence
        if each.message_id is not None and said_in.get(each.message_id) == owner
    ]


async def sessions_said_in(connection: AsyncConnection, rows: Sequence[Observation]) -> dict[int, str]:
    """Message -> scope key of the session in which it stands."""
    ids = [each.message_id for row in rows for each in row.evidence if each.message_id is not None]
    query = sa.select(messages.c.id, sessions.c.owner).join(sessions, sessions.c.id == messages.c.session_id)
    return {row[0]: row[1] for row in (await connection.execute(query.where(messages.c.id.in_(ids)))).all()}


async def with_replaced(connection: AsyncConnection, rows: Sequence[Observation]) -> list[Observation]:
    """These observations and all that they ever replaced."""
    found = {row.id: row for row in rows}
    newest = list(rows)
    while newest:
        owners = sorted({row.owner for row in newest})
        which = observations.c.superseded_by.in_([row.id for row in newest])
        newest = [row for row in await observation_store.load(connection, owners, which) if row.id not in found]
        found |= {row.id: row for row in newest}
    return list(found.values())
