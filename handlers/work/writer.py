"""Writes and revises a draft by asking the model directly: for `/draft WHAT`, whatever tools the model can call.

Rule: the model sees the request and the version that is open, nothing else of the chat.
"""

import asyncio
from dataclasses import dataclass

import structlog

from handlers import failures
from handlers.prompt import fence
from handlers.remembering.facts import shorten
from handlers.running import Running
from handlers.types import Button, Notice, Reply, Request, UserError
from handlers.work import draft
from handlers.work.works import Work, Works
from memory.ports import (
    Account,
    ChatMessage,
    Finished,
    LanguageModel,
    ModelError,
    ModelRequest,
    Purpose,
    StopReason,
    TextBlock,
    complete,
)

log = structlog.get_logger(__name__)

LONGEST_REQUEST = 8000
MAX_TOKENS = 4096

TASK = """\
You write one text for somebody: a mail, a post, a list, whatever they ask for. Answer with nothing but that text: \
no remark before or after it, no code fence around it. Write in the language of the request unless it names another, \
with Markdown only where it helps. At most {longest} characters."""

REVISE = """
The text as it stands is there already. Change what the newest request asks for and leave the rest word for word; \
answer with the whole text."""


@dataclass(frozen=True, slots=True)
class Writer:
    """What a draft is written with."""

    works: Works
    model: LanguageModel
    running: Running

    async def write(self, request: Request, what: str, quote: str = "") -> Reply:
        """The next version of the open draft, or the first of a new one. `quote` is the message it is about."""
        if len(what) > LONGEST_REQUEST:
            raise UserError(request.say("draft-request-too-long", length=len(what), longest=LONGEST_REQUEST))
        async with self.running.turn(request.incoming.place) as stop:
            work = await self.works.load(request)
            work.check_theirs()
            prompt = await self._prompt(request, work, what, quote)
            try:
                finished = await self._ask(prompt, stop)
            except ModelError as error:
                log.warning("writer.model_failed", failure=error.failure, detail=error.detail)
                data = {"what": what, "quote": quote}
                again = Button(request.say("try-again"), "write_draft_again", data, waits=True)
                yield failures.offer(request.say, error.failure, again)
                return
            text = _text_of(request, finished)
            draft.put(request, work, text, title="" if work.holds(draft.TOOL) else shorten(what, draft.TITLE_LENGTH))
            for event in work.events():
                yield event
            if finished is not None and finished.stop is StopReason.LENGTH:
                yield Notice(request.say("answer-cut"))

    async def _prompt(self, request: Request, work: Work, what: str, quote: str) -> ModelRequest:
        task = TASK.format(longest=draft.LONGEST)
        asked = f"{fence('message that this is about', quote)}\n\n{what}" if quote else what
        messages = [ChatMessage("user", (TextBlock(asked),))]
        text = (await draft.versions(work)).get(draft.newest(work)) if work.holds(draft.TOOL) else None
        if work.state is not None and text is not None:
            task += REVISE
            before = ChatMessage("user", (TextBlock(work.state.title),)), ChatMessage("assistant", (TextBlock(text),))
            messages = [*before, *messages]
        traits = await self.model.traits()
        return ModelRequest(
            system=(TextBlock(task),),
            messages=tuple(messages),
            max_tokens=min(MAX_TOKENS, traits.context_tokens // 2),
            user_key=f"user-{request.user.id}",
            account=Account(Purpose.CHAT, request.user.id, request.session.id),
        )

    async def _ask(self, prompt: ModelRequest, stop: asyncio.Event) -> Finished | None:
        """The model's answer; None after a stop. Raises `ModelError`."""
        asking = asyncio.ensure_future(complete(self.model, prompt))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            stopping.cancel()
            await asyncio.gather(asking, stopping, return_exceptions=True)


def _text_of(request: Request, finished: Finished | None) -> str:
    if finished is None:
        raise UserError(request.say("stopped"))
    if finished.stop is StopReason.REFUSED:
        raise UserError(request.say("failed-refused"))
    if not finished.text.strip():
        raise UserError(request.say("answer-empty"))
    return finished.text
