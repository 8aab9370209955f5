"""A growing answer in a message that is edited: what its first picture may cost."""

import asyncio
from datetime import UTC, datetime

import pytest

from bot.transports.base import Fault, Preview, SendError
from bot.transports.delivery import Delivery
from bot.transports.limiter import Limiter
from bot.transports.posting import Context, post
from bot.transports.preview import Previewer
from handlers.types import Card, Incoming, Place, Sender, Text
from memory.storage import outbox
from memory.storage.database import Database
from memory.storage.outbox import OutboxRow
from tests.fakes.clock import FrozenClock
from tests.fakes.transport import RecordingTransport

GROUP = Place("fake", "-100")
CERTAIN = [fault for fault in Fault if fault is not Fault.UNKNOWN]


async def _offer(row: OutboxRow) -> Card:
    return Card(f"Offered: {row.error}")


async def _answer(database: Database, transport: RecordingTransport, *pieces: str) -> None:
    """Let an answer grow piece by piece, then deliver it."""
    clock = FrozenClock()
    delivery = Delivery(database, clock, {transport.name: transport}, Limiter(), _offer)
    incoming = Incoming((1,), GROUP, Sender("fake:42", "Ada"), datetime(2026, 1, 1, tzinfo=UTC), chat_kind="user")
    async with Previewer(database, clock, transport, delivery.limiter, incoming) as previewer:
        for piece in pieces:
            previewer.grow(piece)
            await asyncio.sleep(0.05)
    async with database.write() as connection:
        await post(connection, Context(GROUP, None, None, 1), [Text("".join(pieces), done=True)], 0)
    task = asyncio.create_task(delivery.run())
    async with asyncio.timeout(10):
        while not await delivery.idle():  # noqa: ASYNC110 - rows set no event
            await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("fault", CERTAIN)
async def test_a_first_picture_that_was_certainly_refused_costs_nothing(database: Database, fault: Fault) -> None:
    """The next picture is the first one then, and the answer ends in it."""
    transport = RecordingTransport(style=Preview.EDIT)
    transport.faults.append(SendError(fault, "refused"))
    await _answer(database, transport, "The ", "answer.")
    (shown,) = transport.shown.values()
    assert shown.versions == ["The answer.", "The answer."]


async def test_an_answer_without_any_picture_is_a_message_like_any_other(database: Database) -> None:
    transport = RecordingTransport(style=Preview.EDIT)
    transport.faults.extend(SendError(Fault.REFUSED, "not enough rights") for _ in range(2))
    await _answer(database, transport, "The ", "answer.")
    (shown,) = transport.shown.values()
    assert shown.versions == ["The answer."]


async def test_a_first_picture_that_may_be_there_leaves_the_answer_to_be_offered(database: Database) -> None:
    """A second message must not stand beside a half one that nobody can take back."""
    transport = RecordingTransport(style=Preview.EDIT)
    transport.after_delivery.append(SendError(Fault.UNKNOWN, "timed out"))
    await _answer(database, transport, "The ", "answer.")
    assert transport.texts() == ["The "]
    async with database.read() as connection:
        row = await outbox.by_id(connection, 1)
    assert row is not None
    assert (row.status, row.error) == ("unknown", "unknown")


async def test_a_growing_answer_does_not_overtake_those_that_wait_to_be_sent(database: Database) -> None:
    """After an absence answers are made faster than a network takes them."""
    transport = RecordingTransport(style=Preview.EDIT)
    async with database.write() as connection:
        await post(connection, Context(GROUP, None, None, 7, may_grow=False), [Text("Before.", done=True)], 0)
    await _answer(database, transport, "The ", "answer.")
    assert [shown.versions for shown in transport.shown.values()] == [["Before."], ["The answer."]]
