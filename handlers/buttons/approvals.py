"""The tap that lets a tool's call happen, exactly as it was shown, and the one that does not."""

from dataclasses import replace
from typing import Literal

from handlers.answering import calls
from handlers.answering.calls import Call, Tool, Used
from handlers.types import Card, Handler, Happened, Reply, Request, UserError
from handlers.work.works import Works
from memory import telemetry
from memory.storage import confirmations, log
from memory.storage.database import Database
from memory.telemetry import ApprovalDecided, ToolUsed


def allow(database: Database, works: Works, tools: dict[str, Tool]) -> Handler:
    async def handle(request: Request) -> Reply:
        data = request.data
        tool = tools.get(data["tool"])
        if tool is None:  # a program from before offered it
            raise UserError(request.say("press-expired"))
        work = await works.load(request)
        used: list[Used] = []
        outcome = await calls.run_one(tool, Call(request, data["input"], data["message_id"], work), used)
        async with database.write() as connection:
            await log.settle_call(connection, data["asked_by"], data["at"], "broken" if outcome.is_error else "allowed")
        told = Card(request.say("call-failed" if outcome.is_error else "call-allowed"))
        first, *more = outcome.cards or (told,)
        yield replace(first, replaces=request.card)
        for event in (*more, *work.events(), _decided(request, data["tool"], "allowed")):
            yield event
        for each in used:
            yield Happened(
                ToolUsed(
                    user_id=request.user.id,
                    session_id=request.session.id,
                    tool_name=each.tool,
                    duration_ms=each.duration_ms,
                    success=each.success,
                )
            )

    return handle


def deny(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        async with database.write() as connection:
            await log.settle_call(connection, request.data["asked_by"], request.data["at"], "denied")
        yield Card(request.say("left"), replaces=request.card)
        # a card from before this was stored does not say which tool it asked for
        yield _decided(request, request.data.get("tool", "unknown"), "denied")

    return handle


async def expire(database: Database, now: int) -> None:
    """Say in the history of calls that waited too long that nobody answered; their buttons go at the same time."""
    async with database.write() as connection:
        for data in await confirmations.take_expired(connection, "allow_call", now):
            await log.settle_call(connection, data["asked_by"], data["at"], "expired")
            await telemetry.record(connection, ApprovalDecided(tool_name=data["tool"], decision="expired"), now)


def _decided(request: Request, tool: str, decision: Literal["allowed", "denied"]) -> Happened:
    who = {"user_id": request.user.id, "session_id": request.session.id}
    return Happened(ApprovalDecided(**who, tool_name=tool, decision=decision))
