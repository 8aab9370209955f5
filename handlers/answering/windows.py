"""The window on a chat that no provider condenses: from where on it is shown, and the summary that stands for the rest.

Rule: both move together and only when the window is cut, so that the beginning of the prompt stays what it was in
between. A summary in the newest turn would be paid anew with every turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import to_ms
from memory.kinds.summaries import store as summaries
from memory.kinds.summaries.summary import Summary
from memory.ports import Clock, Compacted
from memory.storage import compactions
from memory.storage.compactions import Stored
from memory.storage.database import Database
from memory.types import Message

OURS = "merk.summary"
"""Who made what stands for the beginning: no provider, so that all of them are told in words."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is shown: what stands for the beginning, if anything does, and the messages since."""

    stored: Stored
    since: Sequence[Message]


def is_ours(stored: Stored) -> bool:
    """Whether a window begins there, and not what a provider has condensed."""
    return stored.compacted is None or stored.compacted.model == OURS


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a tenant's sessions: `kept` messages, growing to `most` before they are cut back."""

    database: Database
    clock: Clock
    kept: int
    most: int

    async def open(self, session_id: int, stored: Stored, recent: Sequence[Message], *, is_cold: bool) -> Window | None:
        """The window of a session's newest messages; None where no summary stands for what would fall out.

        `recent` are one more than may be shown, where there are so many. `is_cold`: the provider has nothing of the
        last prompt any more, so that a cut costs nothing.
        """
        since = [message for message in recent if message.id > stored.through_id]
        if len(since) > (self.kept if is_cold else self.most):
            cut = await self.cut(session_id, stored, since, self.kept)
            if cut is not None or len(since) > self.most:
                return cut
        return Window(stored, since)

    async def cut(self, session_id: int, stored: Stored, shown: Sequence[Message], kept: int) -> Window | None:
        """Let all but the newest `kept` messages fall out; None where the session's summary does not cover them yet."""
        fallen, since = shown[: len(shown) - kept], shown[len(shown) - kept :]
        through_id = fallen[-1].id
        async with self.database.read() as connection:  # most often there is nothing to write
            if await _covering(connection, session_id, through_id) is None:
                return None
        async with self.database.write() as connection:
            summary = await _covering(connection, session_id, through_id)
            if summary is None:
                return None
            made = Compacted(summary.body, {}, OURS)
            now = to_ms(self.clock.now())
            if not await compactions.put(connection, session_id, made, through_id, epoch=stored.epoch, now=now):
                return None
        return Window(Stored(made, through_id, stored.epoch + 1), since)


async def _covering(connection: AsyncConnection, session_id: int, through_id: int) -> Summary | None:
    """The session's summary, where it stands for everything up to a message."""
    found = await summaries.load(connection, session_id)
    return found.summary if found is not None and found.watermark >= through_id else None
