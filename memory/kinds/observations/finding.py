"""Which observations bear on a question, and why: meaning and words, over what holds and may be seen.

Rule: scope comes before ranking, in both arms and again in the look-up; what is still in the window is not recalled.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.observations import store
from memory.kinds.observations.observation import Observation, Trigger
from memory.language.words import keys, keys_of, telling_words, tokens
from memory.scope import seen_by
from memory.storage.index import lexical
from memory.storage.tables import messages, observation_evidence, observation_feedback, observations
from memory.types import Lead, Noticed

LIMIT = 5
"""Observations in one prompt."""
CANDIDATES = 24
"""Observations that are looked at more closely to be shown."""
KEYS = 200
"""Vectors, and observations with words in common, through which messages are found: with 24 of each 1 % fewer are."""
_WORDS_BONUS = 0.4
_ENOUGH_WORDS = 0.5
_NEAR_THE_BEST = 0.7
"""With these two, measured on tune data: of 301 questions over 3 conversations as many find what bears on them (77 %
for 78 %), among 25 % fewer that are shown (3.0 for 4.0 a question)."""
_NAMED = 1.0
"""What a question calls by its own name has the words, however long the question is."""
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


@dataclass(frozen=True, slots=True)
class Heard:
    """A question, and what its words alone found."""

    asked: Asked
    words: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Sought:
    """What both arms found of the observations, and the ways to messages, best first."""

    asked: Asked
    cosines: Mapping[int, float]
    words: Mapping[int, float]
    leads: tuple[Lead, ...]


async def seek(connection: AsyncConnection, heard: Heard, cosines: Mapping[int, float], now: int) -> Sought:
    """What may bear on the question. `cosines` is empty where the dense arm did not answer."""
    asked, words = heard.asked, heard.words
    leads = await _leads(connection, asked, cosines, words, now) if cosines or words else []
    return Sought(asked, cosines, words, tuple(leads))


async def shown(connection: AsyncConnection, sought: Sought, *, floor: float, now: int) -> list[Noticed]:
    """The observations to show, best first."""
    asked, cosines, words = sought.asked, sought.cosines, sought.words
    every = sorted({*cosines, *words}, key=lambda each: -_score(cosines.get(each), words.get(each, 0.0)))
    ids = sorted(every[:CANDIDATES])
    if not ids:
        return []
    which = sa.and_(store.in_force(now), observations.c.id.in_(ids), ~_is_in_window(asked))
    found = {each.id: each for each in await store.load(connection, asked.keys, which)}
    words = {**words, **dict.fromkeys(_named(found.values(), asked.text), _NAMED)}
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


def _named(found: Iterable[Observation], text: str) -> list[int]:
    """The ids of those of which a text holds a concept or an alias with all its words, in any form."""
    there = keys_of(tokens(text))

    def is_named(name: str) -> bool:
        words = telling_words(name)
        return bool(words) and all(not keys(word).isdisjoint(there) for word in words)

    return [each.id for each in found if any(map(is_named, (*each.content.concepts, *each.content.aliases)))]


async def _leads(
    connection: AsyncConnection, asked: Asked, cosines: Mapping[int, float], words: Mapping[int, float], now: int
) -> list[Lead]:
    """The ways to messages, best first: both arms count alike, each beside its own best."""
    near = max(max(cosines.values(), default=0.0), 1e-9)
    scores = {each: max(cosines.get(each, 0.0), 0.0) / near + words.get(each, 0.0) for each in {*cosines, *words}}
    query = (
        sa.select(observation_evidence.c.observation_id, observation_evidence.c.message_id)
        .join(observations, observations.c.id == observation_evidence.c.observation_id)
        .where(seen_by(observations.c.owner, asked.keys), store.in_force(now))
        .where(observations.c.id.in_([*scores]), observation_evidence.c.message_id.is_not(None))
        .order_by(observation_evidence.c.id)
    )
    rests: dict[int, list[int]] = {}
    for of, message_id in (await connection.execute(query)).all():
        rests.setdefault(of, []).append(message_id)
    best = sorted(rests, key=lambda each: (-scores[each], -each))
    return [Lead(tuple(rests[each]), cosines.get(each), words.get(each, 0.0)) for each in best]


async def by_words(connection: AsyncConnection, asked: Asked, most: int) -> dict[int, float]:
    hits = await lexical.search(connection, asked.keys, asked.text, most, table=lexical.OBSERVATIONS)
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
