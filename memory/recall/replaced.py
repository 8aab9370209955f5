"""Which messages say what no longer holds: what was kept or noticed from them was superseded."""

from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.scope import Audience, seen_by
from memory.storage.tables import facts, observation_evidence, observations


async def messages_of(connection: AsyncConnection, audience: Audience) -> set[int]:
    """The ids of this audience's messages that only superseded facts and observations rest on."""
    of_facts, of_observations = _queries(audience)
    outdated: set[int] = set()
    current: set[int] = set()
    for row in (await connection.execute(of_facts)).all():
        (outdated if row[1] else current).update(row[0])
    for row in (await connection.execute(of_observations)).all():
        (outdated if row[1] else current).add(row[0])
    return outdated - current


@lru_cache(maxsize=1000)
def _queries(audience: Audience) -> tuple[sa.Select[Any, bool], sa.Select[Any, bool]]:
    kept = sa.select(facts.c.source_message_ids, facts.c.superseded_by.is_not(None)).where(
        seen_by(facts.c.owner, audience)
    )
    noticed = (
        sa.select(observation_evidence.c.message_id, observations.c.superseded_by.is_not(None))
        .join(observations, observations.c.id == observation_evidence.c.observation_id)
        .where(seen_by(observations.c.owner, audience), observation_evidence.c.message_id.is_not(None))
    )
    return kept, noticed
