"""Snapshots of standing instructions."""

import pytest
import sqlalchemy as sa

from memory.storage import instructions as store
from memory.storage.database import Database


async def test_snapshots_are_only_added_and_the_newest_is_in_force(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(
            sa.text(
                "INSERT INTO users (id, name, role, client_language, created_at) VALUES (7, 'A', 'member', 'en', 0)"
            )
        )
        subject = store.subject_of(7)
        assert subject == "u7"
        assert await store.in_force(connection, subject) is None
        first = await store.apply(connection, subject, "Be brief.", 7, 1000)
        again = await store.apply(connection, subject, "Be brief.", 7, 2000)
        assert again == first
        second = await store.apply(connection, subject, "", 7, 3000)
        third = await store.apply(connection, subject, "Be brief.", 7, 4000, first.id)
        pirate = await store.apply(connection, store.PERSONA, "Pirate.", 7, 5000)
        assert [first.version, second.version, third.version, pirate.version] == [1, 2, 3, 1]
        assert await store.in_force(connection, subject) == third
        assert await store.history(connection, subject, 2) == [third, second]
        assert await store.history(connection, subject, 9, before=second.id) == [first]
        assert await store.by_id(connection, subject, first.id) == first
        assert await store.by_id(connection, store.PERSONA, first.id) is None
        both = (subject, store.PERSONA)
        assert await store.standing(connection, both) == {subject: "Be brief.", store.PERSONA: "Pirate."}
        await store.apply(connection, subject, "", 7, 6000)
        assert await store.standing(connection, both) == {store.PERSONA: "Pirate."}
        with pytest.raises(ValueError, match="at most 2000"):
            await store.apply(connection, subject, "x" * 2001, 7, 7000)
