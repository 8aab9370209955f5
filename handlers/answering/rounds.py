"""The model and its tools, round by round, until it has answered: a step limit, a stop at any time, one status line."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

from handlers.answering import calls
from handlers.answering.calls import Made, Outcome, Tool
from handlers.answering.citing import Citations
from handlers.answering.past import Talk
from handlers.model_choice import Choice
from handlers.types import Card, Request, Status, Text
from handlers.work.works import Work
from memory.ports import (
    ChatMessage,
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

MAX_ROUNDS = 6  # of tools in one answer
RESULT_LENGTH = 8000
STATUS_SECONDS = 1.5  # of tools at work before the person is told


@dataclass(slots=True)
class Answer:
    """What one turn has come to so far."""

    work: Work
    text: str = ""
    model: str = ""
    cited: Citations = field(default_factory=Citations)
    """What it says that it used."""
    made: Made = field(default_factory=Made)
    stop: StopReason = StopReason.END
    was_stopped: bool = False
    finished: Finished | None = None
    """How the newest round of the model ended."""
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    """What the calls of the newest round came to."""
    failure: Card | None = None
    failed: str = ""
    """Why, as a code."""
    shortened: int = 0
    """How often the prompt was too long and tried shorter."""
    usage: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    started: float = field(default_factory=time.monotonic)
    first_token_ms: int | None = None
    nano_usd: int | None = None
    """What the rounds cost so far, in 1e-9 US dollars; None where no price is known."""
    choice: Choice | None = None
    """Which model was chosen, and why."""
    stand_in: str = ""
    """Who answered in the place of a provider that does not."""
    missing: str = ""
    """The model that should have answered, where the person is to be told that it is not to be had."""
    id: str = ""
    """What the provider calls the newest round."""
    cache_miss: str = ""
    """Why the provider did not find the beginning of the prompt again, where it says so."""
    talk: Talk | None = None
    """What the model was asked."""
    condensed: Finished | None = None
    """The newest round that came with a compaction."""

    @property
    def has_begun(self) -> bool:
        """Something was shown or done: it must not be done twice."""
        return bool(self.text or self.made.stubs)

    def add(self, text: str) -> Text:
        """Append a piece; pieces from before and after a tool call are paragraphs of their own."""
        self.text += text
        if self.first_token_ms is None:
            self.first_token_ms = self.duration_ms
        return Text(text)

    @property
    def duration_ms(self) -> int:
        """How long the person has waited."""
        return round((time.monotonic() - self.started) * 1000)


@dataclass(frozen=True, slots=True)
class Rounds:
    """What one answer is made with."""

    model: LanguageModel
    tools: dict[str, Tool]
    request: Request
    message_id: int
    """The message that is answered."""
    stop: asyncio.Event

    async def run(self, prompt: ModelRequest, answer: Answer) -> AsyncGenerator[Text | Status, None]:
        """Fill the answer; yield it as it grows. Raises `ModelError`."""
        for round_number in range(MAX_ROUNDS + 1):
            if round_number == MAX_ROUNDS:
                prompt = replace(prompt, must_answer=True)
            async with aclosing(self._ask(prompt, answer)) as pieces:
                async for piece in pieces:
                    yield piece
            finished = answer.finished
            if finished is None or finished.stop is not StopReason.TOOLS:
                return
            async with aclosing(self._run_tools(finished.calls, answer)) as steps:
                async for step in steps:
                    yield step
            if answer.was_stopped:
                return
            if answer.text and not answer.text.endswith("\n\n"):
                yield answer.add("\n\n")
            prompt = _continued(prompt, finished, answer.outcomes)

    async def _ask(self, prompt: ModelRequest, answer: Answer) -> AsyncGenerator[Text, None]:
        """One round of the model; `answer.finished` is its end, None after a stop."""
        answer.finished = None
        async with aclosing(_until_stopped(self.model.stream(prompt), self.stop)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    said = answer.cited.read(event.text)
                else:
                    answer.finished, said = event, answer.cited.finish()
                if said:
                    yield answer.add(said)
        finished = answer.finished
        if finished is None:
            answer.was_stopped = True
            return
        answer.model = finished.model
        answer.stop = finished.stop
        answer.stand_in = finished.stand_in or answer.stand_in
        answer.missing = finished.missing or answer.missing
        answer.condensed = finished if finished.compacted else answer.condensed
        if not answer.usage:
            answer.cache_miss = finished.cache_miss
        answer.id = finished.id
        answer.usage.append(_figures(finished))
        if finished.nano_usd is not None:
            answer.nano_usd = (answer.nano_usd or 0) + finished.nano_usd

    async def _run_tools(self, wanted: Sequence[ToolCall], answer: Answer) -> AsyncGenerator[Status, None]:
        """Fill `answer.outcomes`; yield one line for the person where it takes long."""
        running = asyncio.ensure_future(
            calls.run_all(self.tools, self.request, answer.work, self.message_id, wanted, answer.made)
        )
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({running, stopping}, timeout=STATUS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not running.done() and not self.stop.is_set():
                yield Status(self.request.say("status-busy"))
                await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                answer.outcomes = running.result()
            else:
                answer.was_stopped = True
        finally:
            stopping.cancel()
            running.cancel()
            await asyncio.gather(running, stopping, return_exceptions=True)


def _continued(request: ModelRequest, finished: Finished, outcomes: list[Outcome]) -> ModelRequest:
    results = [
        ToolResult(call.id, call.name, outcome.text[:RESULT_LENGTH], outcome.is_error)
        for call, outcome in zip(finished.calls, outcomes, strict=True)
    ]
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
        "cache_write_1h": usage.cache_write_1h,
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
