"""From an update to a finished reply, also across a kill."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.transports.base import Hold, Preview
from bot.transports.delivery import Delivery
from bot.transports.intake import Intake
from bot.transports.limiter import Limiter
from handlers.types import Card, Handled, Incoming, Notice, Reply, Text
from memory.storage import inbox
from memory.storage.database import Database
from memory.storage.outbox import OutboxRow
from tests.fakes.clock import FrozenClock
from tests.fakes.transport import RecordingTransport

Answer = Callable[[Incoming], Reply]


async def _offer(_row: OutboxRow) -> Card:
    return Card("May be lost.")


async def echo(incoming: Incoming) -> Reply:
    yield Text(f"You said {incoming.text}", done=True)


class Running:
    """One life of the program: from start to kill."""

    def __init__(
        self, database: Database, transport: RecordingTransport, answer: Answer, *, attempts: list[int] | None = None
    ) -> None:
        self.database = database
        self.transport = transport
        clock = FrozenClock()
        self.delivery = Delivery(database, clock, {transport.name: transport}, Limiter(), _offer)
        self.finished = 0

        async def handle(incoming: Incoming, attempt: int) -> Handled:
            if attempts is not None:
                attempts.append(attempt)
            return Handled(answer(incoming))

        self.intake = Intake(
            database,
            clock,
            transport,
            self.delivery,
            handle=handle,
            is_urgent=lambda incoming: incoming.text == "/stop" or incoming.press is not None,
            finished=self._finished,
        )
        self._task: asyncio.Task[None] | None = None

    def _finished(self) -> None:
        self.finished += 1

    async def start(self) -> None:
        await self.delivery.recover()
        self._task = asyncio.create_task(self.delivery.run())
        await self.intake.recover()

    async def say(self, text: str, **more: Any) -> None:
        await self.intake.accept(more.pop("id", text), {"text": text, **more})

    async def settle(self) -> None:
        async with asyncio.timeout(10):
            while not (self.intake.is_idle() and await self.delivery.idle()):  # noqa: ASYNC110 - rows set no event
                await asyncio.sleep(0.005)

    async def kill(self) -> None:
        await self.intake.close()
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


Start = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start(database: Database):
    lives: list[Running] = []

    async def begin(transport: RecordingTransport, answer: Answer = echo, **more: Any) -> Running:
        life = Running(database, transport, answer, **more)
        lives.append(life)
        await life.start()
        return life

    yield begin
    for life in lives:
        await life.kill()


async def test_a_message_is_answered_once(start: Start) -> None:
    life = await start(RecordingTransport())
    await life.say("hi")
    await life.say("hi")  # the same update id again
    await life.settle()
    assert life.transport.texts() == ["You said hi"]
    assert life.finished == 1


async def test_p31_what_came_in_while_work_was_going_on_survives_a_kill(start: Start) -> None:
    never = asyncio.Event()

    async def hang(_incoming: Incoming) -> Reply:
        await never.wait()
        yield Text("never", done=True)

    transport = RecordingTransport()
    life = await start(transport, hang)
    for text in ("one", "two", "three"):
        await life.say(text)
    await life.kill()
    life = await start(transport)
    await life.settle()
    assert transport.texts() == ["You said one", "You said two", "You said three"]


async def test_p57_a_turn_that_was_interrupted_is_taken_up_again_and_counted(start: Start) -> None:
    never = asyncio.Event()

    async def hang(_incoming: Incoming) -> Reply:
        yield Text("begun ")
        await never.wait()

    attempts: list[int] = []
    transport = RecordingTransport()
    life = await start(transport, hang, attempts=attempts)
    await life.say("one")
    await asyncio.sleep(0.05)
    await life.kill()
    life = await start(transport, attempts=attempts)
    await life.settle()
    assert attempts == [1, 2]
    assert transport.texts() == ["You said one"]


async def test_p44_messages_of_one_place_are_answered_in_order_and_the_waiting_ones_show_it(start: Start) -> None:
    gate = asyncio.Event()

    async def slow(incoming: Incoming) -> Reply:
        await gate.wait()
        yield Text(incoming.text, done=True)

    life = await start(RecordingTransport(), slow)
    for text in ("one", "two", "three"):
        await life.say(text)
    await asyncio.sleep(0.05)
    assert life.transport.waiting == [("two", True), ("three", True)]
    gate.set()
    await life.settle()
    assert life.transport.texts() == ["one", "two", "three"]
    assert life.transport.waiting[2:] == [("two", False), ("three", False)]


async def test_places_do_not_wait_for_each_other(start: Start) -> None:
    gate = asyncio.Event()

    async def slow_in_one(incoming: Incoming) -> Reply:
        if incoming.place.thread == "7":
            await gate.wait()
        yield Text(incoming.text, done=True)

    life = await start(RecordingTransport(), slow_in_one)
    await life.say("slow", thread="7")
    await life.say("fast", thread="8")
    await asyncio.sleep(0.1)
    assert life.transport.texts() == ["fast"]
    gate.set()
    await life.settle()


async def test_a_press_does_not_wait_behind_a_running_answer(start: Start) -> None:
    gate = asyncio.Event()

    async def answer(incoming: Incoming) -> Reply:
        if incoming.press:
            yield Notice("Done already.", brief=True)
            return
        await gate.wait()
        yield Text("late", done=True)

    life = await start(RecordingTransport(), answer)
    await life.say("question")
    await life.say("", token="t", id="press")
    await asyncio.sleep(0.1)
    assert life.transport.toasts == ["Done already."]
    assert life.transport.texts() == []
    gate.set()
    await life.settle()


async def test_p39_a_split_paste_is_one_turn(start: Start) -> None:
    transport = RecordingTransport()
    transport.holds = {"aaaa": Hold("paste", 0.05), "rest": Hold("paste", 0.0)}
    life = await start(transport)
    await life.say("a" * 4096)
    await life.say("rest")
    await asyncio.sleep(0.15)
    await life.settle()
    assert "".join(transport.texts()) == "You said " + "a" * 4096 + "rest"
    async with life.database.read() as connection:
        assert await inbox.open_rows(connection, "fake") == []


async def test_p39_what_is_said_after_a_held_message_is_answered_after_it(start: Start) -> None:
    transport = RecordingTransport()
    transport.holds = {"aaaa": Hold("paste", 5), "albu": Hold("album", 5)}
    life = await start(transport)
    for text in ("aaaa", "album", "/newchat"):
        await life.say(text)
    await life.settle()
    assert transport.texts() == ["You said aaaa", "You said album", "You said /newchat"]


async def test_a_short_message_alone_is_not_held(start: Start) -> None:
    transport = RecordingTransport()
    transport.holds = {"rest": Hold("paste", 0.0)}
    life = await start(transport)
    await life.say("rest")
    await life.settle()
    assert transport.texts() == ["You said rest"]


async def test_an_update_nobody_understands_blocks_nothing(start: Start, database: Database) -> None:
    life = await start(RecordingTransport())
    await life.intake.accept("1", {"service": True})
    await life.intake.accept("2", {"unknown shape": True})
    await life.say("hi")
    await life.settle()
    assert "You said hi" in life.transport.texts()
    async with database.read() as connection:
        assert await inbox.open_rows(connection, "fake") == []


async def test_the_words_leave_the_inbox_when_they_are_answered(
    start: Start, database: Database, tmp_path: Any
) -> None:
    life = await start(RecordingTransport())
    await life.say("Bruno is secret", id="1")
    await life.settle()
    await life.kill()
    await database.flush_deleted()
    assert b"Bruno is secret" not in (tmp_path / "merk.db").read_bytes()


async def test_a_growing_answer_is_shown_and_its_end_is_one_message(start: Start) -> None:
    async def grow(_incoming: Incoming) -> Reply:
        for word in ("one ", "two ", "three"):
            yield Text(word)
            await asyncio.sleep(0.03)
        yield Text("one two three", done=True)

    life = await start(RecordingTransport(style=Preview.DRAFT), grow)
    await life.say("count")
    await life.settle()
    assert life.transport.drafts[0].startswith("one")
    assert life.transport.texts() == ["one two three"]


async def test_p32_in_a_group_the_growing_message_becomes_the_answer(start: Start) -> None:
    async def grow(_incoming: Incoming) -> Reply:
        for word in ("one ", "two ", "three"):
            yield Text(word)
            await asyncio.sleep(0.03)
        yield Text("one two three", done=True)

    life = await start(RecordingTransport(style=Preview.EDIT), grow)
    await life.say("count")
    await life.settle()
    (message,) = life.transport.shown.values()
    assert message.versions[0].startswith("one")
    assert message.text == "one two three"


async def test_p57_a_half_written_message_is_finished_after_a_kill(start: Start) -> None:
    never = asyncio.Event()

    async def half(_incoming: Incoming) -> Reply:
        yield Text("half of ")
        await never.wait()

    transport = RecordingTransport(style=Preview.EDIT)
    life = await start(transport, half)
    await life.say("question")
    await asyncio.sleep(0.1)
    assert transport.texts() == ["half of "]
    await life.kill()
    life = await start(transport)
    await life.settle()
    assert transport.texts() == ["You said question"]
