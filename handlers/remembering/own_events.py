"""Merk's own writes as events of memory: a reminder done, instructions changed, somebody new in a group.

Rule: figures and nothing that anybody said, so that nothing of it has to be forgotten; and never while somebody waits.
"""

from collections import deque
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import IntegrityError

from memory.kinds.observations.observations import Observations
from memory.types import ObservationRefused

log = structlog.get_logger(__name__)

OWN = "merk"
"""The hook of what comes from inside; none of the configuration may be called so."""


@dataclass(frozen=True, slots=True)
class _Event:
    owner: str
    id: str
    title: str
    user_id: int | None


class OwnEvents:
    """`note` costs nothing; what is noted is kept at the next `flush`. A kill between them loses it."""

    def __init__(self, observations: Observations) -> None:
        self._observations = observations
        self._waiting: deque[_Event] = deque()

    def note(self, owner: str, event_id: str, title: str, *, user_id: int | None = None) -> None:
        """`owner` is a scope key; the same event id a second time changes nothing."""
        self._waiting.append(_Event(owner, event_id, title, user_id))

    async def flush(self) -> int:
        """Keep what waits, oldest first; return how many events were new. What fails waits for the next time."""
        count = 0
        while self._waiting:
            event = self._waiting[0]
            try:
                noted = await self._observations.note_event(
                    event.owner, hook=OWN, event_id=event.id, title=event.title, user_id=event.user_id
                )
                count += noted is not None
            except ObservationRefused as refused:
                log.warning("own_events.refused", event_id=event.id, reason=refused.reason)
            except IntegrityError:
                log.info("own_events.of_nobody", event_id=event.id)  # the person was erased meanwhile
            self._waiting.popleft()
        return count
