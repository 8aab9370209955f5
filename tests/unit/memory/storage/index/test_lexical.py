"""The word index: scope before ranking, stems in three languages, no residue."""

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from memory.storage.database import Database
from memory.storage.index import lexical
from memory.storage.index.lexical import CREATE


async def _found(database: Database, owners: list[str], question: str) -> list[tuple[int, float]]:
    async with database.read() as connection:
        hits = await lexical.search(connection, owners, question, 10)
    return [(hit.session_id, round(hit.weight, 2)) for hit in hits]


async def _put(database: Database, *rows: tuple[int, str, str]) -> None:
    async with database.write() as connection:
        for session_id, owner, text in rows:
            await lexical.put(connection, session_id, owner, text)


async def test_only_the_named_owners_are_searched(database: Database) -> None:
    await _put(database, (1, "u1", "red fox"), (2, "u11", "red fox"), (3, "c1", "red fox"))
    assert await _found(database, ["u1"], "red fox") == [(1, 1.0)]
    assert {row[0] for row in await _found(database, ["u1", "c1"], "red fox")} == {1, 3}
    assert await _found(database, ["u2"], "red fox") == []


async def test_p28_without_owners_nothing_is_searched(database: Database) -> None:
    async with database.read() as connection:
        with pytest.raises(ValueError, match="owners"):
            await lexical.search(connection, [], "fox", 10)


async def test_a_hit_weighs_as_much_as_of_the_question_it_has(database: Database) -> None:
    """Each word of the question counts once; a text that is found worse than the best weighs less."""
    await _put(database, (1, "u1", "Die Häuser am Fluss und an der Straße"), (2, "u1", "Ein Boot"))
    (best, half), (other, less) = await _found(database, ["u1"], "Haus, Haus oder Boot?")
    assert (best, half, other) == (2, 0.5, 1)
    assert 0 < less < 0.5


async def test_a_row_is_replaced_and_removed(database: Database) -> None:
    await _put(database, (1, "u1", "red fox"), (1, "u1", "blue whale"))
    assert await _found(database, ["u1"], "fox") == []
    assert await _found(database, ["u1"], "whales") == [(1, 1.0)]
    async with database.write() as connection:
        await lexical.remove(connection, [1])
    assert await _found(database, ["u1"], "whale") == []


@given(st.text(max_size=60))
def test_no_question_is_a_syntax_error(question: str) -> None:
    engine = sa.create_engine("sqlite://")
    words = [form for forms in lexical.query_terms(question) for form in forms]
    with engine.connect() as connection:
        connection.execute(sa.text(CREATE[0]))
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in words) or '"x"'
        connection.execute(sa.text("SELECT rowid FROM summary_words WHERE summary_words MATCH :m"), {"m": match})
    engine.dispose()
