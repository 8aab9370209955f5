"""Export and erasure of one person (pitfall P29)."""

import json

from memory import telemetry
from tests.unit.memory.world import World


async def test_an_export_holds_everything_of_one_person_and_nobody_else(world: World) -> None:
    ada, ben = await world.person("ada"), await world.person("ben")
    ada_here, ben_here = await world.in_group(ada, ben)
    session = await world.talk(ada, "My dog is called Bruno", "Nice dog.", title="Bruno")
    await world.say(session, "A preview", is_ephemeral=True)
    group = await world.session(ben_here)
    await world.say(group, "Ada in the group", ada_here)
    await world.say(group, "Ben in the group", ben_here)
    await world.talk(ben, "Ben alone", "OK")
    old = await world.fact(ada, "I live in Berlin")
    await world.memory.facts.edit(ada, old.id, "I live in Kiel")
    await world.fact(ben, "I am Ben")
    await world.memory.learn()
    exported = json.loads(json.dumps(await world.memory.export(ada.user_id), ensure_ascii=False))
    text = json.dumps(exported)
    for kept in ("telegram:ada", "Bruno", "Nice dog.", "A preview", "Ada in the group", "Berlin", "Kiel"):
        assert kept in text
    assert "Ben" not in text
    assert [each["is_private"] for each in exported["sessions"]] == [True, False]
    assert exported["sessions"][0]["summary"]["text"] == "My dog is called Bruno."
    assert [each["is_ephemeral"] for each in exported["sessions"][0]["messages"]] == [False, False, True]
    assert exported["facts"][0]["superseded_by"] == exported["facts"][1]["id"]
    assert await world.memory.export(999) == {}


async def _busy_world(world: World) -> tuple[int, bytes]:
    """Ada's life, alone and among others, all of it marked."""
    ada, ben = await world.person("ada"), await world.person("ben")
    ada_here, ben_here = await world.in_group(ada, ben)
    (ada_there,) = await world.in_group(ada, title="empty")
    marker = "Zwirbelwitz"
    await world.talk(ada, f"My dog is called {marker}", f"Your dog is called {marker}", title=marker)
    await world.talk(ada_there, f"{marker} in a group without others", f"{marker}!")
    group = await world.session(ada_here)
    await world.say(group, f"{marker} is here", ada_here, inbox_id=5)
    await world.say(group, f"Hello {marker}", inbox_id=5)
    await world.say(group, "Ben paints the fence", ben_here, inbox_id=6)
    await world.say(group, "Hello Ben", inbox_id=6)
    await world.fact(ada, f"My dog is called {marker}")
    await world.fact(ada_here, f"Our dog is called {marker}")
    await world.fact(ben_here, "The deploy is on Friday")
    await world.insert(
        "inbox",
        transport="telegram",
        external_id="77",
        payload={"message": {"from": {"id": "ada"}, "text": marker}},
        status="new",
        received_at=1,
    )
    await world.insert(
        "outbox",
        transport="telegram",
        place={"chat": "ada", "thread": ""},
        lane="l",
        event={"kind": "notice", "text": marker},
        user_id=ada.user_id,
        status="pending",
        created_at=1,
    )
    async with world.database.write() as connection:
        await telemetry.record(connection, telemetry.TurnFailed(user_id=ada.user_id, failure="bug"), 1)
    await world.memory.learn()
    return ada.user_id, marker.lower().encode()


async def test_p29_an_erased_person_is_gone_everywhere(world: World) -> None:
    user_id, marker = await _busy_world(world)
    receipt = await world.memory.erase_user(user_id)
    assert marker not in world.bytes_on_disk().lower()
    assert receipt.unfinished == ()
    assert (receipt.facts, receipt.messages_redacted) == (2, 6)
    assert [row["name"] for row in await world.rows("users")] == ["ben"]
    assert [row["key"] for row in await world.rows("identities")] == ["telegram:ben"]
    assert [row["external_id"] for row in await world.rows("chats") if row["kind"] == "ai"] == ["ben"]
    assert [row["text"] for row in await world.rows("messages")] == ["Ben paints the fence", "Hello Ben"]
    assert [row["text"] for row in await world.rows("facts")] == ["The deploy is on Friday"]
    assert {row["user_id"] for row in await world.rows("sessions")} == {2}, "the group's session goes on"
    assert [row for row in await world.rows("telemetry_events") if row["user_id"] == user_id] == []
    assert await world.vectors.ids(f"u{user_id}") == set()
    assert await world.memory.learn() == 1
    assert [row["text"] for row in await world.rows("summaries")] == ["Ben paints the fence."]


async def test_erasing_the_history_keeps_facts_and_account(world: World) -> None:
    user_id, _ = await _busy_world(world)
    receipt = await world.memory.erase_history(user_id)
    assert receipt.messages_redacted == 6
    assert len(await world.rows("users")) == 2
    assert len(await world.rows("facts")) == 3
    assert [row["text"] for row in await world.rows("messages")] == ["Ben paints the fence", "Hello Ben"]
    assert {row["owner"] for row in await world.rows("sessions")} == {f"c{await _group(world)}"}
    assert await world.vectors.ids(f"u{user_id}") == set()


async def test_erasing_nobody_changes_nothing(world: World) -> None:
    await _busy_world(world)
    before = [await world.rows(name) for name in ("users", "messages", "facts", "summaries")]
    receipt = await world.memory.erase_user(999)
    assert (receipt.facts, receipt.messages_redacted, receipt.summaries) == (0, 0, 0)
    assert [await world.rows(name) for name in ("users", "messages", "facts", "summaries")] == before


async def _group(world: World) -> int:
    return next(row["id"] for row in await world.rows("chats") if row["title"] == "group")
