"""A day through the whole bot leaves exactly the events that it should, and the API tells them."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.jobs.watch import Watch
from bot.transports.base import Fault, SendError
from memory.ports import Failure, ModelRequest, StopReason
from memory.storage.database import Database
from memory.storage.tables import messages, spend, telemetry_events
from tests.fakes.house import house
from tests.fakes.model import Fails, Says, call

SUMMARY = {
    "title": "A cat",
    "text": "Ada told the name of her cat and asked for it again; it was noted, and she was answered.",
    "request": "To have the cat's name noted.",
    "investigated": "",
    "learned": "The cat is called Minka.",
    "completed": "",
    "next_steps": "",
    "notes": "",
}
TIMES = ("durationMs", "firstTokenMs")


async def happened(database: Database) -> list[tuple[str, dict[str, Any]]]:
    """Every event in order, without what a watch would say."""
    async with database.read() as connection:
        query = sa.select(telemetry_events).order_by(telemetry_events.c.id)
        rows = (await connection.execute(query)).mappings().all()
    return [(row["name"], {key: row["data"][key] for key in row["data"] if key not in TIMES}) for row in rows]


async def test_a_day_through_the_bot_yields_exactly_these_events(database: Database, tmp_path: Path) -> None:
    script = (
        "Good morning.",
        call("remember_fact", fact="The cat is called Minka."),
        "Noted.",
        Fails(Failure.RATE),
        Fails(Failure.TOO_LONG),
        SUMMARY,  # stands for what is left out
        "Shorter, then.",
        Says("I had more to s", StopReason.LENGTH),
        Fails(Failure.CUT, after="It was in "),
        Says("", StopReason.REFUSED),
        call("remember_fact", fact="The admin is called Eve."),
        "I asked you.",
        call("remember_fact", fact="The admin is called Mallory."),
        "I asked you again.",
    )
    async with house(database, tmp_path, *script) as opened:
        await opened.say("hello there")
        await opened.say("my cat is called Minka")
        await opened.say("and what is her name?")  # the provider is busy
        await opened.say("once more, please")  # too long, then shorter
        await opened.say("tell me a long story")
        await opened.say("when was it?")
        await opened.say("something forbidden")
        await opened.say("please note this", quote="the admin is called Eve", quote_author="Mallory")
        await opened.press("Keep")
        await opened.say("and this", quote="the admin is called Mallory", quote_author="Mallory")
        await opened.press("No")
        opened.transport.faults.append(SendError(Fault.UNSENT, "the line is dead"))
        await opened.say("/help")
        await opened.say("/forget cat")
        await opened.press("Yes, forget")
        told = [event for event in await happened(database) if event[0] not in NOT_OF_A_TURN]
    assert [short(event) for event in told] == [
        "turn answered 0 0",
        "tool remember_fact True",
        "turn answered 0 1",
        "error rate",
        "summary model",
        "shorter True",
        "turn answered 0 0",
        "turn cut 0 0",
        "error cut",
        "turn broken 0 0",
        "turn refused 0 0",
        "turn answered 0 0",
        "approval remember_fact allowed",
        "tool remember_fact True",
        "turn answered 0 0",
        "approval remember_fact denied",
        "fault fake unsent",
        "forgot 1",
    ]


NOT_OF_A_TURN = ("chat.model_auto_routed", "memory.cache_break", "memory.extraction")
"""Decided elsewhere, and tested there."""


def short(event: tuple[str, dict[str, Any]]) -> str:
    name, data = event
    said, keys = SHORT[name]
    return " ".join((said, *(str(data[key]) for key in keys)))


SHORT = {
    "chat.turn_completed": ("turn", ("outcome", "recallHits", "toolCalls")),
    "chat.tool_used": ("tool", ("toolName", "success")),
    "chat.error": ("error", ("failure",)),
    "chat.ptl_recovery": ("shorter", ("success",)),
    "chat.approval_decision": ("approval", ("toolName", "decision")),
    "transport.fault": ("fault", ("transport", "fault")),
    "memory.summary": ("summary", ("by",)),
    "memory.forget": ("forgot", ("facts",)),
}


async def test_a_turn_is_accounted_for_with_its_model_tokens_and_times(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, "Good morning, Ada.") as opened:
        await opened.say("hello there")
        async with database.read() as connection:
            completed = telemetry_events.c.name == "chat.turn_completed"
            event = (await connection.execute(sa.select(telemetry_events).where(completed))).mappings().one()
            answers = sa.select(messages).where(messages.c.role == "assistant")
            logged = (await connection.execute(answers)).mappings().one()
            spent = (await connection.execute(sa.select(spend))).mappings().all()
    data = event["data"]
    assert data["model"] == "scripted" == logged["model"]
    assert data["inboxId"] == logged["inbox_id"]
    assert data["durationMs"] == logged["duration_ms"]
    assert 0 <= data["firstTokenMs"] <= data["durationMs"]
    assert data["tokensIn"] == sum(row["input"] for row in spent) > 0
    assert data["tokensOut"] == sum(row["output"] for row in spent) == 3
    assert (event["user_id"], event["session_id"]) == (1, logged["session_id"])
    assert logged["memory_trace"] is not None


async def test_a_fault_of_our_own_is_an_error(database: Database, tmp_path: Path) -> None:
    """The person reads a sentence, the owner sees "bug"."""

    def fail(_request: ModelRequest) -> str:
        raise RuntimeError("a fault of ours")

    async with house(database, tmp_path, fail) as opened:
        await opened.say("hello there")
        assert ("chat.error", {"failure": "bug"}) in await happened(database)


async def test_a_job_that_fails_is_an_event_and_comes_again(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:

        async def fail() -> None:
            raise OSError("no room")

        job = Watch(database, opened.clock).job("sweep", fail)
        await job()
        await job()
        assert await happened(database) == [("job.failed", {"job": "sweep", "error": "OSError", "attempts": 1})] * 2


async def test_no_word_of_anybody_is_in_an_event(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, call("remember_fact", fact="Zebedee is a zebra."), "Zounds!") as opened:
        await opened.say("Zebedee is a zebra")
        told = repr(await happened(database))
    assert "turn_completed" in told
    assert not any(word in told for word in ("Zebedee", "zebra", "Zounds"))
