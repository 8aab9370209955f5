"""The one engine for every send."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from bot.transports.base import Fault, Key, Outgoing, Pace, Part, SendError
from bot.transports.delivery import Delivery
from bot.transports.limiter import Limiter
from bot.transports.posting import Context, pack, post, unpack
from handlers.types import Button, Card, Event, Notice, Place, Text
from memory.instants import to_ms
from memory.storage import outbox, people, sessions, tables
from memory.storage.database import Database
from memory.storage.outbox import Draft, OutboxRow
from memory.types import Audience, Role, Utterance
from tests.fakes.clock import FrozenClock
from tests.fakes.transport import RecordingTransport

HOME = Place("fake", "42")
TOPIC = Place("fake", "42", "7")


class World:
    """A database, a transport and a delivery that runs until the test is over."""

    def __init__(self, database: Database, clock: FrozenClock, transport: RecordingTransport) -> None:
        self.database = database
        self.clock = clock
        self.transport = transport
        self.reasons: list[str | None] = []
        """Why something was offered, or given up."""
        self.delivery = Delivery(database, clock, {transport.name: transport}, Limiter(), self._offer)
        self.context = Context(HOME, None, None, None)

    async def _offer(self, row: OutboxRow) -> Card:
        self.reasons.append(row.error)
        return Card("May be lost.", ((Button("Show", "show_answer", {"id": row.id}),),))

    async def know_ada(self) -> None:
        async with self.database.write() as connection:
            user = await people.admit(connection, "fake:42", "Ada", Role.OWNER, "en", 0)
            chat = await sessions.ensure_chat(connection, "fake", "42", kind="ai", title="", now=0)
            session = await sessions.start(connection, Audience(user.id, chat, is_private=True), "", now=0)
        self.context = Context(HOME, user.id, session.id, None)

    async def post(self, *events: Event, place: Place = HOME, inbox_id: int | None = None) -> None:
        context = Context(place, self.context.user_id, self.context.session_id, inbox_id)
        async with self.database.write() as connection:
            await post(connection, context, list(events), to_ms(self.clock.now()))

    async def deliver(self, *, until_idle: bool = True) -> None:
        task = asyncio.create_task(self.delivery.run())
        try:
            async with asyncio.timeout(10):
                while until_idle and not await self.delivery.idle():  # noqa: ASYNC110 - rows set no event
                    await asyncio.sleep(0.005)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def row(self, row_id: int) -> OutboxRow:
        async with self.database.read() as connection:
            found = await outbox.by_id(connection, row_id)
        assert found is not None
        return found


@pytest.fixture
async def world(database: Database, clock: FrozenClock) -> World:
    made = World(database, clock, RecordingTransport())
    await made.know_ada()
    return made


async def test_rows_of_one_place_go_out_in_order(world: World) -> None:
    await world.post(*(Notice(str(number)) for number in range(20)))
    await world.deliver()
    assert world.transport.texts() == [str(number) for number in range(20)]


async def test_a_long_answer_goes_out_whole_with_its_buttons_at_the_end(world: World) -> None:
    await world.post(Card("x" * 2500, ((Button("Yes", "leave"),),)))
    await world.deliver()
    shown = list(world.transport.shown.values())
    assert [len(message.text) for message in shown] == [1000, 1000, 500]
    assert [len(message.part.keys) for message in shown] == [0, 0, 1]


async def test_the_words_leave_the_outbox_when_they_have_arrived(world: World) -> None:
    await world.post(Notice("Bruno"))
    await world.deliver()
    row = await world.row(1)
    assert (row.status, row.event, row.refs) == ("sent", None, ("1",))


async def test_p33_a_429_waits_as_long_as_it_says_and_loses_nothing(world: World) -> None:
    world.transport.faults.append(SendError(Fault.LATER, "429", retry_after=0.2))
    await world.post(Notice("one"), Notice("two"))
    started = asyncio.get_running_loop().time()
    task = asyncio.create_task(world.deliver())
    await asyncio.sleep(0.05)
    world.clock.advance(seconds=1)
    await task
    assert world.transport.texts() == ["one", "two"]
    assert asyncio.get_running_loop().time() - started >= 0.2


async def test_p35_what_cannot_be_parsed_goes_out_once_as_plain_text(world: World) -> None:
    world.transport.faults.append(SendError(Fault.FORMAT, "can't parse entities"))
    await world.post(Notice("1 < 2"))
    await world.deliver()
    (shown,) = world.transport.shown.values()
    assert (shown.part.plain, shown.part.body) == ("1 < 2", None)


async def test_p32_a_send_whose_answer_was_lost_is_offered_and_never_repeated(world: World) -> None:
    world.transport.after_delivery.append(SendError(Fault.UNKNOWN, "timed out"))
    await world.post(Text("The answer.", done=True))
    await world.deliver()
    assert world.transport.texts() == ["The answer.", "May be lost."]
    assert (await world.row(1)).status == "unknown"


async def test_only_the_rest_of_a_long_answer_is_offered_and_shown(world: World) -> None:
    await world.post(Text("a" * 1000 + "b" * 1000 + "c", done=True))
    world.transport.part_length = 1000
    world.transport.faults_at[2] = SendError(Fault.UNKNOWN, "timed out")
    await world.deliver()
    assert [text[0] for text in world.transport.texts()] == ["a", "M"]
    async with world.database.write() as connection:
        await outbox.change(connection, 1, status="pending")
    await world.deliver()
    assert [text[0] for text in world.transport.texts()] == ["a", "M", "b", "c"]


async def test_a_transport_that_recognises_repeats_simply_sends_again(database: Database, clock: FrozenClock) -> None:
    world = World(database, clock, RecordingTransport(resends_safely=True))
    await world.know_ada()
    world.transport.faults.append(SendError(Fault.UNKNOWN, "timed out"))
    await world.post(Notice("once"))
    task = asyncio.create_task(world.deliver())
    await asyncio.sleep(0.05)
    clock.advance(seconds=2)
    await task
    assert world.transport.texts() == ["once"]


async def test_what_was_in_flight_at_a_crash_is_offered_by_one_line(world: World) -> None:
    await world.post(Text("The answer.", done=True))
    async with world.database.write() as connection:
        await outbox.change(connection, 1, status="sending")
    await world.delivery.recover()
    await world.deliver()
    assert world.transport.texts() == ["May be lost."]
    assert list(world.transport.tokens()) == ["Show"]


async def test_p32_an_edit_whose_answer_was_lost_is_repeated(world: World) -> None:
    await world.post(Card("first"))
    await world.deliver()
    world.transport.faults.append(SendError(Fault.UNKNOWN, "timed out"))
    await world.post(Card("second", replaces="1"))
    task = asyncio.create_task(world.deliver())
    await asyncio.sleep(0.05)
    world.clock.advance(seconds=2)
    await task
    assert world.transport.texts() == ["second"]


async def test_a_card_whose_message_is_gone_is_sent_anew(world: World) -> None:
    await world.post(Card("second", replaces="99"))
    await world.deliver()
    assert world.transport.texts() == ["second"]


async def test_p37_a_lost_thread_is_tried_again_and_then_offered_in_the_main_chat(world: World) -> None:
    world.transport.faults.extend(SendError(Fault.NO_THREAD, "message thread not found") for _ in range(3))
    await world.post(Text("private words", done=True), place=TOPIC)
    task = asyncio.create_task(world.deliver())
    for _ in range(3):
        await asyncio.sleep(0.05)
        world.clock.advance(seconds=3)
    await task
    assert world.transport.texts(HOME) == ["May be lost."]
    assert world.transport.texts(TOPIC) == []


async def test_p37_one_such_error_is_no_proof(world: World) -> None:
    world.transport.faults.append(SendError(Fault.NO_THREAD, "message thread not found"))
    await world.post(Notice("hello"), place=TOPIC)
    task = asyncio.create_task(world.deliver())
    await asyncio.sleep(0.05)
    world.clock.advance(seconds=3)
    await task
    assert world.transport.texts(TOPIC) == ["hello"]


async def test_a_moved_chat_is_followed(world: World) -> None:
    world.transport.faults.append(SendError(Fault.MOVED, "-100"))
    await world.post(Notice("hello"))
    await world.deliver()
    assert world.transport.texts(Place("fake", "-100")) == ["hello"]


async def test_somebody_who_blocked_the_bot_holds_up_nobody_else(world: World) -> None:
    world.transport.faults.append(SendError(Fault.NO_CHAT, "blocked"))
    await world.post(Notice("nobody reads this"))
    await world.deliver()
    await world.post(Notice("hello"), place=Place("fake", "43"))
    await world.deliver()
    assert world.transport.texts() == ["hello"]
    assert (await world.row(1)).status == "failed"


async def test_an_answer_that_grew_in_a_message_ends_in_that_message(world: World) -> None:
    ref = await world.transport.send(HOME, world.transport.render(Outgoing("text", "The ans"))[0], "")
    draft = Draft("fake", {"chat": "42", "thread": ""}, HOME.lane, None, inbox_id=5, status="streaming", refs=(ref,))
    async with world.database.write() as connection:
        await outbox.add(connection, draft, 0)
    session_id = world.context.session_id
    assert session_id is not None
    record = Utterance(session_id, "assistant", "Merk", "The answer.", inbox_id=5)
    await world.post(Text("The answer.", done=True, record=record), inbox_id=5)
    await world.deliver()
    assert world.transport.texts() == ["The answer."]
    async with world.database.read() as connection:
        row = await outbox.by_id(connection, 1)
    assert row is not None
    assert (row.message_id, row.refs) == (1, (ref,))


async def test_an_answer_whose_first_words_may_be_there_is_offered(world: World) -> None:
    draft = Draft("fake", {"chat": "42", "thread": ""}, HOME.lane, None, inbox_id=5, status="opening")
    async with world.database.write() as connection:
        await outbox.add(connection, draft, 0)
    await world.post(Text("The answer.", done=True), inbox_id=5)
    await world.deliver()
    assert world.transport.texts() == ["May be lost."]


async def test_an_answer_whose_first_words_may_be_there_takes_their_place_where_repeats_are_recognised(
    database: Database, clock: FrozenClock
) -> None:
    """The same send again says under which id they are, or puts them there."""
    world = World(database, clock, RecordingTransport(resends_safely=True))
    await world.know_ada()
    draft = Draft("fake", {"chat": "42", "thread": ""}, HOME.lane, None, inbox_id=5, status="opening")
    async with database.write() as connection:
        await outbox.add(connection, draft, 0)
    ref = await world.transport.send(HOME, Part("The an"), outbox.send_key(1, 0, 0))
    world.transport.faults.append(SendError(Fault.UNSENT, "no network"))
    await world.post(Text("The answer.", done=True), inbox_id=5)
    task = asyncio.create_task(world.deliver())
    await asyncio.sleep(0.05)
    clock.advance(seconds=2)
    await task
    assert {shown.ref: shown.text for shown in world.transport.shown.values()} == {ref: "The answer."}


def test_packing_loses_nothing() -> None:
    whole = Outgoing("card", "text", ((Key("Yes", "t"),),), "9", ("a.md", "# a"), formatted=True)
    assert unpack(pack(whole)) == whole


async def test_p33_a_preview_is_dropped_while_the_chat_must_wait() -> None:
    limiter = Limiter()
    pace = Pace(10, 2, 1)
    assert limiter.try_now("42", pace)
    assert not limiter.try_now("42", pace)  # the last token is the final message's
    limiter.block("43", 5)
    assert not limiter.try_now("43", pace)


async def test_p33_a_final_waits_for_its_turn() -> None:
    now = [0.0]
    limiter = Limiter(lambda: now[0])
    pace = Pace(0.02, 1, 1)
    await limiter.wait("42", pace)
    waiting = asyncio.create_task(limiter.wait("42", pace))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    now[0] = 0.03
    await asyncio.wait_for(waiting, 1)


# --- faults that must not lose, repeat or loop ----------------------------------------------------------


async def _with_time(world: World, *, steps: int, seconds: float = 70) -> None:
    """Deliver while the clock goes on; the pauses themselves are made short by `no_patience`."""
    task = asyncio.create_task(world.deliver())
    for _ in range(steps):
        await asyncio.sleep(0.02)
        world.clock.advance(seconds=seconds)
    await task


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.transports.delivery.PATIENCE_SECONDS", (0.01, 0.01))


@pytest.mark.usefixtures("no_patience")
async def test_a_notice_whose_arrival_is_unknown_is_sent_again_and_not_offered(world: World) -> None:
    world.transport.faults.extend(SendError(Fault.UNKNOWN, "502") for _ in range(4))
    await world.post(Notice("hello"))
    await _with_time(world, steps=5)
    assert world.transport.texts() == ["hello"]
    assert (await world.row(1)).attempts == 4


@pytest.mark.usefixtures("no_patience")
async def test_an_offer_that_may_be_lost_is_repeated_and_never_offered_itself(world: World) -> None:
    """Six 500s in a row used to end as cards about cards."""
    world.transport.faults.extend(SendError(Fault.UNKNOWN, "500") for _ in range(6))
    await world.post(Text("The answer.", done=True))
    await _with_time(world, steps=7)
    assert world.transport.texts() == ["May be lost."]
    assert world.reasons == ["unknown"]


async def test_a_file_whose_arrival_is_unknown_is_offered(world: World) -> None:
    world.transport.after_delivery.append(SendError(Fault.UNKNOWN, "timed out"))
    await world.post(Card("Your facts", file=("facts.md", "# Facts")))
    await world.deliver()
    assert world.transport.texts() == ["Your facts", "May be lost."]


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.FORMAT, Fault.NO_MESSAGE])
async def test_a_receipt_whose_edit_is_refused_is_sent_anew(world: World, fault: Fault) -> None:
    await world.post(Card("Sure?"))
    await world.deliver()
    world.transport.faults.extend(SendError(fault, "no") for _ in range(2 if fault is Fault.FORMAT else 1))
    await world.post(Card("Forgotten.", replaces="1"))
    await world.deliver()
    assert world.transport.texts() == ["Sure?", "Forgotten."]


@pytest.mark.parametrize("event", [Text("The answer.", done=True), Card("Remembered."), Notice("Stopped.")])
async def test_what_is_refused_fails_with_a_word_to_the_person(world: World, event: Event) -> None:
    world.transport.faults.append(SendError(Fault.REFUSED, "PREMIUM_ACCOUNT_REQUIRED"))
    await world.post(event)
    await world.deliver()
    row = await world.row(1)
    assert (row.status, row.error) == ("failed", "refused")
    assert world.reasons == ["refused"]
    assert world.transport.texts() == ["May be lost."]
    assert world.transport.tokens() == {}


async def test_a_refused_word_about_a_refused_answer_ends_there(world: World) -> None:
    world.transport.faults.extend(SendError(Fault.REFUSED, "not enough rights") for _ in range(2))
    await world.post(Text("The answer.", done=True))
    await world.deliver()
    assert world.transport.texts() == []
    assert world.reasons == ["refused"]


async def test_p37_an_answer_to_a_closed_topic_waits_and_its_session_stays_current(world: World) -> None:
    async with world.database.write() as connection:
        chat = await sessions.chat_id(connection, "fake", "42")
        assert chat is not None
        assert world.context.user_id is not None
        await sessions.start(connection, Audience(world.context.user_id, chat, is_private=True), "7", now=0)
    world.transport.faults.append(SendError(Fault.THREAD_CLOSED, "TOPIC_CLOSED"))
    await world.post(Text("private words", done=True), place=TOPIC)
    await world.deliver()
    assert (world.transport.texts(HOME), world.transport.texts(TOPIC)) == (["May be lost."], [])
    row = await world.row(1)
    assert (row.status, row.error, world.reasons) == ("unknown", "thread_closed", ["thread_closed"])
    async with world.database.read() as connection:
        assert await sessions.current(connection, chat, "7") is not None


async def test_a_closed_main_topic_makes_no_cards_about_cards(world: World) -> None:
    world.transport.faults.extend(SendError(Fault.THREAD_CLOSED, "TOPIC_CLOSED") for _ in range(2))
    await world.post(Text("The answer.", done=True))
    await world.deliver()
    assert world.transport.texts() == []
    assert (await world.row(1)).status == "failed"


async def test_a_chat_that_moved_into_a_known_one_is_followed(world: World) -> None:
    async with world.database.write() as connection:
        await sessions.ensure_chat(connection, "fake", "-100", kind="user", title="", now=0)
    world.transport.faults.append(SendError(Fault.MOVED, "-100"))
    await world.post(Text("The answer.", done=True))
    await world.deliver()
    assert world.transport.texts(Place("fake", "-100")) == ["The answer."]


@pytest.mark.usefixtures("no_patience")
async def test_a_row_that_breaks_the_delivery_is_given_up_and_the_lane_goes_on(world: World) -> None:
    async with world.database.write() as connection:
        await outbox.add(connection, Draft("fake", {"chat": "42"}, HOME.lane, pack(Outgoing("text", "poison"))), 0)
    await world.post(Notice("after it"))
    await _with_time(world, steps=4)
    assert world.transport.texts() == ["after it"]
    row = await world.row(1)
    assert (row.status, row.error) == ("failed", "broken")


async def test_a_clock_that_was_set_back_holds_nothing_up(world: World) -> None:
    await world.post(Notice("hello"))
    async with world.database.write() as connection:
        await outbox.change(connection, 1, not_before=to_ms(world.clock.now()) + 86_400_000)
    await world.deliver()
    assert world.transport.texts() == ["hello"]


async def test_a_long_flood_is_not_kept_longer_than_a_clock_can_be_trusted(world: World) -> None:
    world.transport.faults.append(SendError(Fault.LATER, "429", retry_after=7200))
    await world.post(Notice("hello"))
    await world.deliver(until_idle=False)
    task = asyncio.create_task(world.delivery.run())
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await world.delivery.drain(0)
    assert (await world.row(1)).not_before - to_ms(world.clock.now()) == 300_000


async def test_what_was_never_sent_loses_its_words_in_time(world: World) -> None:
    session_id = world.context.session_id
    assert session_id is not None
    for _ in range(2):
        world.transport.faults.append(SendError(Fault.NO_CHAT, "blocked"))
    await world.post(Notice("nobody reads this"))
    await world.post(Text("Bruno", done=True, record=Utterance(session_id, "assistant", "Merk", "Bruno", inbox_id=5)))
    await world.deliver()
    async with world.database.write() as connection:
        assert await outbox.prune(connection, to_ms(world.clock.now())) == 0
        assert await outbox.prune(connection, to_ms(world.clock.now()) + 1) == 1
        assert await outbox.by_id(connection, 1) is None
    row = await world.row(2)
    assert (row.status, row.event) == ("failed", None)


@pytest.mark.usefixtures("no_patience")
async def test_what_was_being_sent_when_the_program_stumbled_is_offered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is there, and what should have noted it failed: it must not go out again unasked."""
    send = world.transport.send

    async def send_and_break(place: Place, part: Part, key: str) -> str:
        await send(place, part, key)
        monkeypatch.undo()
        monkeypatch.setattr("bot.transports.delivery.PATIENCE_SECONDS", (0.01, 0.01))
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(world.transport, "send", send_and_break)
    await world.post(Text("The answer.", done=True))
    await _with_time(world, steps=2)
    assert world.transport.texts() == ["The answer.", "May be lost."]
    assert (await world.row(1)).status == "unknown"


