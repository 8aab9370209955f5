"""The word indexes: sessions and observations as stems in FTS5, a table each. Derived data, rebuilt from SQL.

Rule: the owner is a token inside MATCH, so that scope comes before ranking; a person's words are quoted, never syntax.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.language.words import index_terms, query_terms
from memory.storage.index import message_schema

TABLE = "summary_words"
"""The rowid is the session's id."""
OBSERVATIONS = "observation_words"
"""The rowid is the observation's id."""
TABLES = (TABLE, OBSERVATIONS, message_schema.TABLE)
"""All that a forget has to clear of deleted words."""
_FTS = "USING fts5(owner, body, tokenize = 'unicode61 remove_diacritics 0')"
CREATE = (*(f"CREATE VIRTUAL TABLE {table} {_FTS}" for table in (TABLE, OBSERVATIONS)), *message_schema.CREATE)
"""With their own copy of the stems, so that a row can be deleted by its id alone."""

_SEARCH = {
    table: sa.text(
        f"SELECT rowid, body, -bm25({table}, 0.0, 1.0) AS rank FROM {table} WHERE {table} MATCH :match "
        "ORDER BY rank DESC LIMIT :limit"
    )
    for table in (TABLE, OBSERVATIONS)
}
_MOST_WORDS = 24
"""Of a question; a longer one asks about its first words or about nothing."""


@dataclass(frozen=True, slots=True)
class LexicalHit:
    session_id: int
    """The row's id: of an observation in that table."""
    weight: float
    """Of the question's different content words, what share is there, times BM25 beside the best hit's: 0 to 1."""


async def put(
    connection: AsyncConnection,
    row_id: int,
    owner: str,
    text: str,
    *,
    table: str = TABLE,
    further: Iterable[str] = (),
) -> None:
    """Index a row's text, in place of what was there; `further` are terms in other languages, as they are."""
    await remove(connection, [row_id], table=table)
    await connection.execute(
        sa.text(f"INSERT INTO {table} (rowid, owner, body) VALUES (:id, :owner, :body)"),
        {"id": row_id, "owner": owner, "body": " ".join((*index_terms(text), *further))},
    )


async def remove(connection: AsyncConnection, row_ids: Sequence[int], *, table: str = TABLE) -> None:
    for row_id in row_ids:
        await connection.execute(sa.text(f"DELETE FROM {table} WHERE rowid = :id"), {"id": row_id})


async def clear(connection: AsyncConnection, *, table: str = TABLE) -> None:
    await connection.execute(sa.text(f"DELETE FROM {table}"))


async def optimize(connection: AsyncConnection) -> None:
    """Merge all segments: deleted rows leave no words behind."""
    for table in TABLES:
        await connection.execute(sa.text(f"INSERT INTO {table} ({table}) VALUES ('optimize')"))


async def search(
    connection: AsyncConnection, owners: Sequence[str], question: str, limit: int, *, table: str = TABLE
) -> list[LexicalHit]:
    """The rows of these owners that share words with the question, best first. ValueError without owners."""
    if not owners:
        raise ValueError("a search names the owners it may see (P28)")
    words = query_terms(question)[:_MOST_WORDS]
    if not words:
        return []
    match = f"owner : ({_any_of(owners)}) AND body : ({_any_of([form for forms in words for form in sorted(forms)])})"
    rows = (await connection.execute(_SEARCH[table], {"match": match, "limit": limit})).all()
    best = max((float(row[2]) for row in rows), default=0.0)
    return [LexicalHit(int(row[0]), _share(words, str(row[1])) * _relative(float(row[2]), best)) for row in rows]


def _any_of(words: Sequence[str]) -> str:
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in dict.fromkeys(words))


def _relative(rank: float, best: float) -> float:
    return rank / best if best > 0 else 1.0


def _share(words: Sequence[frozenset[str]], body: str) -> float:
    there = set(body.split())
    return sum(not forms.isdisjoint(there) for forms in words) / len(words)
