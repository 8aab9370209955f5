"""Sessions in the two indexes: a few vectors a session, and its stems."""

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.summaries.store import index_words, with_views
from memory.storage.index import lexical
from memory.storage.index.vectors import Kind, OfKind, Vectors
from memory.storage.tables import summaries

KIND = Kind("summaries", summaries.c.session_id, "", with_views)


class SummaryIndex(OfKind):
    """The vectors of sessions: a row's id is the session's."""

    def __init__(self, vectors: Vectors) -> None:
        super().__init__(vectors, KIND)


async def rebuild_words(connection: AsyncConnection) -> None:
    """Fill the word index from SQL."""
    await lexical.clear(connection)
    for session_id in (await connection.execute(sa.select(summaries.c.session_id))).scalars().all():
        await index_words(connection, session_id)
    await lexical.optimize(connection)
