"""Learning summaries: sessions that moved on are condensed, one at a time, off the path of any answer.

Rule: the log is the queue. The watermark advances only with the summary, in one transaction; a failure is kept in
sight and backs off, and never stands in the way of another session.
"""

import secrets
from dataclasses import replace

import structlog

from memory import telemetry
from memory.instants import to_ms
from memory.kinds.summaries import store
from memory.kinds.summaries.condense import AnswerError, condense
from memory.kinds.summaries.extract import LATEST, extract
from memory.kinds.summaries.store import KIND, Due
from memory.kinds.summaries.summary import EXTRACTIVE, Condensed, Summary, kept_title
from memory.kinds.summaries.transcript import Entry, entries, first_words, is_exchange
from memory.ports import Clock, Embedder, Failure, LanguageModel, ModelError, Tier
from memory.storage import leases
from memory.storage import log as message_log
from memory.storage.database import Database
from memory.storage.leases import Claim
from memory.types import Message

_PATIENCE = 3
"""Attempts after which an answer that cannot be used is replaced by the person's own sentences."""
_HOPELESS = frozenset((Failure.REFUSED, Failure.BAD_REQUEST, Failure.TOO_LONG))
_UNASKED = frozenset((Failure.NO_MODEL, Failure.BUDGET))

log = structlog.get_logger(__name__)


class Summaries:
    """The kind of memory that keeps one condensed record a session."""

    def __init__(self, database: Database, clock: Clock, embedder: Embedder, model: LanguageModel) -> None:
        self._database = database
        self._clock = clock
        self._embedder = embedder
        self._model = model

    async def start(self) -> None:
        """Give back what a dead process had claimed."""
        async with self._database.write() as connection:
            await leases.release_all(connection, KIND)

    async def learn(self, *, only: int | None = None) -> int:
        """Sweep once over all sessions that are due, or over this one; return how many were learned."""
        async with self._database.search() as connection:
            sessions = await store.due(connection, self._now())
        learned = 0
        for session in sessions:
            if only not in (None, session.session_id):
                continue
            claimed = await self._claim(session)
            if claimed is not None:
                learned += await self._attempt(session, claimed)
        return learned

    async def next_retry(self, since: int) -> int | None:
        async with self._database.search() as connection:
            return await leases.next_retry(connection, KIND, since)

    async def failures(self) -> list[str]:
        async with self._database.search() as connection:
            return await leases.failures(connection, KIND)

    async def _claim(self, session: Due) -> Claim | None:
        now = self._now()
        token = secrets.token_hex(8)
        async with self._database.write() as connection:
            return await leases.claim(
                connection,
                self._database,
                KIND,
                session.session_id,
                watermark=session.watermark,
                token=token,
                now=now,
            )

    async def _attempt(self, session: Due, claimed: Claim) -> bool:
        try:
            return await self._learn(session, claimed)
        except Exception as error:  # noqa: BLE001 - a session that cannot be learned must not stop the others
            await self._failed(session, claimed, error)
            return False

    async def _learn(self, session: Due, claimed: Claim) -> bool:
        messages, before = await self._material(session)
        lines = entries(messages)
        answered = max((message.id for message in messages if message.role == "assistant"), default=session.watermark)
        made = None
        if lines and (before is not None or is_exchange(messages)):
            made = await self._condense(session, lines, before, claimed.attempts)
        async with self._database.write() as connection:
            if not await leases.finish(connection, claimed, answered):
                log.info("summaries.lease_lost", session=session.session_id)
                return False
            if made is None:  # small talk only: nothing to remember but how it began
                await store.entitle(connection, session.session_id, kept_title(first_words(lines)))
                return False
            await store.save(connection, self._database, session, made, watermark=answered, now=self._now())
            by = "extract" if made.made_by == EXTRACTIVE else "model"
            event = telemetry.Summarised(session_id=session.session_id, by=by, messages=len(messages))
            await telemetry.record(connection, event, self._now())
        return True

    async def _material(self, session: Due) -> tuple[list[Message], Summary | None]:
        """What is to be read: the new messages on top of the summary so far, or the whole session."""
        async with self._database.search() as connection:
            before = await store.load(connection, session.session_id)
        if before is None or before.watermark != session.watermark or before.made_by == EXTRACTIVE:
            is_read_whole = before is None or await self._can_condense()
            return await (self._answered(session, 0) if is_read_whole else self._latest(session)), None
        return await self._answered(session, session.watermark), before.summary

    async def _can_condense(self) -> bool:
        """Whether a model does it; one that cannot be asked now can later."""
        try:
            return (await self._model.traits(Tier.SMALL)).can_follow_schema
        except ModelError as error:
            return error.failure not in _UNASKED

    async def _answered(self, session: Due, since: int) -> list[Message]:
        async with self._database.search() as connection:
            return _up_to_an_answer(await message_log.since(connection, session.session_id, since))

    async def _latest(self, session: Due) -> list[Message]:
        async with self._database.search() as connection:
            return _up_to_an_answer(await message_log.newest(connection, session.session_id, LATEST))

    async def _condense(
        self, session: Due, lines: list[Entry], before: Summary | None, attempts: int
    ) -> Condensed | None:
        """By the model where it can; else, and where it keeps failing at this session, by the person's sentences."""
        try:
            traits = await self._model.traits(Tier.SMALL)
            if traits.can_follow_schema:
                made = await condense(self._model, traits, lines, before)
                return replace(made, title=made.title or kept_title(first_words(lines)))
        except AnswerError:
            if attempts < _PATIENCE:
                raise
        except ModelError as error:
            is_hopeless = error.failure in _HOPELESS and attempts >= _PATIENCE
            if not (is_hopeless or error.failure in _UNASKED):
                raise
        said = lines if before is None else entries(await self._latest(session))
        return await extract(said, self._embedder)

    async def _failed(self, session: Due, claimed: Claim, error: Exception) -> None:
        name = f"{type(error).__name__}.{error.failure}" if isinstance(error, ModelError) else type(error).__name__
        after = error.retry_after if isinstance(error, ModelError) else None
        wait = leases.retry_ms(claimed.attempts, after)
        log.warning("summaries.failed", session=session.session_id, error=name, attempts=claimed.attempts)
        async with self._database.write() as connection:
            await leases.fail(connection, claimed, name, self._now() + wait)
            event = telemetry.JobFailed(
                session_id=session.session_id, job="summaries", error=name, attempts=claimed.attempts
            )
            await telemetry.record(connection, event, self._now())

    def _now(self) -> int:
        return to_ms(self._clock.now())


def _up_to_an_answer(messages: list[Message]) -> list[Message]:
    """A question that is being answered right now waits for the next round."""
    last = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[: last + 1]
