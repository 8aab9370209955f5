"""A chat turn: record, recall, answer with tools, record. The straight line that every message takes."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from handlers import closing, failures, prompt, utterances
from handlers.answering.accounting import account
from handlers.answering.calls import Tool
from handlers.answering.past import Before, MessageTooLongError, Past
from handlers.answering.rounds import Answer, Rounds
from handlers.answering.spending import Spending
from handlers.model_choice import Asked, Choice, Routing, choose
from handlers.remembering.questions import question
from handlers.running import Running
from handlers.types import Event, Happened, Notice, Reply, Request, Text
from handlers.work.works import Work, Works
from memory.instants import to_ms
from memory.memory import Memory
from memory.ports import (
    Account,
    Clock,
    Failure,
    LanguageModel,
    ModelError,
    ModelRequest,
    ModelTraits,
    Purpose,
    StopReason,
    Tier,
)
from memory.storage import instructions, sessions, working
from memory.storage import log as message_log
from memory.storage.database import Database
from memory.telemetry import ModelAutoRouted, code
from memory.types import Message, Recall, Utterance

log = structlog.get_logger(__name__)

_BYTES_A_TOKEN = 3


@dataclass(frozen=True, slots=True)
class TurnSettings:
    name: str
    timezone: str
    trivial_to_small: bool = False
    """Greetings and thanks go to the small model."""


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
        works: Works,
        running: Running,
        spending: Spending,
        past: Past,
        settings: TurnSettings,
    ) -> None:
        self._database = database
        self._clock = clock
        self._memory = memory
        self._model = model
        self._tools = {tool.spec.name: tool for tool in tools}
        self._works = works
        self._running = running
        self._spending = spending
        self._past = past
        self._settings = settings

    async def __call__(self, request: Request) -> Reply:
        """Answer a person's message."""
        if not request.incoming.text and request.incoming.attachments:
            await self._record(request)
            yield self._cannot_see(request)
            return
        async with (
            self._running.turn(request.incoming.place) as stop,
            self._recalling(request, request.incoming.text) as recall,
        ):
            message = await self._record(request)
            async with aclosing(self._reply(request, message, recall, stop, is_new=True)) as reply:
                async for event in reply:
                    yield event

    async def answer(self, request: Request, message: Message) -> Reply:
        """Answer a message of the log; once more, where it has been answered before."""
        # the tap is the person's, the words need not be: what was forwarded once is trusted no more the second time
        request = replace(request, incoming=replace(request.incoming, origin=message.origin))
        async with (
            self._running.turn(request.incoming.place) as stop,
            self._recalling(request, message.text) as recall,
            aclosing(self._reply(request, message, recall, stop, is_new=False)) as reply,
        ):
            async for event in reply:
                yield event

    async def _reply(
        self, request: Request, message: Message, recall: "asyncio.Task[Recall]", stop: asyncio.Event, *, is_new: bool
    ) -> Reply:
        """The answer, or why there is none now."""
        told = await self._spending.refuse(request, message.id, is_new=is_new)
        if told is not None:
            for event in told:
                yield event
            return
        async with aclosing(self._answer(request, message, recall, stop)) as answer:
            async for event in answer:
                yield event

    @asynccontextmanager
    async def _recalling(self, request: Request, text: str) -> AsyncGenerator["asyncio.Task[Recall]"]:
        """What bears on a text, looked for while the rest of the turn is made ready."""
        task = asyncio.create_task(self._memory.recall(request.audience, request.session.id, text))
        try:
            yield task
        finally:
            task.cancel()

    async def _answer(
        self, request: Request, message: Message, recalling: "asyncio.Task[Recall]", stop: asyncio.Event
    ) -> Reply:
        answer = Answer(await self._works.load(request))
        before = await self._past.look(message)
        situation = await self._situation(request, message, before, recalling, answer.work)
        recall = situation.recall
        answer.choice = self._choose(request, situation, answer.work)
        async with aclosing(self._ask(request, before, situation, answer, stop)) as events:
            async for event in events:
                yield event
        if answer.stop is StopReason.REFUSED:
            await self._withhold(message)
        await self._count_turn(request, message, answer)
        duration_ms = answer.duration_ms
        for event in self._conclude(request, answer, recall, duration_ms):
            yield event
        for event in (*answer.work.events(), *account(request, answer, recall, duration_ms)):
            yield event
        for event in (await self._keep_to(request, answer.choice), *await self._spending.warn(request)):
            yield event
        if answer.failure is None and answer.work.state is None:
            for event in await question(self._memory, request):
                yield event

    async def _ask(
        self, request: Request, before: Before, situation: prompt.Situation, answer: Answer, stop: asyncio.Event
    ) -> Reply:
        """Ask the model; once more, with less in it, where the prompt was too long. Failures end in the answer."""
        newest = situation.newest
        try:
            assert answer.choice is not None, "the model is chosen before it is asked"
            build = partial(self._prompt, request, answer.choice)
            answer.talk = talk = await self._past.open(before, situation, answer.choice.tier, build)
            while True:
                try:
                    rounds = Rounds(self._model, self._tools, request, newest.id, stop)
                    async with aclosing(rounds.run(talk.prompt, answer)) as events:
                        async for event in events:
                            yield event
                    break
                except ModelError as error:
                    if error.failure is not Failure.TOO_LONG or answer.has_begun or answer.shortened:
                        raise
                    log.warning("turn.too_long", detail=error.detail)
                    answer.talk = talk = await self._past.shorten(talk, error)
                    answer.shortened += 1
            if answer.condensed is not None:
                await self._past.keep(talk, answer.condensed)
        except MessageTooLongError as error:
            answer.failed, answer.failure = Failure.TOO_LONG, failures.too_long(request.say, newest.text, error.fits)
            await self._withhold(newest)
        except ModelError as error:
            log.warning("turn.model_failed", failure=error.failure, detail=error.detail)
            answer.failed, answer.failure = error.failure, failures.card(request.say, error, newest.id)

    def _choose(self, request: Request, situation: prompt.Situation, work: Work) -> Choice:
        """Which model answers, by what is asked and by what is in whose cache."""
        session = request.session
        documents = sum(item.kind == "document" for item in request.incoming.attachments)
        history = sum(len(message.text.encode()) for message in situation.history)
        return choose(
            Asked(situation.newest.text, documents, work.has_failed),
            Routing(
                pinned=Tier(session.pinned_tier) if session.pinned_tier else None,
                last=Tier(session.routed_tier) if session.routed_tier else None,
                history_tokens=history // _BYTES_A_TOKEN,
                trivial_to_small=self._settings.trivial_to_small,
            ),
        )

    async def _keep_to(self, request: Request, choice: Choice | None) -> Happened:
        """Remember to which model the matter in hand was given."""
        assert choice is not None, "the first thing that a turn does"
        session = request.session
        if choice.matter != (session.routed_tier or Tier.DEFAULT):
            async with self._database.write() as connection:
                await sessions.give_to(connection, session.id, choice.matter)
        return Happened(
            ModelAutoRouted(
                user_id=request.user.id,
                session_id=session.id,
                selected_model=code(await self._name_of(choice.tier)),
                tier=choice.tier,
                reason=choice.reason,
                confidence=round(choice.confidence, 2),
            )
        )

    async def _name_of(self, tier: Tier) -> str:
        try:
            return (await self._model.traits(tier)).name
        except ModelError:
            return "unknown"

    async def _count_turn(self, request: Request, message: Message, answer: Answer) -> None:
        """See whether this turn touched the open work; one too many that did not closes it."""
        answer.work.note_outcome(failed=any(block["outcome"] == "failed" for block in answer.made.stubs))
        state = answer.work.state
        if state is None or answer.work.is_touched or answer.failure is not None:
            return
        shown = await answer.work.shown()
        newest = shown[0].text if shown else ""
        if (
            closing.share_words(message.text, f"{state.title} {newest}")
            or await self._is_reply(request)
            or await self._memory.is_near(message.text, state.title)  # working output is never embedded
        ):
            answer.work.touch()
        answer.work.end_turn()

    async def _is_reply(self, request: Request) -> bool:
        ref = request.incoming.reply_to
        if not ref:
            return False
        async with self._database.read() as connection:
            return await working.shows(connection, request.session.id, ref)

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
        async with self._database.jot() as connection:
            message = await message_log.append(connection, utterance, now)
            await sessions.touch(connection, request.session.id, now)
        return message

    async def _withhold(self, message: Message) -> None:
        """What was refused once is refused with every turn that shows it again: keep it from the model."""
        async with self._database.write() as connection:
            await message_log.withhold(connection, message.id)

    async def _note(self, request: Request, work: Work) -> str:
        """What the model is told of the open work."""
        if work.state is None:
            return ""
        async with self._database.read() as connection:
            return closing.note(work.state, await working.count(connection, request.session.id))

    def _cannot_see(self, request: Request) -> Event:
        kind = request.incoming.attachments[0].kind
        key = f"cannot-{kind}"
        text = request.say(key if key in request.say else "cannot-other")
        return Text(text, done=True, record=self._utterance(request, text))

    async def _situation(
        self, request: Request, message: Message, before: Before, recalling: "asyncio.Task[Recall]", work: Work
    ) -> prompt.Situation:
        """Everything there is to tell, with the window of what was said before."""
        async with self._database.read() as connection:
            # what a person set for themselves is nobody else's business: a group has the persona alone
            own = instructions.subject_of(request.user.id) if request.audience.is_private else ""
            standing = await instructions.standing(connection, (instructions.PERSONA, own))
        earlier = "" if before.is_all else await self._memory.summary_of(request.session.id)
        return prompt.Situation(
            name=self._settings.name,
            now=self._local_time(request),
            is_private=request.audience.is_private,
            history=before.window,
            newest=message,
            earlier=earlier,
            work=await self._note(request, work),
            persona=standing.get(instructions.PERSONA, ""),
            instructions=standing.get(own, ""),
            recall=await recalling,
        )

    def _prompt(
        self, request: Request, choice: Choice, situation: prompt.Situation, traits: ModelTraits
    ) -> ModelRequest:
        specs = [tool.spec for tool in self._tools.values() if choice.tier in tool.tiers]
        built = prompt.build(situation, traits, specs)
        charged = Account(Purpose.CHAT, request.user.id, request.session.id)
        return replace(built, tier=choice.tier, user_key=f"user-{request.user.id}", account=charged)

    def _conclude(self, request: Request, answer: Answer, recall: Recall, duration_ms: int) -> list[Event]:
        text = answer.text.strip()
        say = request.say
        if answer.stop is StopReason.REFUSED:
            return [Notice(say("model-refused")), *answer.made.cards]
        if answer.failure is not None:
            answer.made.cards.append(answer.failure)
            if not answer.has_begun:
                return [*answer.made.cards]
            # what its tools did stays in the history, so that another try does not do it again unawares
            text = f"{text}\n\n_{say('answer-broken')}_".strip()
        elif answer.was_stopped:
            text = f"{text}\n\n_{say('stopped')}_" if text else say("stopped")
        elif answer.stop is StopReason.LENGTH:
            text = f"{text}\n\n_{say('answer-cut')}_"
        elif not text:
            text = say("done") if answer.made.cards or answer.work.shows_something else say("answer-empty")
        utterance = replace(
            self._utterance(request, text),
            blocks=answer.made.stubs or None,
            duration_ms=duration_ms,
            memory_trace={**recall.trace, **_trace(answer)},
            model=answer.model or None,
        )
        if answer.stand_in:  # said, but no part of what was answered
            text = f"{text}\n\n_{say('answered-by', name=answer.stand_in)}_"
        elif answer.missing:
            text = f"{text}\n\n_{say('model-missing', name=answer.missing, other=answer.model)}_"
        return [Text(text, done=True, record=utterance), *answer.made.cards]

    def _utterance(self, request: Request, text: str) -> Utterance:
        return Utterance(
            session_id=request.session.id,
            role="assistant",
            speaker=self._settings.name,
            text=text,
            inbox_id=request.incoming.inbox_ids[0],
        )

    def _local_time(self, request: Request) -> datetime:
        return self._clock.now().astimezone(ZoneInfo(request.user.timezone or self._settings.timezone))


def _trace(answer: Answer) -> dict[str, Any]:
    """Figures and codes of an answer, for the log."""
    trace: dict[str, Any] = {"usage": answer.usage, "nano_usd": answer.nano_usd}
    trace["cited"] = {"observations": answer.cited.observations, "messages": answer.cited.messages}
    if answer.talk is not None:
        trace["prefix"] = {**answer.talk.prefix, "answer": answer.id}
    if (choice := answer.choice) is not None:
        figures = {"kind": choice.kind, "tier": choice.tier, "confidence": round(choice.confidence, 2)}
        trace["routing"] = {**figures, "reason": choice.reason}
    return trace
