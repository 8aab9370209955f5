"""Messages as evidence: the stems under which each is found, who said it and when. Derived from the log.

Rule: a term stands behind its owner ("u7_garden"), so that scope comes before anything else and a look-up touches
nobody else's words.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.language.text import without_marks
from memory.language.words import evidence_terms, language_of
from memory.storage.index.message_schema import TABLE, TERMS
from memory.storage.tables import evidence, evidence_changes, evidence_queue, messages, sessions, users
from memory.types import Origin

_LONGEST = 6000
"""Characters of a message that are indexed."""
LANGUAGES = ("en", "de", "ru")

_WAITING = (
    sa.select(messages, sessions.c.owner)
    .join(evidence_queue, evidence_queue.c.message_id == messages.c.id)
    .join(sessions, sessions.c.id == messages.c.session_id)
    .order_by(messages.c.id)
    .limit(sa.bindparam("most", type_=sa.Integer))
)


@dataclass(frozen=True, slots=True)
class Changes:
    """How often an owner's evidence and its vectors were added to or taken from."""

    words: int = 0
    vectors: int = 0


async def index_waiting(connection: AsyncConnection, most: int) -> int:
    """Index up to `most` messages that are new or changed; return how many waited and do no more."""
    rows = (await connection.execute(_WAITING, {"most": most})).mappings().all()
    found = [row for row in map(_evidence, rows) if row is not None]
    if found:
        await connection.execute(evidence.insert().prefix_with("OR IGNORE", dialect="sqlite"), found)
    if rows:
        done = [row["id"] for row in rows]
        await connection.execute(evidence_queue.delete().where(evidence_queue.c.message_id.in_(done)))
    return len(rows)


async def waiting(connection: AsyncConnection) -> int:
    return int((await connection.execute(sa.select(sa.func.count()).select_from(evidence_queue))).scalar_one())


async def begin_anew(connection: AsyncConnection) -> None:
    """Drop all evidence, with its vectors, and let every message wait to be indexed."""
    await connection.execute(evidence.delete())
    await connection.execute(evidence_queue.delete())
    every = sa.select(messages.c.id).where(~messages.c.is_ephemeral)
    await connection.execute(evidence_queue.insert().from_select(["message_id"], every))
    await connection.execute(sa.text(f"INSERT INTO {TABLE} ({TABLE}) VALUES ('optimize')"))


def _evidence(row: sa.RowMapping) -> dict[str, Any] | None:
    """What is known of a message; None for one that may not be learned from or has no words."""
    if row["is_ephemeral"] or row["origin"] != Origin.TYPED:
        return None
    text = without_marks(row["text"][:_LONGEST])
    language = language_of(text)
    terms = evidence_terms(text, language)
    if not terms:
        return None
    return {
        "message_id": row["id"],
        "session_id": row["session_id"],
        "owner": row["owner"],
        "speaker": (row["user_id"] or -1) if row["role"] == "user" else 0,
        "language": language,
        "is_question": "?" in text,
        "words": len(terms),
        "body": " ".join(_term(row["owner"], term) for term in terms),
        "at": row["created_at"],
    }


def _term(owner: str, stem: str) -> str:
    return f"{owner}_{stem}"


# --- reading ----------------------------------------------------------------------------------------

_CHANGES = sa.select(
    sa.func.coalesce(sa.func.sum(evidence_changes.c.words), 0),
    sa.func.coalesce(sa.func.sum(evidence_changes.c.vectors), 0),
).where(evidence_changes.c.owner.in_(sa.bindparam("of", expanding=True)))
_ROWS = (
    sa.select(
        evidence.c.message_id,
        evidence.c.session_id,
        evidence.c.speaker,
        evidence.c.is_question,
        evidence.c.words,
        evidence.c.at,
        sa.case({name: number for number, name in enumerate(LANGUAGES)}, value=evidence.c.language, else_=0),
    )
    .where(evidence.c.owner.in_(sa.bindparam("of", expanding=True)), evidence.c.message_id > sa.bindparam("after"))
    .order_by(evidence.c.message_id)
)
_BODIES = (
    sa.select(evidence.c.message_id, evidence.c.body)
    .where(evidence.c.owner.in_(sa.bindparam("of", expanding=True)), evidence.c.message_id > sa.bindparam("after"))
    .order_by(evidence.c.message_id)
)
_TERM = re.compile(r"[\w']+")
"""As the word index takes a body apart."""
_HITS = sa.text(f"SELECT term, group_concat(doc) FROM {TERMS} WHERE term IN :terms GROUP BY term").bindparams(
    sa.bindparam("terms", expanding=True)
)


async def changes_of(connection: AsyncConnection, owners: Sequence[str]) -> Changes:
    """Of all of them together."""
    row = (await connection.execute(_CHANGES, {"of": owners})).one()
    return Changes(int(row[0]), int(row[1]))


async def columns(connection: AsyncConnection, owners: Sequence[str], after: int) -> NDArray[np.int64]:
    """The owners' evidence after an id, a row each: message, session, speaker, question, words, instant, language."""
    rows = (await connection.execute(_ROWS, {"of": owners, "after": after})).all()
    return np.array([tuple(row) for row in rows], dtype=np.int64).reshape(len(rows), 7)


def terms_of(owners: Sequence[str], words: Sequence[Iterable[str]]) -> list[list[str]]:
    """For every word of a question the terms under which these owners' messages with one of its forms are found."""
    return [[_term(owner, form) for form in sorted(word) for owner in owners] for word in words]


async def hits(connection: AsyncConnection, terms: Iterable[str]) -> dict[str, NDArray[np.int64]]:
    """Of each term that stands anywhere the ids of the messages with it, once an occurrence."""
    wanted = sorted(set(terms))
    rows = (await connection.execute(_HITS, {"terms": wanted})).all() if wanted else ()
    return {row[0]: np.fromstring(row[1], dtype=np.int64, sep=",") for row in rows}


async def later_hits(
    connection: AsyncConnection, owners: Sequence[str], after: int, terms: Collection[str]
) -> dict[str, NDArray[np.int64]]:
    """The same in the messages after an id alone, which the word index cannot tell apart: their words are read."""
    found: dict[str, list[int]] = {}
    for message_id, body in (await connection.execute(_BODIES, {"of": owners, "after": after})).all():
        for term in _TERM.findall(body):
            if term in terms:
                found.setdefault(term, []).append(message_id)
    return {term: np.array(ids, dtype=np.int64) for term, ids in found.items()}


async def names(connection: AsyncConnection, user_ids: Iterable[int]) -> dict[int, str]:
    """What the people are called."""
    query = sa.select(users.c.id, users.c.name).where(users.c.id.in_(sorted(set(user_ids))))
    return {row[0]: row[1] for row in (await connection.execute(query)).all()}