# --- begun with the transaction that writes it ------------------------------------------------------


async def _hand_over(world: World, *events: Event, fails: bool = False) -> list[str]:
    """Write a reply as the intake does; return how its rows stand when the transaction is through."""
    async with world.delivery.begun_at_once(HOME) as begin, world.database.jot() as connection:
        await post(connection, world.context, list(events), to_ms(world.clock.now()))
        await begin(connection)
        if fails:
            raise ZeroDivisionError
    async with world.database.read() as connection:
        rows = (await connection.execute(sa.select(tables.outbox.c.status).order_by(tables.outbox.c.id))).scalars()
        return list(rows)


@pytest.fixture
async def running(world: World) -> AsyncIterator[World]:
    task = asyncio.create_task(world.delivery.run())
    await asyncio.sleep(0)
    yield world
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _until_idle(world: World) -> None:
    async with asyncio.timeout(10):
        while not await world.delivery.idle():  # noqa: ASYNC110 - rows set no event
            await asyncio.sleep(0.005)


async def test_where_nothing_waits_a_reply_is_on_its_way_with_its_own_transaction(running: World) -> None:
    assert await _hand_over(running, Notice("one"), Notice("two")) == ["sending", "pending"]
    await _until_idle(running)
    assert running.transport.texts() == ["one", "two"]


