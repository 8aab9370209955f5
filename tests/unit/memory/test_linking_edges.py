"""At the edges of /link and /unlink: work that runs beside them, and what an identity that goes may not keep."""

import asyncio
import json

import pytest

from memory.linking import LinkRefused
from memory.ports import Account, Billed, ModelRequest, Purpose, Usage
from memory.storage import members, people, reminders, spend, tokens
from memory.storage.reminders import Wish
from memory.storage.spend import Charge
from memory.types import Role
from tests.fakes.model import Answer, Says, ScriptedModel
from tests.fakes.noticing import Noticing, noticed
from tests.unit.memory.test_linking import PLACE, code_of, link, user_of
from tests.unit.memory.world import World

FERRY = noticed("the ferry leaves on Friday", narrative="The ferry leaves on Friday.", concepts=["ferry"])
REMINDER = ("2026-12-01T09:00", "UTC", None, 10)


class Slowly:
    """A model that keeps what it noticed to itself until the gate opens."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.is_reading = asyncio.Event()
        self._noticing = Noticing({"ferry": FERRY})

    def __call__(self, request: ModelRequest) -> Answer:
        if request.account.purpose is not Purpose.EXTRACTION:
            return Says(json.dumps(self._noticing(request)))
        self.is_reading.set()
        return Says(json.dumps(self._noticing(request)), gate=self.gate)


# --- joining ----------------------------------------------------------------------------------------


async def test_two_who_join_each_other_at_once_are_one_person(world: World) -> None:
    ada, there = await world.person("ada"), await world.person("ada", "matrix")
    here_code, there_code = await code_of(world), await code_of(world, "matrix:ada")
    await world.memory.linking.take(here_code, "matrix:ada")
    await world.memory.linking.take(there_code, "telegram:ada")
    refused = await asyncio.gather(
        world.memory.linking.join(ada.user_id, here_code, "matrix:ada"),
        world.memory.linking.join(there.user_id, there_code, "telegram:ada"),
        return_exceptions=True,
    )
    assert sorted(each.reason for each in refused if isinstance(each, LinkRefused)) == ["unknown"]
    [row] = await world.rows("users")
    assert {each["user_id"] for each in await world.rows("identities")} == {row["id"]}


async def test_one_code_that_two_bring_at_once_joins_the_first_alone(world: World) -> None:
    ada = await world.person("ada")
    await world.person("ada", "matrix")
    await world.person("eve", "matrix")
    code = await code_of(world)
    both = ("matrix:ada", "matrix:eve")
    taken = await asyncio.gather(*(world.memory.linking.take(code, each) for each in both), return_exceptions=True)
    assert [isinstance(each, LinkRefused) for each in taken] == [False, True]
    with pytest.raises(LinkRefused, match="used"):
        await world.memory.linking.join(ada.user_id, code, "matrix:eve")
    await world.memory.linking.join(ada.user_id, code, "matrix:ada")
    assert len(await world.rows("users")) == 2


async def test_what_is_being_noticed_among_others_is_noticed_again_under_the_one_who_stays(world: World) -> None:
    slowly = Slowly()
    memory = world.reborn(model=ScriptedModel(always=slowly))
    await memory.open()
    ada, there, ben = await world.person("ada"), await world.person("ada", "matrix"), await world.person("ben")
    _, here = await world.in_group(ben, there, network="matrix")
    group = await world.session(here)
    await world.say(group, "For all: the ferry leaves on Friday.", here)
    await world.say(group, "Noted.")
    world.clock.advance(minutes=1)
    learning = asyncio.create_task(memory.learn())
    await slowly.is_reading.wait()
    await link(world)
    slowly.gate.set()
    await learning
    assert [row["last_error"] for row in await world.rows("learning") if row["last_error"]] == []
    await memory.learn()
    [noticed_once] = await world.rows("observations")
    assert (noticed_once["user_id"], noticed_once["owner"]) == (ada.user_id, here.owner)


async def test_what_a_call_cost_that_ends_after_its_person_was_absorbed_is_on_the_bill(world: World) -> None:
    await world.person("ada")
    there = await world.person("ada", "matrix")
    await link(world)
    charge = Charge(Account(Purpose.SUMMARY, there.user_id), Billed("m", Usage(input=7)), nano_usd=5)
    async with world.database.write() as connection:
        await spend.add(connection, [charge], world.now)
    [row] = await world.rows("spend")
    assert (row["user_id"], row["input"], row["nano_usd"]) == (None, 7, 5)


# --- taking off -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_known", [True, False])
async def test_what_was_opened_or_asked_for_from_an_identity_ends_with_it(world: World, is_known: bool) -> None:
    ada = await world.person("ada")
    if is_known:
        await world.person("ada", "matrix")
    await link(world)
    code = await code_of(world, "matrix:ada")
    async with world.database.write() as connection:
        _, session = await tokens.log_in(connection, await tokens.offer_login(connection, ada.user_id, 1), 1) or (0, "")
        waiting = await tokens.offer_login(connection, ada.user_id, 1)
    await world.memory.linking.part(ada.user_id, "matrix:ada")
    async with world.database.write() as connection:
        assert await tokens.who(connection, session, 1) is None, "the browser there shows nothing any more"
        assert await tokens.log_in(connection, waiting, 1) is None
    with pytest.raises(LinkRefused, match="expired"):
        await world.memory.linking.take(code, "terminal:eve")
    assert await code_of(world), "whoever stays gets a new one"


async def test_rights_that_came_with_an_identity_do_not_stay_without_it(world: World) -> None:
    ada = await world.person("ada")
    await world.person("ada", "matrix")
    async with world.database.write() as connection:
        await people.admit(connection, "telegram:ada", "ada", Role.ADMIN, "en", world.now)
        await people.admit(connection, "matrix:ada", "ada", Role.GUEST, "en", world.now)
        await members.grant(connection, ada.user_id, "view:sensitive")
    await link(world)
    assert (await user_of(world, "matrix:ada")).role is Role.ADMIN
    await world.memory.linking.part(ada.user_id, "telegram:ada")
    assert (await user_of(world, "matrix:ada")).role is Role.GUEST
    async with world.database.read() as connection:
        assert not await members.has(connection, ada.user_id, "view:sensitive")


async def test_whoever_takes_a_newcomer_off_may_do_what_they_could_before(world: World) -> None:
    ada = await world.person("ada")
    async with world.database.write() as connection:
        await people.admit(connection, "telegram:ada", "ada", Role.ADMIN, "en", world.now)
        await members.grant(connection, ada.user_id, "view:sensitive")
    await link(world)
    await world.memory.linking.part(ada.user_id, "matrix:ada")
    assert (await user_of(world, "telegram:ada")).role is Role.ADMIN
    async with world.database.read() as connection:
        assert await members.has(connection, ada.user_id, "view:sensitive")


async def test_nothing_of_a_person_is_sent_to_the_chat_of_an_identity_that_is_a_stranger_again(world: World) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "The trip to Riga begins in June.", "Noted.")
    await link(world)
    there = await world.person("ada", "matrix")
    session = await world.talk(there, "The garden needs a fence.", "Yes.")
    (here,) = await world.in_group(there, network="matrix")
    place = {"transport": "matrix", "chat": "ada", "thread": ""}
    among_others = {**place, "chat": "-group"}
    async with world.database.write() as connection:
        await reminders.add(connection, Wish(ada.user_id, session.id, ada.owner, place, "tea", *REMINDER), 1)
        await reminders.add(connection, Wish(ada.user_id, None, here.owner, among_others, "all", *REMINDER), 1)
    await world.memory.linking.part(ada.user_id, "matrix:ada")
    async with world.database.read() as connection:
        assert await people.private_place(connection, ada.user_id) == ("telegram", "ada"), "a digest goes there"
    assert [row["place"] for row in await world.rows("reminders")] == [PLACE, among_others]
