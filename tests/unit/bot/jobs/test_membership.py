"""Who left a Telegram group while nobody listened does not stay in it for ever, and sees nothing of it meanwhile."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bot import pulse
from bot.jobs import membership
from bot.jobs.membership import Membership
from bot.transports.base import Fault, SendError
from bot.transports.telegram.transport import TelegramTransport
from memory.instants import to_ms
from memory.scope import Audience, group_key
from memory.storage import members, people, sessions
from memory.storage.database import Database
from memory.types import Role
from tests.contract.transports import TelegramRig
from tests.fakes.bot_api import BotApi
from tests.fakes.clock import FrozenClock
from tests.waiting import until

BOB = 43


@dataclass
class Group:
    """Ada and Bob, a group of theirs on the emulator, and what Merk knows of it."""

    database: Database
    clock: FrozenClock
    rig: TelegramRig
    chat: int
    external: int
    ada: int
    bob: int

    @property
    def api(self) -> BotApi:
        return self.rig.api

    @property
    def transport(self) -> TelegramTransport:
        return self.rig.transport

    def job(self) -> Membership:
        """Of a process that has just started."""
        return Membership(self.database, self.clock, [self.transport])

    async def sees(self, user_id: int) -> bool:
        async with self.database.read() as connection:
            return group_key(self.chat) in await members.shown(connection, Audience(user_id, 0, is_private=True))

    async def there(self) -> list[str]:
        async with self.database.read() as connection:
            return await members.in_group(connection, self.chat)

    def asked(self) -> int:
        return len(self.api.calls("getChatMember$"))

    async def heard(self) -> None:
        """The transport is in contact, as the pulse notes it."""
        await self.transport.start(self.rig.inbox.accept)
        await self.rig.say("hello")
        await until(lambda: self.transport.last_contact() is not None)
        await pulse.note_pulse(self.database, self.clock, [self.transport])


@pytest.fixture
async def group(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Group]:
    monkeypatch.setattr(membership, "PAUSE_SECONDS", 0)
    clock = FrozenClock()
    async with TelegramRig() as rig:
        rig.api.private_chat(BOB, "Bob")
        external = rig.api.supergroup(-1009, "Kitchen", [rig.ada, BOB])
        now = to_ms(clock.now())
        async with database.write() as connection:
            ada = await people.admit(connection, f"telegram:{rig.ada}", "Ada", Role.MEMBER, "en", now)
            bob = await people.admit(connection, f"telegram:{BOB}", "Bob", Role.MEMBER, "en", now)
            chat = await sessions.ensure_chat(
                connection, "telegram", str(external), kind="user", title="Kitchen", now=now
            )
            for who in (rig.ada, BOB):
                await members.note(connection, chat, f"telegram:{who}", now)
        yield Group(database, clock, rig, chat, external, ada.id, bob.id)


async def test_after_a_long_silence_nobody_sees_the_group_until_it_is_certain_that_they_are_in_it(group: Group) -> None:
    await group.heard()
    group.clock.advance(hours=30)
    group.api.world.chats[group.external].members[BOB] = "left"  # the update is not kept any more
    job = group.job()
    await job.start()
    assert (await group.sees(group.ada), await group.sees(group.bob)) == (False, False)
    assert len(await group.there()) == 2  # in the group both count as present still
    await job.refresh()
    assert (await group.sees(group.ada), await group.sees(group.bob)) == (True, False)
    assert await group.there() == [f"telegram:{group.rig.ada}"]


async def test_a_short_absence_puts_nobody_in_doubt_and_asks_nothing(group: Group) -> None:
    await group.heard()
    group.clock.advance(hours=5)
    job = group.job()
    await job.start()
    await job.refresh()
    assert (await group.sees(group.ada), await group.sees(group.bob)) == (True, True)
    assert group.asked() == 0


async def test_a_start_without_contact_in_between_does_not_count_as_contact_or_as_silence(group: Group) -> None:
    await group.heard()
    for hours, sees in ((5, True), (20, False)):
        group.rig.connect()
        group.clock.advance(hours=hours)
        await pulse.note_pulse(group.database, group.clock, [group.transport])  # it has not reached Telegram
        await group.job().start()
        assert await group.sees(group.ada) is sees


async def test_a_member_is_asked_after_once_a_day_and_a_missed_leaving_is_found(group: Group) -> None:
    await group.heard()
    job = group.job()
    for _ in range(2):
        group.clock.advance(hours=25)
        await job.refresh()
        await job.refresh()
    assert group.asked() == 4
    group.api.world.chats[group.external].members[BOB] = "kicked"
    group.clock.advance(hours=25)
    await job.refresh()
    assert (await group.sees(group.ada), await group.sees(group.bob)) == (True, False)


async def test_where_telegram_does_not_tell_nothing_changes_and_it_is_not_asked_again_that_day(group: Group) -> None:
    await group.heard()
    group.api.fail("custom", "getChatMember", times=100, text="Bad Request: member list is inaccessible")
    group.clock.advance(hours=25)
    job = group.job()
    await job.refresh()
    await job.refresh()
    assert group.asked() == 2
    assert (await group.sees(group.ada), await group.sees(group.bob)) == (True, True)


async def test_where_telegram_is_silent_the_round_ends_and_the_next_one_asks_again(group: Group) -> None:
    await group.heard()
    group.api.fail("500", "getChatMember", times=1)
    group.clock.advance(hours=25)
    job = group.job()
    await job.refresh()
    assert group.asked() == 1
    await job.refresh()
    assert group.asked() == 3


async def test_a_group_that_merk_was_removed_from_has_no_members(group: Group) -> None:
    await group.heard()
    group.api.world.chats[group.external].members[group.api.world.bot["id"]] = "kicked"
    group.clock.advance(hours=25)
    await group.job().refresh()
    assert await group.there() == []
    assert group.asked() == 1
    assert (await group.sees(group.ada), await group.sees(group.bob)) == (False, False)


async def test_an_account_that_is_gone_is_gone_from_the_group(group: Group) -> None:
    await group.heard()
    del group.api.world.users[BOB]
    group.clock.advance(hours=25)
    await group.job().refresh()
    assert await group.there() == [f"telegram:{group.rig.ada}"]


async def test_an_answer_changes_nothing_that_was_noted_on_its_way(group: Group) -> None:
    async with group.database.read() as connection:
        [ada, _] = await members.stamped_before(connection, "telegram", to_ms(group.clock.now()) + 1)
    async with group.database.write() as connection:
        await members.note(connection, group.chat, ada.identity, ada.seen_at + 1)  # came back, and wrote
        await members.settle(connection, ada, None)
    assert ada.identity in await group.there()
    async with group.database.write() as connection:
        await members.left(connection, group.chat, ada.identity)
        await members.settle(connection, ada, ada.seen_at + 2)
    assert ada.identity not in await group.there()


async def test_a_chat_that_is_not_there_is_no_answer(group: Group) -> None:
    with pytest.raises(SendError) as refused:
        await group.transport.is_member("-100777", f"telegram:{BOB}")
    assert refused.value.fault is Fault.NO_CHAT
    assert await group.transport.is_member(str(group.external), f"telegram:{BOB}")