async def test_a_reply_that_is_not_written_is_not_sent(running: World) -> None:
    with pytest.raises(ZeroDivisionError):
        await _hand_over(running, Notice("lost"), fails=True)
    await _until_idle(running)
    assert await _hand_over(running, Notice("kept")) == ["sending"]
    await _until_idle(running)
    assert running.transport.texts() == ["kept"]


async def test_a_reply_behind_another_waits_for_its_turn(running: World) -> None:
    running.transport.faults.append(SendError(Fault.LATER, "429", retry_after=0.05))
    await running.post(Notice("first"))
    running.delivery.wake(HOME)
    await asyncio.sleep(0.02)
    assert await _hand_over(running, Notice("second")) == ["pending", "pending"]
    running.clock.advance(seconds=1)
    await _until_idle(running)
    assert running.transport.texts() == ["first", "second"]


async def test_p33_a_reply_waits_where_the_chat_must_not_be_written_to(running: World) -> None:
    running.delivery.limiter.block(HOME.chat, 0.05)
    assert await _hand_over(running, Notice("patient")) == ["pending"]
    await _until_idle(running)
    assert running.transport.texts() == ["patient"]


async def test_what_is_written_meanwhile_by_others_goes_out_too(running: World) -> None:
    async with running.delivery.begun_at_once(HOME):
        await running.post(Notice("from elsewhere"))
        running.delivery.wake(HOME)
        await asyncio.sleep(0.02)
        assert running.transport.texts() == []  # the place is taken
    await _until_idle(running)
    assert running.transport.texts() == ["from elsewhere"]


async def test_p32_a_reply_that_was_begun_when_the_program_died_is_offered(world: World) -> None:
    async with world.database.jot() as connection:
        await post(connection, world.context, [Text("An answer.", done=True)], 0)
        await outbox.begin_sending(connection, 1, ())
    await world.delivery.recover()
    await world.deliver()
    assert world.reasons == ["unknown"]
    assert world.transport.texts() == ["May be lost."]
