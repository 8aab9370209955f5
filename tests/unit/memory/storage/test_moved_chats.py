"""A group that gets a new id keeps its sessions and its memory, also where the new id is known already."""

from memory import forgetting
from memory.scope import Audience
from memory.storage import sessions
from memory.types import Session
from tests.unit.memory.world import World


async def _groups(world: World) -> tuple[Audience, Audience]:
    """The same person in the old group and in the one it has become."""
    ada = await world.person("ada")
    (old,) = await world.in_group(ada, title="old")
    (new,) = await world.in_group(ada, title="new")
    return old, new


async def _move(world: World) -> None:
    async with world.database.write() as connection:
        await sessions.move_chat(connection, "telegram", "-old", "-new")


async def _current(world: World, audience: Audience) -> Session | None:
    async with world.database.read() as connection:
        return await sessions.current(connection, audience.chat_id, "")


async def test_a_new_id_that_nobody_knows_yet_is_taken_over(world: World) -> None:
    ada = await world.person("ada")
    (old,) = await world.in_group(ada, title="old")
    session = await world.talk(old, "the code is blue whale", "noted")
    await _move(world)
    async with world.database.read() as connection:
        found = await sessions.look_up(connection, "telegram", "-new", "")
    assert found == (old.chat_id, session)


async def test_two_rows_of_one_chat_become_one_and_the_first_session_goes_on(world: World) -> None:
    """The first words under the new id may come before the message that says so."""
    old, new = await _groups(world)
    first = await world.talk(old, "the code is blue whale", "noted")
    later = await world.talk(new, "first in the new group", "hello")
    await _move(world)
    current = await _current(world, new)
    assert current is not None
    assert (current.id, current.owner) == (first.id, new.owner)
    rows = {row["id"]: (row["chat_id"], row["is_current"]) for row in await world.rows("sessions")}
    assert rows == {first.id: (new.chat_id, True), later.id: (new.chat_id, False)}
    assert [row["external_id"] for row in await world.rows("chats")] == ["ada", "-new"]
    async with world.database.read() as connection:
        assert {each.id for each in await sessions.page(connection, new, offset=0, limit=9)} == {first.id, later.id}


async def test_moving_twice_or_from_nowhere_changes_nothing(world: World) -> None:
    old, new = await _groups(world)
    await world.talk(old, "hello", "hello")
    await _move(world)
    before = await world.snapshot(new.owner)
    await _move(world)
    async with world.database.write() as connection:
        await sessions.move_chat(connection, "telegram", "-nobody", "-new")
    assert await world.snapshot(new.owner) == before


async def test_facts_go_along_and_one_that_both_know_stays_once(world: World) -> None:
    old, new = await _groups(world)
    await world.fact(old, "Our wifi is named Bluewhale")
    await world.fact(old, "The bins go out on Monday")
    twin = await world.fact(new, "The bins go out on Monday")
    await _move(world)
    rows = await world.rows("facts")
    assert {row["owner"] for row in rows} == {new.owner}
    in_force = sorted(row["text"] for row in rows if row["valid_to"] is None)
    assert in_force == ["Our wifi is named Bluewhale", "The bins go out on Monday"]
    assert [row["superseded_by"] for row in rows if row["valid_to"] is not None] == [twin.id]


async def test_what_was_said_before_is_recalled_after(world: World) -> None:
    """By words at once; by vectors as soon as they are made anew, and the old ones do not stay."""
    old, new = await _groups(world)
    session = await world.talk(old, "We painted the kitchen in the colour Bluewhale", "noted")
    await world.memory.learn()
    assert await world.vectors.ids(old.owner)
    await _move(world)
    found = await world.memory.recall(new, 0, "Which colour did we paint the kitchen, Bluewhale?")
    assert [each.session_id for each in found.recollections] == [session.id]
    assert (await world.rows("summaries"))[0]["indexed_as"] is None
    await world.memory.learn()
    assert not await world.vectors.ids(old.owner)
    assert await world.vectors.ids(new.owner)


async def test_the_vectors_of_a_chat_that_is_gone_are_swept_by_the_same_key() -> None:
    assert sessions.UNSWEPT == forgetting.UNSWEPT


async def test_a_private_session_is_nobody_else_s_concern(world: World) -> None:
    old, _ = await _groups(world)
    own = Audience(old.user_id, (await world.rows("chats"))[0]["id"], is_private=True)
    await world.talk(own, "my secret", "noted")
    await world.fact(own, "My secret is safe.")
    before = await world.snapshot(own.owner)
    await _move(world)
    assert await world.snapshot(own.owner) == before
