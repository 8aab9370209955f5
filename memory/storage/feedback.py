"""How often what was noticed was of use: counted from what people and answers said of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.scope import seen_by
from memory.storage.tables import observation_feedback, observations


@dataclass(frozen=True, slots=True)
class Use:
    retrieved: int = 0
    cited: int = 0
    confirmed: int = 0
    rejected: int = 0

    @property
    def cited_share(self) -> float | None:
        """Of what was put before the model, how much its answers say they used."""
        return self.cited / self.retrieved if self.retrieved else None

    @property
    def right_share(self) -> float | None:
        """Of what people judged, how much was right."""
        judged = self.confirmed + self.rejected
        return self.confirmed / judged if judged else None


async def use(
    connection: AsyncConnection, keys: Sequence[str], since: int = 0, observation_id: int | None = None
) -> Use:
    """Of one observation, or of all that these scope keys show, from an instant on."""
    c = observation_feedback.c
    which = [seen_by(observations.c.owner, keys), c.created_at >= since]
    if observation_id is not None:
        which.append(c.observation_id == observation_id)
    query = (
        sa.select(c.kind, sa.func.count())
        .join(observations, observations.c.id == c.observation_id)
        .where(*which)
        .group_by(c.kind)
    )
    return Use(**{row[0]: row[1] for row in await connection.execute(query)})
