"""The file's own observations, made by somebody else's model, as further keys to the messages that they cite.

They are stored, indexed and searched as what Merk notices by itself; the figures are a section of their own.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.recall_data import Conversation
from memory.instants import SystemClock
from memory.kinds.observations import indexing, store
from memory.kinds.observations.observation import Content, Trigger, Type
from memory.kinds.observations.reading import Reading
from memory.ports import Embedder
from memory.storage.database import Database
from memory.storage.index.chroma import ChromaIndex
from memory.storage.index.vectors import OfKind, Vectors
from memory.types import MemorySettings


@asynccontextmanager
async def reading(
    database: Database, embedder: Embedder, folder: Path, told: Sequence[tuple[str, Conversation, dict[str, int]]]
) -> AsyncGenerator[Reading, None]:
    """Observations that can be asked. `told`: of each owner the conversation, and the message of each turn."""
    clock = SystemClock()
    for owner, conversation, message_of in told:
        await _keep(database, owner, conversation, message_of)
    kind = indexing.kind(clock)
    index = ChromaIndex(folder, name=embedder.name, dimension=embedder.dimension)
    vectors = Vectors(database, index, embedder, (kind,))
    await vectors.open()
    await vectors.catch_up()
    yield Reading(database, clock, embedder, OfKind(vectors, kind), MemorySettings())
    await index.close()


async def _keep(database: Database, owner: str, conversation: Conversation, message_of: dict[str, int]) -> None:
    """What says the same in the same words is one observation with several proofs."""
    ids: dict[str, int] = {}
    async with database.write() as connection:
        for noted in conversation.noted:
            content = Content(Type.FACT, "", noted.text)
            key = content.hash_for(owner, None)
            if key not in ids:
                ids[key] = await store.insert(
                    connection, content, owner, user_id=None, session_id=None, trigger=Trigger.CHAT, now=0
                )
            for turn in noted.turns:
                await store.add_evidence(connection, ids[key], message_of[turn], noted.text)
