"""Finding a message again: the one that a person replies to, the last answer, and what an answer was made with.

Rule: only messages of the audience that asks; working output is none.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms
from memory.scope import Audience
from memory.storage.tables import messages, outbox, sessions


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer with its trace: ids and figures, never text."""

    message_id: int
    session_id: int
    question_id: int | None
    """The message that it answers."""
    at: datetime
    trace: dict[str, Any]


async def replied_to(connection: AsyncConnection, audience: Audience, ref: str) -> int | None:
    """The message that the transport calls `ref`: somebody's own, or a part of what Merk sent."""
    said = _of(audience).where(messages.c.external_ref == ref)
    sent = (
        _of(audience)
        .join(outbox, outbox.c.message_id == messages.c.id)
        .where(sa.cast(outbox.c.refs, sa.Text).contains(json.dumps(ref), autoescape=True))
    )
    for query in (said, sent):
        found = (await connection.execute(query.order_by(messages.c.id.desc()).limit(1))).scalar_one_or_none()
        if found is not None:
            return int(found)
    return None


async def last_answer(connection: AsyncConnection, audience: Audience, session_id: int) -> int | None:
    """The newest thing that a model said in a session."""
    query = _of(audience).where(
        messages.c.session_id == session_id, messages.c.role == "assistant", messages.c.model.is_not(None)
    )
    return (await connection.execute(query.order_by(messages.c.id.desc()).limit(1))).scalar_one_or_none()


async def answer(connection: AsyncConnection, audience: Audience, message_id: int) -> Answered | None:
    """What an answer was made with; of a question, its answer. None where there is none for this audience."""
    here = _of(audience).where(messages.c.id == message_id)
    query = here.with_only_columns(messages.c.id, messages.c.inbox_id, messages.c.session_id)
    one = (await connection.execute(query)).first()
    if one is None:
        return None
    same = sa.and_(messages.c.session_id == one[2], messages.c.inbox_id == one[1], ~messages.c.is_ephemeral)
    turn = sa.select(messages).where(messages.c.id == one[0] if one[1] is None else same)
    rows = {row["role"]: row for row in (await connection.execute(turn)).mappings()}
    found, question = rows.get("assistant"), rows.get("user")
    if found is None:
        return None
    return Answered(
        message_id=found["id"],
        session_id=found["session_id"],
        question_id=question["id"] if question else None,
        at=from_ms(found["created_at"]),
        trace=found["memory_trace"] or {},
    )


def _of(audience: Audience) -> sa.Select[Any]:
    return (
        sa.select(messages.c.id)
        .join(sessions, sessions.c.id == messages.c.session_id)
        .where(sessions.c.owner == audience.owner, ~messages.c.is_ephemeral, messages.c.redacted_at.is_(None))
    )
