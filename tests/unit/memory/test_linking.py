"""Two identities become one person, and one becomes a person of its own again: whose memory is whose afterwards."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
import sqlalchemy as sa

from memory import telemetry
from memory.kinds.observations.indexing import kind
from memory.linking import LinkRefused
from memory.memory import Memory
from memory.scope import Audience, own_key
from memory.storage import digests, kept, members, people, reminders
from memory.storage import instructions as standing
from memory.storage.awaiting import Awaited, wait_for
from memory.storage.index import lexical
from memory.storage.link_codes import HOLDS_MS, MOST_AN_HOUR
from memory.storage.reminders import Wish
from memory.storage.tables import chats, evidence_changes, messages, metadata, users
from memory.storage.telemetry import fold, sums
from memory.types import Role, User
from tests.fakes.noticing import Noticing, noticed
from tests.unit.memory.world import World

NUMBER = 770077
"""Of whoever is absorbed: it stands nowhere by chance."""
PLACE = {"transport": "telegram", "chat": "ada", "thread": ""}
DOG = noticed("my dog is called Bruno", narrative="The dog is called Bruno.", concepts=["dog"])
BERLIN = noticed("I live in Berlin", narrative="Lives in Berlin.", subject="speaker", attribute="home", value="Berlin")
FERRY = noticed("the ferry leaves on Friday", narrative="The ferry leaves on Friday.", concepts=["ferry"])


@pytest.fixture
async def watching(world: World) -> Memory:
    memory = world.reborn(model=Noticing({"Bruno": DOG, "Berlin": BERLIN, "ferry": FERRY}).model())
    await memory.open()
    return memory


async def user_of(world: World, identity: str) -> User:
    async with world.database.read() as connection:
        user = await people.find(connection, identity)
    assert user is not None
    return user


async def code_of(world: World, identity: str = "telegram:ada") -> str:
    user = await user_of(world, identity)
    return await world.memory.linking.offer(user.id, identity, PLACE)


async def link(world: World, giver: str = "telegram:ada", newcomer: str = "matrix:ada") -> None:
    """Both say yes."""
    code = await code_of(world, giver)
    await world.memory.linking.take(code, newcomer)
    await world.memory.linking.join((await user_of(world, giver)).id, code, newcomer)


async def learn(world: World) -> None:
    world.clock.advance(minutes=1)
    await world.memory.learn()


async def refused(world: World, code: str, identity: str) -> str:
    with pytest.raises(LinkRefused) as caught:
        await world.memory.linking.take(code, identity)
    return caught.value.reason


# --- codes ------------------------------------------------------------------------------------------


async def test_a_code_is_refused_where_it_is_wrong_own_used_or_over(world: World) -> None:
    await world.person("ada")
    await world.person("ada", "matrix")
    await world.person("eve", "matrix")
    code = await code_of(world)
    assert await refused(world, "NOSUCHCO", "matrix:ada") == "unknown"
    assert await refused(world, code, "telegram:ada") == "own"
    assert (await world.memory.linking.take(code.lower(), "matrix:ada")).giver.name == "ada"
    assert (await world.memory.linking.take(code, "matrix:ada")).code.code == code, "whoever used it may come again"
    assert await refused(world, code, "matrix:eve") == "used"
    later = await code_of(world)
    newest = await code_of(world)
    assert await refused(world, later, "matrix:ada") == "expired", "a newer one took its place"
    world.clock.advance(seconds=HOLDS_MS / 1000)
    assert await refused(world, newest, "matrix:ada") == "expired"


async def test_a_yes_that_comes_after_the_hour_joins_nobody(world: World) -> None:
    await world.person("ada")
    code = await code_of(world)
    await world.memory.linking.take(code, "matrix:new")
    world.clock.advance(hours=1)
    with pytest.raises(LinkRefused, match="expired"):
        await world.memory.linking.join((await user_of(world, "telegram:ada")).id, code, "matrix:new")
    assert [row["key"] for row in await world.rows("identities")] == ["telegram:ada"]


async def test_nobody_gets_codes_without_end(world: World) -> None:
    await world.person("ada")
    for _ in range(MOST_AN_HOUR):
        await code_of(world)
    with pytest.raises(LinkRefused, match="often"):
        await code_of(world)
    world.clock.advance(hours=1, seconds=1)
    assert await code_of(world)


async def test_two_identities_of_one_network_are_two_people(world: World) -> None:
    await world.person("ada")
    await world.person("ben")
    with pytest.raises(LinkRefused) as caught:
        await world.memory.linking.look_at(await code_of(world), "telegram:ben")
    assert (caught.value.reason, caught.value.network) == ("network", "telegram")


async def test_nothing_is_joined_while_something_of_the_newcomers_is_being_answered(world: World) -> None:
    await world.person("ada")
    await world.person("ada", "matrix")
    payload = {"event": {"sender": "ada", "content": {"m.mentions": {"user_ids": ["bob"]}}}}
    row = {"transport": "matrix", "external_id": "1", "payload": payload, "status": "running", "received_at": 1}
    await world.insert("inbox", **row)
    with pytest.raises(LinkRefused, match="busy"):
        await link(world)
    assert len(await world.rows("users")) == 2


# --- joining ----------------------------------------------------------------------------------------


async def test_memory_follows_and_nobody_else_sees_any_of_it(world: World, watching: Memory) -> None:
    ada, there, eve = (
        await world.person("ada"),
        await world.person("ada", "matrix"),
        await world.person("eve", "matrix"),
    )
    await world.talk(ada, "The trip to Riga begins in June.", "Noted.")
    await world.talk(there, "By the way, my dog is called Bruno.", "Nice!", "The garden needs a new fence.", "Yes.")
    await world.talk(eve, "By the way, I live in Berlin.", "Fine.")
    await world.fact(there, "I play chess")
    await learn(world)
    await link(world)
    for now in ("at once", "when the indexes have followed"):
        recall = await watching.recall(ada, 0, "What is my dog called?")
        assert [fact.text for fact in recall.facts] == ["I play chess"], now
        assert [each.text for each in recall.observations] == ["The dog is called Bruno."], now
        shown = repr(await watching.recall(eve, 0, "chess, garden, fence, dog, Bruno, Riga"))
        assert not any(word in shown for word in ("chess", "fence", "Bruno", "Riga")), now
        await learn(world)
    found = (await watching.recall(ada, 0, "What about the fence in the garden?")).recollections
    assert "fence" in found[0].told
    assert await world.vectors.ids(own_key(there.user_id)) == set()


@pytest.mark.usefixtures("watching")
async def test_what_both_said_becomes_one_row_with_the_sources_of_both(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    for who in (ada, there):
        session = await world.talk(who, "By the way, my dog is called Bruno.", "Nice!")
        [said, _] = await world.messages(session)
        await world.fact(who, "My dog is called Bruno", said.id)
    await world.fact(there, "my cat is called Minka")
    await world.fact(ada, "My cat's name is Minka")
    await learn(world)
    await link(world)
    assert sorted(row["text"] for row in await world.rows("facts")) == [
        "My cat's name is Minka",
        "My dog is called Bruno",
    ]
    [dog] = [row for row in await world.rows("facts") if "Bruno" in row["text"]]
    assert (dog["owner"], dog["source_message_ids"]) == (ada.owner, [1, 3])
    [noticed_once] = [row for row in await world.rows("observations") if row["valid_to"] is None]
    assert (noticed_once["owner"], noticed_once["proof_count"]) == (ada.owner, 2)
    assert [row["message_id"] for row in await world.rows("observation_evidence")] == [1, 3]


async def test_in_a_group_what_one_person_said_twice_becomes_one(world: World) -> None:
    ada, there, ben = await world.person("ada"), await world.person("ada", "matrix"), await world.person("ben")
    here, _, bens = await world.in_group(ada, there, ben)
    again = Audience(there.user_id, here.chat_id, is_private=False)
    for who in (here, again, bens):
        await world.fact(who, "I am allergic to nuts")
    assert len(await world.rows("facts")) == 3, "of three people"
    await link(world)
    assert sorted(row["user_id"] for row in await world.rows("facts")) == [ada.user_id, ben.user_id]
    assert (await world.memory.facts.remember(here, "Ada", "I am allergic to nuts", ())).was_known


async def test_the_instructions_of_the_one_who_gave_the_code_hold_and_both_histories_stay(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    async with world.database.write() as connection:
        await standing.apply(connection, ada.owner, "Be brief.", ada.user_id, 1)
        await standing.apply(connection, there.owner, "Write at length.", there.user_id, 2)
    await link(world)
    async with world.database.read() as connection:
        found = await standing.history(connection, ada.owner, 10)
    assert [each.text for each in found] == ["Be brief.", "Write at length.", "Be brief."]


async def test_instructions_of_the_newcomer_hold_where_the_other_has_none(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    async with world.database.write() as connection:
        await standing.apply(connection, there.owner, "Write at length.", there.user_id, 2)
    await link(world)
    async with world.database.read() as connection:
        assert await standing.standing(connection, [ada.owner]) == {ada.owner: "Write at length."}


async def test_the_settings_of_the_giver_stay_and_an_owner_stays_one(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    async with world.database.write() as connection:
        await people.speak(connection, ada.user_id, "de")
        await people.speak(connection, there.user_id, "ru")
        await people.live_in(connection, there.user_id, "Europe/Riga")
        await people.admit(connection, "matrix:ada", "ada", Role.OWNER, "en", world.now)
    await link(world)
    user = await user_of(world, "matrix:ada")
    assert (user.id, user.language, user.timezone, user.role) == (ada.user_id, "de", "Europe/Riga", Role.OWNER)
    assert set(user.identities) == {"telegram:ada", "matrix:ada"}


async def test_teams_are_joined_and_grants_are_not_handed_on(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    async with world.database.write() as connection:
        both = await members.create_team(connection, "both", ada.user_id, 1)
        await members.add_to_team(connection, both.id, there.user_id)
        theirs = await members.create_team(connection, "theirs", there.user_id, 1)
        await members.grant(connection, there.user_id, "manage:users")
    await link(world)
    async with world.database.read() as connection:
        found = await members.list_teams(connection, ada.user_id)
        assert not await members.has(connection, ada.user_id, "manage:users")
    assert [(team.id, team.members) for team in found] == [(both.id, (ada.user_id,)), (theirs.id, (ada.user_id,))]


async def test_a_linked_person_counts_once_in_a_group(world: World) -> None:
    ada, ben = await world.person("ada"), await world.person("ben")
    await world.person("ada", "matrix")
    (here,) = await world.in_group(ben)
    async with world.database.write() as connection:
        team = await members.create_team(connection, "two", ada.user_id, 1)
        await members.add_to_team(connection, team.id, ben.user_id)
        for identity in ("telegram:ada", "telegram:ben", "matrix:ada"):
            await members.note(connection, here.chat_id, identity, 1)
        assert f"t{team.id}" not in await members.shown(connection, here), "somebody else is there"
    await link(world)
    async with world.database.read() as connection:
        assert f"t{team.id}" in await members.shown(connection, here)


async def test_joining_twice_changes_nothing(world: World) -> None:
    await world.person("ada")
    there = await world.person("ada", "matrix")
    await world.fact(there, "I play chess")
    code = await code_of(world)
    await world.memory.linking.take(code, "matrix:ada")
    for _ in range(2):
        await world.memory.linking.join((await user_of(world, "telegram:ada")).id, code, "matrix:ada")
    assert len(await world.rows("facts")) == 1
    assert len(await world.rows("users")) == 1


# --- taking off -------------------------------------------------------------------------------------


async def test_taken_off_an_identity_has_its_own_chats_and_what_rests_on_them_alone(
    world: World, watching: Memory
) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    for who in (ada, there):
        await world.talk(who, "By the way, my dog is called Bruno.", "Nice!")
    ferry = await world.talk(there, "For the diary: the ferry leaves on Friday.", "Noted.")
    await world.talk(ada, "You should know that I live in Berlin.", "Noted.")
    [said, _] = await world.messages(ferry)
    await world.fact(there, "The ferry is blue", said.id)
    await world.fact(there, "I play chess")
    await world.fact(ada, "I play the piano")
    await learn(world)
    await link(world)
    await learn(world)
    assert await world.memory.linking.part(ada.user_id, "matrix:ada")
    await learn(world)
    alone = await user_of(world, "matrix:ada")
    assert (alone.role, alone.identities) == (Role.MEMBER, ("matrix:ada",))
    apart = Audience(alone.id, there.chat_id, is_private=True)
    mine, theirs = await watching.recall(ada, 0, "the dog, ferry?"), await watching.recall(apart, 0, "the dog, ferry?")
    assert [fact.text for fact in mine.facts] == ["I play the piano"]
    assert [fact.text for fact in theirs.facts] == ["The ferry is blue", "I play chess"]
    noticed_by = {owner: sorted(each["narrative"] for each in rows) for owner, rows in (await _noticed(world)).items()}
    assert noticed_by == {
        ada.owner: ["Lives in Berlin.", "The dog is called Bruno."],
        apart.owner: ["The ferry leaves on Friday."],
    }
    [dog] = [each for each in await world.rows("observations") if "dog" in each["narrative"]]
    assert dog["proof_count"] == 1
    [evidence] = [each for each in await world.rows("observation_evidence") if each["observation_id"] == dog["id"]]
    assert evidence["message_id"] == 1, "of one's own words only"
    assert {row["owner"] for row in await world.rows("evidence")} == {ada.owner, apart.owner}
    await _is_apart(world, ada, apart, "matrix")


async def _noticed(world: World) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in await world.rows("observations"):
        found.setdefault(row["owner"], []).append(row)
    return found


async def _is_apart(world: World, ada: Audience, apart: Audience, network: str) -> None:
    """Every session, message, index row and vector is of whoever's network it is."""
    chats = {row["id"]: row["transport"] for row in await world.rows("chats")}
    sessions = {row["id"]: row for row in await world.rows("sessions")}
    for row in sessions.values():
        whose = apart if chats[row["chat_id"]] == network else ada
        assert (row["owner"], row["user_id"]) == (whose.owner, whose.user_id)
    for name in ("evidence", "summaries"):
        assert all(row["owner"] == sessions[row["session_id"]]["owner"] for row in await world.rows(name))
    for row in await world.rows("messages"):
        assert row["user_id"] in (None, sessions[row["session_id"]]["user_id"])
    for who in (ada, apart):
        held = {int(each.partition(".")[0]) for each in await world.vectors.ids(who.owner)}
        assert held == {id for id, row in sessions.items() if row["owner"] == who.owner} & _summarised(
            await world.rows("summaries")
        )


