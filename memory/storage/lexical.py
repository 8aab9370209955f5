"""The word index: sessions as stems in FTS5. Derived data, rebuilt from SQL at any time.

Rule: the owner is a token inside MATCH, so that scope comes before ranking; a person's words are quoted, never syntax.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.language.words import index_terms, query_terms

TABLE = "summary_words"
CREATE = f"CREATE VIRTUAL TABLE {TABLE} USING fts5(owner, body, tokenize = 'unicode61 remove_diacritics 0')"
"""The rowid is the session's id. With its own copy of the stems, so that a row can be deleted by its id alone."""

_MOST_WORDS = 24
"""Of a question; a longer one asks about its first words or about nothing."""


@dataclass(frozen=True, slots=True)
class LexicalHit:
    session_id: int
    weight: float
    """Of the question's different content words, what share is there, times BM25 beside the best hit's: 0 to 1."""


async def put(connection: AsyncConnection, session_id: int, owner: str, text: str) -> None:
    """Index a session's text, in place of what was there."""
    await remove(connection, [session_id])
    await connection.execute(
        sa.text(f"INSERT INTO {TABLE} (rowid, owner, body) VALUES (:id, :owner, :body)"),
        {"id": session_id, "owner": owner, "body": " ".join(index_terms(text))},
    )


async def remove(connection: AsyncConnection, session_ids: Sequence[int]) -> None:
    for session_id in session_ids:
        await connection.execute(sa.text(f"DELETE FROM {TABLE} WHERE rowid = :id"), {"id": session_id})


async def clear(connection: AsyncConnection) -> None:
    await connection.execute(sa.text(f"DELETE FROM {TABLE}"))


async def optimize(connection: AsyncConnection) -> None:
    """Merge all segments: deleted rows leave no words behind."""
    await connection.execute(sa.text(f"INSERT INTO {TABLE} ({TABLE}) VALUES ('optimize')"))


async def search(connection: AsyncConnection, owners: Sequence[str], question: str, limit: int) -> list[LexicalHit]:
    """The sessions of these owners that share words with the question, best first. ValueError without owners."""
    if not owners:
        raise ValueError("a search names the owners it may see (P28)")
    words = query_terms(question)[:_MOST_WORDS]
    if not words:
        return []
    match = f"owner : ({_any_of(owners)}) AND body : ({_any_of([form for forms in words for form in sorted(forms)])})"
    query = sa.text(
        f"SELECT rowid, body, -bm25({TABLE}, 0.0, 1.0) AS rank FROM {TABLE} WHERE {TABLE} MATCH :match "
        "ORDER BY rank DESC LIMIT :limit"
    )
    rows = (await connection.execute(query, {"match": match, "limit": limit})).all()
    best = max((float(row[2]) for row in rows), default=0.0)
    return [LexicalHit(int(row[0]), _share(words, str(row[1])) * _relative(float(row[2]), best)) for row in rows]


def _any_of(words: Sequence[str]) -> str:
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in dict.fromkeys(words))


def _relative(rank: float, best: float) -> float:
    return rank / best if best > 0 else 1.0


def _share(words: Sequence[frozenset[str]], body: str) -> float:
    there = set(body.split())
    return sum(not forms.isdisjoint(there) for forms in words) / len(words)
