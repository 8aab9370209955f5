"""When the homeserver was last heard, and what is in the way: health is the age of the last sync (P40, P49)."""

from collections.abc import Callable
from time import monotonic

import structlog

from bot.transports.matrix.errors import explain

log = structlog.get_logger(__name__)


class Contact:
    """One line of health. A problem is logged when it begins and when it ends, not at each attempt."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._made_at: float | None = None
        self.problem: str | None = None

    def made(self) -> None:
        """A sync came to its end."""
        self._made_at = self._clock()
        if self.problem is not None:
            log.info("matrix.recovered", after=self.problem)
            self.problem = None

    def lost(self, error: Exception) -> None:
        problem = explain(error)
        if problem != self.problem:
            log.warning("matrix.problem", problem=problem)
            self.problem = problem

    def age(self) -> float | None:
        """Seconds since the last sync; None before the first."""
        return None if self._made_at is None else self._clock() - self._made_at
