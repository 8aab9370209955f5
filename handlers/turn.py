"""A chat turn: record, recall, answer with tools, record. The straight line that every message takes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from handlers import failures, prompt, utterances
from handlers.running import Running
from handlers.types import Card, Event, Notice, Outcome, Reply, Request, Text, Tool
from memory.instants import to_ms
from memory.memory import Memory
from memory.ports import (
    ChatMessage,
    Clock,
    Failure,
    Finished,
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    StopReason,
    TextBlock,
    TextDelta,
    ToolCall,
    ToolResult,
)
from memory.storage import log as message_log
from memory.storage import sessions
from memory.storage.database import Database
from memory.types import Message, Recall, Utterance

log = structlog.get_logger(__name__)

MAX_ROUNDS = 6  # of tools in one answer
TOOL_SECONDS = 20
RESULT_LENGTH = 8000
_SHARES = (1.0, 0.5, 0.0)
"""Of the window: a prompt that is too long is tried shorter before anybody hears of it."""


@dataclass(frozen=True, slots=True)
class TurnSettings:
    name: str
    timezone: str
    window: int = 12
    window_max: int = 24


@dataclass(slots=True)
class _Answer:
    """What one turn has come to so far."""

    text: str = ""
    model: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    cards: list[Card] = field(default_factory=list[Card])
    stop: StopReason = StopReason.END
    was_stopped: bool = False
    failure: Card | None = None
    usage: list[dict[str, int]] = field(default_factory=list[dict[str, int]])

    @property
    def has_begun(self) -> bool:
        """Something was shown or done: it must not be done twice."""
        return bool(self.text or self.calls)

    def add(self, text: str) -> str:
        """Append a piece; pieces from before and after a tool call are paragraphs of their own."""
        self.text += text
        return text


class Turn:
    """Answers messages."""

    def __init__(  # noqa: PLR0913 - what a turn needs
        self,
        database: Database,
        clock: Clock,
        memory: Memory,
        *,
        model: LanguageModel,
        tools: Sequence[Tool],
        running: Running,
        settings: TurnSettings,
    ) -> None:
        self._database = database
        self._clock = clock
        self._memory = memory
        self._model = model
        self._tools = {tool.spec.name: tool for tool in tools}
        self._running = running
        self._settings = settings

    async def __call__(self, request: Request) -> Reply:
        """Answer a person's message."""
        if not request.incoming.text and request.incoming.attachments:
            await self._record(request)
            yield self._cannot_see(request)
            return
        async with self._running.turn(request.incoming.place) as stop:
            message, recall = await asyncio.gather(self._record(request), self._recall(request, request.incoming.text))
            async with aclosing(self._answer(request, message, recall, stop)) as reply:
                async for event in reply:
                    yield event

    async def answer(self, request: Request, message: Message) -> Reply:
        """Answer a message of the log; once more, where it has been answered before."""
        async with self._running.turn(request.incoming.place) as stop:
            recall = await self._recall(request, message.text)
            async with aclosing(self._answer(request, message, recall, stop)) as reply:
                async for event in reply:
                    yield event

    async def _recall(self, request: Request, text: str) -> Recall:
        return await self._memory.recall(request.audience, request.session.id, text)

    async def _answer(self, request: Request, message: Message, recall: Recall, stop: asyncio.Event) -> Reply:
        started = time.monotonic()
        answer = _Answer()
        for share in _SHARES:
            try:
                model_request = await self._prompt(request, message, recall, share)
                async with aclosing(self._loop(request, message, model_request, answer, stop)) as pieces:
                    async for piece in pieces:
                        yield Text(piece)
            except ModelError as error:
                log.warning("turn.model_failed", failure=error.failure, detail=error.detail, share=share)
                if error.failure is Failure.TOO_LONG and share and not answer.has_begun:
                    continue
                answer.failure = failures.card(request.say, error, message.id)
            break
        if answer.stop is StopReason.REFUSED:
            await self._withhold(message)
        for event in self._conclude(request, answer, recall, started):
            yield event

    async def _record(self, request: Request) -> Message:
        incoming = request.incoming
        written = utterances.write_down(incoming)
        utterance = Utterance(
            session_id=request.session.id,
            role="user",
            speaker=request.user.name,
            text=written.text,
            user_id=request.user.id,
            origin=written.origin,
            blocks=written.pieces,
            inbox_id=incoming.inbox_ids[0],
            external_ref=incoming.ref or None,
        )
        now = to_ms(self._clock.now())
        async with self._database.write() as connection:
            message = await message_log.append(connection, utterance, now)
            await sessions.touch(connection, request.session.id, now)
        return message

    async def _withhold(self, message: Message) -> None:
        """What was refused once is refused with every turn that shows it again: keep it from the model."""
        async with self._database.write() as connection:
            await message_log.withhold(connection, message.id)

    def _cannot_see(self, request: Request) -> Event:
        kind = request.incoming.attachments[0].kind
        key = f"cannot-{kind}"
        text = request.say(key if key in request.say else "cannot-other")
        return Text(text, done=True, record=self._utterance(request, text))

    async def _prompt(self, request: Request, message: Message, recall: Recall, share: float) -> ModelRequest:
        """The whole window, or only a share of it, without recollections, where the whole did not fit."""
        async with self._database.read() as connection:
            count = await message_log.count(connection, message.session_id, before=message.id)
            fallen = prompt.window_start(count, self._settings.window, self._settings.window_max)
            shown = round((count - fallen) * share)
            history = await message_log.newest(connection, message.session_id, shown, before=message.id)
        earlier = await self._memory.summary_of(request.session.id) if shown < count else ""
        situation = prompt.Situation(
            name=self._settings.name,
            now=self._local_time(),
            is_private=request.audience.is_private,
            history=history,
            newest=message,
            recall=recall if share == 1 else replace(recall, recollections=()),
            earlier=earlier,
        )
        specs = [tool.spec for tool in self._tools.values()]
        built = prompt.build(situation, await self._model.traits(), specs)
        return replace(built, user_key=f"user-{request.user.id}")

    async def _loop(
        self, request: Request, message: Message, model_request: ModelRequest, answer: _Answer, stop: asyncio.Event
    ) -> AsyncGenerator[str, None]:
        for round_number in range(MAX_ROUNDS + 1):
            if round_number == MAX_ROUNDS:
                model_request = replace(model_request, tools=())
            finished: Finished | None = None
            async with aclosing(_until_stopped(self._model.stream(model_request), stop)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        yield answer.add(event.text)
                    else:
                        finished = event
            if finished is None:
                answer.was_stopped = True
                return
            answer.model = finished.model
            answer.stop = finished.stop
            answer.usage.append(_figures(finished))
            if finished.stop is not StopReason.TOOLS:
                return
            results = await self._run_tools(request, message, finished.calls, answer)
            if answer.text and not answer.text.endswith("\n\n"):
                yield answer.add("\n\n")
            model_request = _continued(model_request, finished, results)

    async def _run_tools(
        self, request: Request, message: Message, calls: Sequence[ToolCall], answer: _Answer
    ) -> list[ToolResult]:
        results: list[ToolResult] = []
        for call in calls:
            outcome = await self._run_tool(request, message, call)
            answer.cards += outcome.cards
            # what stays in the history is a stub: the call's words are not kept a second time
            answer.calls.append({"tool": call.name, "outcome": "failed" if outcome.is_error else "done"})
            results.append(ToolResult(call.id, call.name, outcome.text[:RESULT_LENGTH], outcome.is_error))
        return results

    async def _run_tool(self, request: Request, message: Message, call: ToolCall) -> Outcome:
        tool = self._tools.get(call.name)
        if tool is None:
            return Outcome(f"There is no tool {call.name}.", is_error=True)
        try:
            async with asyncio.timeout(TOOL_SECONDS):
                return await tool.run(request, call.input, message.id)
        except TimeoutError:
            return Outcome("The tool took too long. Nothing is known to have happened.", is_error=True)
        except Exception:
            # the model gets a plain sentence, never our paths or SQL; the turn goes on
            log.exception("turn.tool_failed", tool=call.name)
            return Outcome("The tool failed.", is_error=True)

    def _conclude(self, request: Request, answer: _Answer, recall: Recall, started: float) -> list[Event]:
        text = answer.text.strip()
        say = request.say
        if answer.stop is StopReason.REFUSED:
            return [Notice(say("model-refused")), *answer.cards]
        if answer.failure is not None:
            answer.cards.append(answer.failure)
            if not text:
                return [*answer.cards]
            text = f"{text}\n\n_{say('answer-broken')}_"
        elif answer.was_stopped:
            text = f"{text}\n\n_{say('stopped')}_" if text else say("stopped")
        elif answer.stop is StopReason.LENGTH:
            text = f"{text}\n\n_{say('answer-cut')}_"
        elif not text:
            text = say("done") if answer.cards else say("answer-empty")
        utterance = replace(
            self._utterance(request, text),
            blocks=answer.calls or None,
            duration_ms=round((time.monotonic() - started) * 1000),
            memory_trace={**recall.trace, "usage": answer.usage},
            model=answer.model or None,
        )
        return [Text(text, done=True, record=utterance), *answer.cards]

    def _utterance(self, request: Request, text: str) -> Utterance:
        return Utterance(
            session_id=request.session.id,
            role="assistant",
            speaker=self._settings.name,
            text=text,
            inbox_id=request.incoming.inbox_ids[0],
        )

    def _local_time(self) -> datetime:
        return self._clock.now().astimezone(ZoneInfo(self._settings.timezone))


def _continued(request: ModelRequest, finished: Finished, results: list[ToolResult]) -> ModelRequest:
    said: list[TextBlock | ToolCall] = [TextBlock(finished.text)] if finished.text else []
    assistant = ChatMessage("assistant", (*said, *finished.calls), raw=finished.raw)
    return replace(request, messages=(*request.messages, assistant, ChatMessage("user", tuple(results))))


def _figures(finished: Finished) -> dict[str, int]:
    usage = finished.usage
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    }


async def _until_stopped(
    events: AsyncGenerator[ModelEvent, None], stop: asyncio.Event
) -> AsyncGenerator[ModelEvent, None]:
    """The events up to a stop; the generation is closed either way."""
    stopping = asyncio.ensure_future(stop.wait())
    step: asyncio.Future[ModelEvent | None] | None = None
    try:
        while True:
            step = asyncio.ensure_future(anext(events, None))
            await asyncio.wait({step, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done() or (event := step.result()) is None:
                return
            yield event
    finally:
        stopping.cancel()
        if step is not None and not step.done():
            step.cancel()
            with suppress(asyncio.CancelledError, ModelError):
                await step
        await events.aclose()