def _summarised(rows: list[dict[str, Any]]) -> set[int]:
    return {row["session_id"] for row in rows}


async def test_joined_and_taken_off_each_has_what_it_had(world: World, watching: Memory) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    (here,) = await world.in_group(there, network="matrix")
    await world.talk(there, "By the way, my dog is called Bruno.", "Nice!")
    await world.talk(here, "For all: the ferry leaves on Friday.", "Noted.")
    await world.fact(there, "I play chess")
    await world.fact(here, "I play chess")
    await world.talk(ada, "You should know that I live in Berlin.", "Noted.")
    await learn(world)
    shown = ("facts", "sessions", "messages", "summaries", "observations", "reminders", "spend")

    async def held() -> dict[str, list[tuple[str, ...]]]:
        names = {
            user["id"]: key["key"]
            for user in await world.rows("users")
            for key in await world.rows("identities")
            if key["user_id"] == user["id"]
        }
        return {
            table: [(names.get(row.get("user_id"), "-"), _plain_owner(row, names)) for row in await world.rows(table)]
            for table in shown
        }

    before = await held()
    await link(world)
    assert await held() != before
    assert await world.memory.linking.part(ada.user_id, "matrix:ada")
    assert await held() == before
    assert (
        await watching.recall(
            Audience((await user_of(world, "matrix:ada")).id, there.chat_id, is_private=True),
            0,
            "What is my dog called?",
        )
    ).observations


