"""What was in the making when something was forgotten: answers that grow, messages that wait for their turn.

Rule: what such work writes after the forget goes through the same redaction, so it never reaches the disk. It lives in
the process alone: a crash ends the work with it, and what the work is taken up from was redacted by the forget.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.language.telling import Telling, redact
from memory.storage.erasure import rewritten
from memory.storage.tables import inbox

_TOLD: WeakKeyDictionary[sa.Engine, dict[int, tuple[Telling, ...]]] = WeakKeyDictionary()
"""By the writing engine: inbox row -> what was forgotten while it was worked on."""


def note(connection: AsyncConnection, inbox_ids: Iterable[int], tellings: Sequence[Telling]) -> None:
    """Redact from now on what these inbox rows lead to. Called in the transaction that erases: writes queue behind it,
    and where it fails, words too many are taken out of a few messages at worst.
    """
    told = _TOLD.setdefault(_engine(connection), {})
    for inbox_id in inbox_ids:
        told[inbox_id] = (*told.get(inbox_id, ()), *tellings)


def is_anything_noted() -> bool:
    return any(_TOLD.values())


def without_forgotten(connection: AsyncConnection, inbox_id: int | None, value: Any) -> Any:
    """A text or JSON value that work on an inbox row is about to write, without what was forgotten meanwhile."""
    tellings = _TOLD.get(_engine(connection), {}).get(inbox_id) if inbox_id is not None else None
    return value if tellings is None else rewritten(value, lambda text: redact(tellings, text))


async def let_go(connection: AsyncConnection) -> None:
    """Drop what finished work is not going to need any more."""
    told = _TOLD.get(_engine(connection))
    if not told:
        return
    query = sa.select(inbox.c.id).where(inbox.c.id.in_(list(told)), inbox.c.status != "done")
    still_open = set((await connection.execute(query)).scalars())
    for inbox_id in told.keys() - still_open:
        del told[inbox_id]


def _engine(connection: AsyncConnection) -> sa.Engine:
    return connection.engine.sync_engine
