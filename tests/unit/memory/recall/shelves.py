"""Shelves for tests of what is pure."""

from datetime import UTC, datetime

import numpy as np

from memory.instants import to_ms
from memory.recall.shelf import Shelf

ASSISTANT, ADA = 0, 1
DAY = datetime(2026, 3, 1, tzinfo=UTC)


def shelf(sessions: list[int], speakers: list[int] | None = None, days: list[datetime] | None = None) -> Shelf:
    """Messages 1, 2, 3 … of five words each in these sessions; where nothing is said of it, Ada's, of one day."""
    speakers, days = speakers or [ADA] * len(sessions), days or [DAY] * len(sessions)
    rows = [
        [number, session, speaker, 0, 5, to_ms(day), 0]
        for number, (session, speaker, day) in enumerate(zip(sessions, speakers, days, strict=True), 1)
    ]
    return Shelf.of(np.array(rows, dtype=np.int64))
