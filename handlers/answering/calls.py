"""What the model may do: tools, their calls, what they come to, and the tap that some of them need first."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

from handlers.types import Button, Card, Request, UserError
from handlers.work.works import Work
from memory.ports import Json, Tier, ToolCall, ToolSpec

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool call came to."""

    text: str
    """What the model is told; capped by the loop."""
    cards: tuple[Card, ...] = ()
    """What the person is shown for good; never told to the model. Working output goes through `Call.work`."""
    is_error: bool = False
    waits: bool = False
    """A person's tap comes first."""


@dataclass(frozen=True, slots=True)
class Used:
    """That a tool ran, for the account of the turn."""

    tool: str
    duration_ms: int
    success: bool


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: by the model, or by the tap that allows it."""

    request: Request
    input: Json
    message_id: int | None
    """The message that asked for it."""
    work: Work
    """The open piece of work of the session."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What the model may do: a schema for the model, a function for us."""

    spec: ToolSpec
    run: Callable[[Call], Awaitable[Outcome]]
    confirm: Literal["never", "always", "untrusted"] = "never"
    """When a tap must come first; untrusted = in a turn that holds somebody else's words."""
    describe: Callable[[Request, Json], str | None] | None = None
    """What exactly will be done, for the card that asks; None for an input that cannot be done at all."""
    allow: str = "call-allow"
    """The phrase on the button that lets it happen."""
    seconds: float = 20.0
    """After this long a call is given up."""
    most: int | None = None
    """Calls in one answer; None: as many as the rounds allow."""
    tiers: frozenset[Tier] = frozenset(Tier)
    """Which models it is offered to."""

    def asks(self, request: Request) -> bool:
        """Whether a tap must come first."""
        return self.confirm == "always" or (self.confirm == "untrusted" and not request.incoming.is_trusted)


@dataclass(slots=True)
class Made:
    """The calls of one answer so far: their stubs for the history, their cards for the person."""

    stubs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    cards: list[Card] = field(default_factory=list[Card])
    used: list[Used] = field(default_factory=list[Used])
    """Those that ran: not the ones that wait for a tap, nor what is no tool."""


async def run_all(
    tools: dict[str, Tool], request: Request, work: Work, message_id: int, calls: Sequence[ToolCall], made: Made
) -> list[Outcome]:
    """Run the calls of one round side by side; outcomes and stubs stand in the order of the calls."""
    first = len(made.stubs)
    names = [*(block["tool"] for block in made.stubs), *(call.name for call in calls)]
    outcomes = await asyncio.gather(
        *(
            _run(
                tools.get(call.name),
                Call(request, call.input, message_id, work),
                call.name,
                first + at,
                before=names[: first + at].count(call.name),
                used=made.used,
            )
            for at, call in enumerate(calls)
        )
    )
    for call, outcome in zip(calls, outcomes, strict=True):
        made.cards += outcome.cards
        made.stubs.append(stub(call.name, outcome))
    return outcomes


def stub(name: str, outcome: Outcome) -> dict[str, Any]:
    """What stays of a call in the history: the call's words are not kept a second time."""
    if outcome.waits:
        return {"tool": name, "outcome": "waiting"}
    return {"tool": name, "outcome": "failed" if outcome.is_error else "done"}


async def _run(tool: Tool | None, call: Call, name: str, at: int, *, before: int, used: list[Used]) -> Outcome:
    """`before` counts the calls of the same tool earlier in the answer."""
    if tool is None:
        return Outcome(f"There is no tool {name}.", is_error=True)
    if tool.most is not None and before >= tool.most:
        return Outcome(f"{name} may be called {tool.most} times in one answer, no more.", is_error=True)
    if tool.asks(call.request):
        try:
            return _park(tool, call, at)
        except Exception:
            # as with a call that runs: one tool must not take the answer down
            log.exception("calls.tool_failed", tool=tool.spec.name)
            return Outcome("The tool failed.", is_error=True)
    return await run_one(tool, call, used)


async def run_one(tool: Tool, call: Call, used: list[Used]) -> Outcome:
    """Run a call that needs no tap, or has it, and note it. Never raises but for cancellation."""
    started = time.monotonic()
    outcome = await _outcome(tool, call)
    used.append(Used(tool.spec.name, round((time.monotonic() - started) * 1000), not outcome.is_error))
    return outcome


async def _outcome(tool: Tool, call: Call) -> Outcome:
    try:
        async with asyncio.timeout(tool.seconds):
            return await tool.run(call)
    except UserError as error:
        return Outcome(str(error), is_error=True)
    except TimeoutError:
        return Outcome("The tool took too long. Nothing is known to have happened.", is_error=True)
    except Exception:
        # the model gets a plain sentence, never our paths or SQL; the turn goes on
        log.exception("calls.tool_failed", tool=tool.spec.name)
        return Outcome("The tool failed.", is_error=True)


def _park(tool: Tool, call: Call, at: int) -> Outcome:
    """Ask the person; exactly this call runs when they tap."""
    assert tool.describe is not None, f"{tool.spec.name} may need a tap and must say what it does"
    described = tool.describe(call.request, call.input)
    if described is None:
        return Outcome("The input makes no sense for this tool; nothing was done.", is_error=True)
    say = call.request.say
    data = {
        "tool": tool.spec.name,
        "input": call.input,
        "message_id": call.message_id,
        "asked_by": call.request.incoming.inbox_ids[0],
        "at": at,
    }
    allow = Button(say(tool.allow), "allow_call", data, waits=True)
    deny = Button(say("call-deny"), "deny_call", {key: data[key] for key in ("tool", "asked_by", "at")})
    card = Card(described, ((allow, deny),))
    return Outcome("Not done yet: the person was shown exactly this call and has to allow it.", (card,), waits=True)
