"""Observations in the vector index: what they say, and each of their facts."""

from memory.instants import to_ms
from memory.kinds.observations.store import in_force, with_views
from memory.ports import Clock
from memory.storage.index.vectors import Kind
from memory.storage.tables import observations


def kind(clock: Clock) -> Kind:
    """Under owner keys of their own ("o.u7"): they never mix with sessions there. Only what holds is in it."""
    return Kind("observations", observations.c.id, "o.", with_views, lambda: in_force(to_ms(clock.now())))