def _plain_owner(row: dict[str, Any], names: dict[int, str]) -> str:
    owner = str(row.get("owner", "-"))
    return names[int(owner[1:])] if owner.startswith(("u", "s")) else owner


async def test_an_admin_who_is_taken_off_is_an_ordinary_person(world: World) -> None:
    ada = await world.person("ada")
    await world.person("ada", "matrix")
    async with world.database.write() as connection:
        await people.admit(connection, "matrix:ada", "ada", Role.ADMIN, "en", world.now)
    await link(world)
    assert (await user_of(world, "matrix:ada")).role is Role.MEMBER, "the rights of the one who gave the code"
    await world.memory.linking.part(ada.user_id, "matrix:ada")
    assert (await user_of(world, "matrix:ada")).role is Role.MEMBER


async def test_nobody_takes_off_what_is_not_theirs_or_is_being_answered(world: World) -> None:
    ada, ben = await world.person("ada"), await world.person("ben")
    await world.person("ada", "matrix")
    await link(world)
    with pytest.raises(LinkRefused, match="gone"):
        await world.memory.linking.part(ben.user_id, "matrix:ada")
    payload = {"event": {"sender": "ada"}}
    row = {"transport": "matrix", "external_id": "1", "payload": payload, "status": "running", "received_at": 1}
    await world.insert("inbox", **row)
    with pytest.raises(LinkRefused, match="busy"):
        await world.memory.linking.part(ada.user_id, "matrix:ada")


