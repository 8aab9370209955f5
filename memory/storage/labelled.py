"""Questions whose evidence is known, because an answer cited it or a person confirmed it: what recall is measured on.

Rule: only what somebody asked in private; whose it is comes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.storage.tables import messages, observation_evidence, observation_feedback, observations, sessions


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question of a person in private, and on which earlier messages its answer rests, as far as that is known."""

    question_id: int
    text: str
    at: int
    user_id: int
    chat_id: int
    session_id: int
    evidence: tuple[int, ...]
    replaced: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    """For what was used and had replaced something: the messages under each of the two."""


_LABELLED_ANSWERS = 1000
_question = messages.alias("question")


async def labelled(connection: AsyncConnection, since: int, most: int) -> dict[int, list[Labelled]]:
    """By person, the newest questions since then whose answers cite something, or of which something was confirmed."""
    query = (
        sa.select(
            messages.c.id,
            messages.c.memory_trace,
            _question.c.id.label("question_id"),
            _question.c.text,
            _question.c.created_at,
            _question.c.user_id,
            sessions.c.chat_id,
            sessions.c.id.label("session_id"),
        )
        .join(sessions, sessions.c.id == messages.c.session_id)
        .join(_question, sa.and_(_question.c.session_id == sessions.c.id, _question.c.inbox_id == messages.c.inbox_id))
        .where(messages.c.role == "assistant", ~messages.c.is_ephemeral)
        .where(_question.c.role == "user", ~_question.c.is_ephemeral, _question.c.redacted_at.is_(None))
        .where(sessions.c.owner == sa.literal("u").concat(sa.cast(_question.c.user_id, sa.Text)))
        .where(messages.c.created_at >= since)
        .order_by(messages.c.id.desc())
        .limit(_LABELLED_ANSWERS)
    )
    rows = (await connection.execute(query)).mappings().all()
    used = await _used(connection, rows)
    under, former = await _under(connection, {each for ids in used.values() for each in ids})
    found: dict[int, list[Labelled]] = {}
    for row in rows:
        of_person = found.setdefault(row["user_id"], [])
        noticed = used[row["id"]]
        trace: dict[str, Any] = row["memory_trace"] or {}
        cited: list[int] = trace.get("cited", {}).get("messages", [])
        evidence = dict.fromkeys([*cited, *(each for one in noticed for each in under.get(one, ()))])
        if evidence and len(of_person) < most:
            pairs = tuple((under.get(one, ()), under.get(old, ())) for one in noticed for old in former.get(one, ()))
            figures = (row["question_id"], row["text"], row["created_at"], row["user_id"], row["chat_id"])
            of_person.append(Labelled(*figures, row["session_id"], tuple(evidence), pairs))
    return {person: questions for person, questions in found.items() if questions}


async def _used(connection: AsyncConnection, rows: Sequence[sa.RowMapping]) -> dict[int, set[int]]:
    """Of each answer the observations that it cites or that somebody confirmed, without those that were rejected."""
    c = observation_feedback.c
    query = sa.select(c.message_id, c.observation_id, c.kind).where(c.message_id.in_([row["id"] for row in rows]))
    used: dict[int, set[int]] = {row["id"]: set() for row in rows}
    wrong: set[tuple[int, int]] = set()
    for message_id, observation_id, kind in (await connection.execute(query)).all():
        if kind in ("cited", "confirmed"):
            used[message_id].add(observation_id)
        elif kind == "rejected":
            wrong.add((message_id, observation_id))
    return {of: {each for each in ids if (of, each) not in wrong} for of, ids in used.items()}


async def _under(
    connection: AsyncConnection, ids: set[int]
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """The messages under observations and under what those replaced, and which replaced which."""
    query = sa.select(observations.c.id, observations.c.superseded_by).where(observations.c.superseded_by.in_(ids))
    former: dict[int, tuple[int, ...]] = {}
    for old, new in (await connection.execute(query)).all():
        former[new] = (*former.get(new, ()), old)
    every = ids | {old for olds in former.values() for old in olds}
    c = observation_evidence.c
    rests = sa.select(c.observation_id, c.message_id).where(c.observation_id.in_(every), c.message_id.is_not(None))
    under: dict[int, tuple[int, ...]] = {}
    for of, message_id in (await connection.execute(rests.order_by(c.id))).all():
        under[of] = (*under.get(of, ()), message_id)
    return under, former
