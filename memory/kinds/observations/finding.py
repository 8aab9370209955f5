"""Which observations bear on a question, and why. A first version: meaning and words, over what holds and may be seen.

Rule: scope comes before ranking, in both arms and again in the look-up; what is still in the window is not recalled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.observations import store
from memory.kinds.observations.observation import Observation, Trigger
from memory.storage.index import lexical
from memory.storage.tables import messages, observation_evidence, observation_feedback, observations
from memory.types import Noticed

LIMIT = 5
"""Observations in one prompt."""
CANDIDATES = 24
_WORDS_BONUS = 0.3
_ENOUGH_WORDS = 0.5
_NEAR_THE_BEST = 0.6
_REJECTED, _CONFIRMED, _MOST_CONFIRMED = 0.6, 1.05, 1.1
"""A rejection costs far more than a confirmation brings: feedback demotes, it does not promote."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to memory, and for whom."""

    keys: tuple[str, ...]
    """What everyone present may see: `members.shown`."""
    text: str
    session_id: int = 0
    """The conversation that is going on."""
    window: int = 24
    """How many of its newest messages the model is shown anyway (pitfall P11)."""


async def find(
    connection: AsyncConnection, asked: Asked, cosines: Mapping[int, float], *, floor: float, now: int
) -> list[Noticed]:
    """The observations to show, best first. `cosines` is empty where the dense arm did not answer."""
    words = await by_words(connection, asked)
    ids = sorted({*cosines, *words})
    if not ids:
        return []
    which = sa.and_(store.in_force(now), observations.c.id.in_(ids), ~_is_in_window(asked))
    found = {each.id: each for each in await store.load(connection, asked.keys, which)}
    weights = await _weights(connection, list(found))
    scored = [
        (_score(cosines.get(each), words.get(each, 0.0)) * weights.get(each, 1.0), each)
        for each in found
        if cosines.get(each, -1.0) >= floor or words.get(each, 0.0) >= _ENOUGH_WORDS
    ]
    best = max((score for score, _ in scored), default=0.0)
    near = sorted((pair for pair in scored if pair[0] >= best * _NEAR_THE_BEST), key=lambda pair: (-pair[0], -pair[1]))
    return [
        noticed(found[each], score, _reason(cosines.get(each), words.get(each, 0.0))) for score, each in near[:LIMIT]
    ]


async def by_words(connection: AsyncConnection, asked: Asked) -> dict[int, float]:
    hits = await lexical.search(connection, asked.keys, asked.text, CANDIDATES, table=lexical.OBSERVATIONS)
    return {hit.session_id: hit.weight for hit in hits}


def noticed(observation: Observation, score: float = 0.0, reason: str = "") -> Noticed:
    """An observation as an answer uses it."""
    return Noticed(
        id=observation.id,
        text=observation.narrative,
        title=observation.title,
        type=observation.type,
        at=observation.valid_from,
        source=source_of(observation),
        scope=observation.scope,
        score=score,
        reason=reason,
    )


def source_of(observation: Observation) -> str:
    """Where it comes from, as a code: "chat:12" a session, "hook", "manual:12", "consolidation"."""
    has_session = observation.session_id is not None and observation.trigger_source is not Trigger.HOOK
    return f"{observation.trigger_source}:{observation.session_id}" if has_session else str(observation.trigger_source)


def _is_in_window(asked: Asked) -> sa.ColumnElement[bool]:
    """Whether the model is shown its words anyway: all of its evidence is among the newest messages here."""
    shown = (
        sa.select(messages.c.id)
        .where(messages.c.session_id == asked.session_id, ~messages.c.is_ephemeral)
        .order_by(messages.c.id.desc())
        .limit(asked.window)
    )
    of = observation_evidence.c.observation_id == observations.c.id
    here = sa.select(observation_evidence.c.id).where(of, observation_evidence.c.message_id.in_(shown))
    elsewhere = sa.select(observation_evidence.c.id).where(
        of, sa.or_(observation_evidence.c.message_id.is_(None), observation_evidence.c.message_id.not_in(shown))
    )
    return sa.and_(here.exists(), ~elsewhere.exists())


async def _weights(connection: AsyncConnection, ids: Sequence[int]) -> dict[int, float]:
    """What people said of them when they were used before."""
    query = (
        sa.select(observation_feedback.c.observation_id, observation_feedback.c.kind, sa.func.count())
        .where(observation_feedback.c.observation_id.in_(ids))
        .where(observation_feedback.c.kind.in_(("confirmed", "rejected")))
        .group_by(observation_feedback.c.observation_id, observation_feedback.c.kind)
    )
    weights: dict[int, float] = {}
    for of, kind, count in (await connection.execute(query)).all():
        factor = _REJECTED**count if kind == "rejected" else min(_CONFIRMED**count, _MOST_CONFIRMED)
        weights[of] = weights.get(of, 1.0) * factor
    return weights


def _score(cosine: float | None, weight: float) -> float:
    return max(cosine or 0.0, 0.0) + _WORDS_BONUS * weight


def _reason(cosine: float | None, weight: float) -> str:
    """As codes with figures: "meaning 0.31, words 0.50"."""
    parts = [f"meaning {cosine:.2f}"] if cosine is not None else []
    return ", ".join([*parts, f"words {weight:.2f}"] if weight else parts)