# --- export and erasure go over all identities ------------------------------------------------------


async def test_an_export_and_an_erasure_by_either_identity_are_of_the_whole_person(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    ben = await world.person("ben", "matrix")
    async with world.database.write() as connection:  # a room has an id of its own
        await connection.execute(chats.update().where(chats.c.id == there.chat_id).values(external_id="!room"))
    await world.talk(ada, "The trip goes to Riga.", "Noted.")
    await world.talk(there, "The garden needs a fence.", "Noted.")
    await world.talk(ben, "Ben paints the boat.", "Noted.")
    await link(world)
    user = await user_of(world, "matrix:ada")
    exported = json.dumps(await world.memory.export(user.id))
    assert all(words in exported for words in ("telegram:ada", "matrix:ada", "Riga", "fence"))
    receipt = await world.memory.erase_user(user.id)
    assert receipt.messages_redacted == 4
    assert [row["name"] for row in await world.rows("users")] == ["ben"]
    assert [row["key"] for row in await world.rows("identities")] == ["matrix:ben"]
    assert [row["external_id"] for row in await world.rows("chats")] == ["ben"]
    assert not any(word in world.bytes_on_disk() for word in (b"Riga", b"fence"))


# --- nothing names whoever was absorbed -------------------------------------------------------------


def _names(value: Any) -> bool:
    return str(NUMBER) in json.dumps(value, default=str)


def _naming(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if _names({key: value for key, value in row.items() if not isinstance(value, bytes)})]


async def _absorbed(world: World) -> Audience:
    async with world.database.write() as connection:
        await connection.execute(users.insert().values(id=NUMBER - 1, name="x", role=Role.MEMBER, created_at=1))
        await connection.execute(users.delete().where(users.c.id == NUMBER - 1))
    there = await world.person("ada", "matrix")
    assert there.user_id == NUMBER, "an id is never given twice"
    return there


async def _live(world: World, there: Audience, ben: Audience) -> None:
    """A life that leaves its name wherever there is room for one."""
    _, here = await world.in_group(ben, there, network="matrix")
    session = await world.talk(there, "By the way, my dog is called Bruno and I live in Berlin.", "Nice!")
    group = await world.session(here)
    await world.say(group, "For all: the ferry leaves on Friday, and I live in Berlin.", here)
    await world.say(group, "Noted.")
    fact = await world.fact(there, "I live in Riga")
    await world.memory.facts.edit(there, fact.id, "I live in Kiel")
    await world.fact(here, "I play chess")
    await learn(world)
    async with world.database.write() as connection:
        await digests.want(connection, NUMBER, 1)
        await wait_for(connection, group.id, NUMBER, Awaited("rename_chat", {}, 1, 2**40))
        await members.grant(connection, NUMBER, "view:sensitive")
        team = await members.create_team(connection, "chess", NUMBER, 1)
        await standing.apply(connection, there.owner, "Be brief.", NUMBER, 1)
        wish = Wish(NUMBER, session.id, there.owner, PLACE, "tea", "2026-12-01T09:00", "UTC", None, 10)
        await reminders.add(connection, wish, 1)
        await kept.put(connection, "budget.today", {"day": "x", "lifted": [f"user:{NUMBER}"], "warned": []}, 1)
        await telemetry.record(connection, telemetry.BudgetReached(whose=f"user:{NUMBER}", step="warned"), 1)
        assert team.members == (NUMBER,)
        await connection.execute(messages.update().values(speaker="Ada"))  # the world calls people by their number
    found = (await world.memory.observations.list(there)).observations
    observation = next(each for each in found if "dog" in each.content.narrative)
    await world.memory.observations.confirm(there, observation.id)
    data = {"to": there.owner, "whose": f"user:{NUMBER}", "who": [f"s{NUMBER}"]}
    for table, values in {
        "confirmations": {"token": "t", "action": "a", "data": data, "card": "c", "expires_at": 2**40},
        "outbox": {"transport": "matrix", "place": PLACE, "lane": "l", "status": "sent"},
        "session_states": {"session_id": session.id, "tool": "draft", "title": "t", "opened_at": 1, "touched_at": 1},
        "login_links": {"hash": "h", "expires_at": 2**40},
        "web_sessions": {"hash": "h", "expires_at": 2**40},
        "link_codes": {"code": "c", "identity": "matrix:ada", "place": PLACE, "expires_at": 2**40},
        "spend": {"purpose": "chat", "model": "m"} | dict.fromkeys(spend_columns(), 1),
    }.items():
        made = {"created_at": 1} if "created_at" in metadata.tables[table].c else {}
        await world.insert(table, user_id=NUMBER, **made, **values)


def spend_columns() -> tuple[str, ...]:
    return ("input", "output", "cache_read", "cache_write", "cache_write_1h", "nano_usd")


async def test_after_a_link_no_row_anywhere_names_whoever_was_absorbed(world: World, watching: Memory) -> None:
    """Every column that can name a person did so before, so a new one has to be given its place in this life."""
    ada, ben = await world.person("ada"), await world.person("ben")
    there = await _absorbed(world)
    await _live(world, there, ben)
    for table in metadata.sorted_tables:
        rows = await world.rows(table.name)
        for column in table.c:
            if any(key.column is users.c.id for key in column.foreign_keys):
                assert any(row[column.name] == NUMBER for row in rows), f"{column} does not name anybody here"
            if column.name in {"owner", "subject"} and table is not evidence_changes:
                assert any(_names(row[column.name]) for row in rows), f"{column} does not name anybody here"
    before = {
        name: len(await world.rows(name)) for name in ("messages", "sessions", "observations", "reminders", "spend")
    }
    await link(world)
    await learn(world)
    named = {table.name: _naming(await world.rows(table.name)) for table in metadata.sorted_tables}
    assert {name: rows for name, rows in named.items() if rows} == {}
    async with world.database.read() as connection:
        for words in lexical.TABLES[:2]:
            owners = (await connection.execute(sa.text(f"SELECT DISTINCT owner FROM {words}"))).scalars()
            assert not any(map(_names, owners))
        terms = (await connection.execute(sa.text("SELECT DISTINCT term FROM message_terms"))).scalars().all()
        assert terms
        assert not any(map(_names, terms))
    for prefix in ("", kind(world.clock).prefix):
        assert await world.vectors.ids(prefix + there.owner) == set()
    after = {name: len(await world.rows(name)) for name in before}
    assert after == before
    assert (await watching.recall(ada, 0, "What is my dog called?")).observations


async def test_quarters_of_telemetry_are_of_the_person_who_stays(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    turn = {
        "model": "m",
        "outcome": "answered",
        "duration_ms": 1,
        "first_token_ms": 1,
        "recall_hits": 0,
        "tool_calls": 0,
    }
    tokens = dict.fromkeys(("tokens_in", "tokens_out", "tokens_cache_read", "tokens_cache_write"), 1)
    async with world.database.write() as connection:
        for who in (ada, there):
            event = telemetry.TurnCompleted(user_id=who.user_id, **turn, **tokens)
            await telemetry.record(connection, event, world.now)
        await fold(connection, world.database, world.now)
    await link(world)
    async with world.database.write() as connection:
        await fold(connection, world.database, world.now)
        found = await sums(connection, ["chat.turn_completed"], 0, 2**50, "label")
    assert {label: each.events for label, each in found.items()} == {str(ada.user_id): 2}
