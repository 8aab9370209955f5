"""Learning observations: what people typed since the watermark, a few messages at a time, off the path of any answer.

Rule: only what its author typed is read; a batch's rows and its watermark are one transaction; a failure backs off and
stands in nobody's way; without a model that can follow a schema this is off, and says so.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import telemetry
from memory.instants import from_ms, to_ms
from memory.kinds.observations.extract import AnswerError, Extracted, Said, extract, find_quote, worth_reading
from memory.kinds.observations.keeping import (
    Budget,
    Kept,
    Neighbours,
    Wish,
    is_one_person_or_thing,
    keep_all,
)
from memory.kinds.observations.observation import Content, Trigger
from memory.kinds.observations.prompt import PROMPT_VERSION
from memory.ports import Account, Clock, Failure, LanguageModel, ModelError, Purpose, Tier
from memory.storage import leases
from memory.storage.database import Database
from memory.storage.leases import Claim
from memory.storage.tables import learning, messages, sessions, telemetry_events, users
from memory.types import Health, MemorySettings, Origin

KIND = "observations"

_BATCH = 6
"""Messages of one call."""
_BATCH_CHARACTERS = 6000
_READY = 4
"""New messages that are read at once; fewer wait until the chat is quiet."""
_PATIENCE = 3
"""Attempts after which messages are read one by one and those that cannot be read are passed over."""
_DOUBTS_A_BATCH = 4
State = Literal["off", "pending", "done", "refused", "failed"]
"""refused: the model proposed something, and code took none of it."""
_HOPELESS = frozenset((Failure.REFUSED, Failure.BAD_REQUEST, Failure.TOO_LONG))
_FOR_ALL = frozenset((Failure.BUDGET, Failure.AUTH, Failure.SPEND, Failure.NO_MODEL, Failure.UNREACHABLE))
"""Failures that every other session would meet, too."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Due:
    """A session with typed messages that were not read yet."""

    session_id: int
    owner: str
    watermark: int
    until: int
    """The last answer: what came after it waits for its own."""
    count: int
    newest_at: int
    is_free: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """A batch as it was read: to be written, and up to which message."""

    lines: tuple[Said, ...]
    extracted: Extracted
    wishes: tuple[Wish, ...]
    until: int
    ms: int


class Observing:
    """The kind of memory that notices things."""

    def __init__(
        self, database: Database, clock: Clock, model: LanguageModel, neighbours: Neighbours, settings: MemorySettings
    ) -> None:
        self._database = database
        self._clock = clock
        self._model = model
        self._neighbours = neighbours
        self._settings = settings
        self.is_off: str | None = None
        """Why nothing is noticed: the name of the model that cannot; None while it works."""
        self._resume_at = 0
        """After a failure that every session would meet."""

    async def start(self) -> None:
        """Give back what a dead process had claimed."""
        async with self._database.write() as connection:
            await leases.release_all(connection, KIND)

    async def learn(self) -> int:
        """Sweep once over all sessions that are due; return how many observations were made or proved."""
        if self._now() < self._resume_at or not await self._is_able():
            return 0
        noticed = 0
        for session in await self._due():
            claimed = await self._claim(session)
            if claimed is None:
                continue
            try:
                noticed += await self._learn(session, claimed)
            except Exception as error:  # noqa: BLE001 - a session that cannot be read must not stop the others
                await self._failed(session, claimed, error)
                if isinstance(error, ModelError) and error.failure in _FOR_ALL:
                    self._resume_at = self._now() + leases.retry_ms(claimed.attempts, error.retry_after)
                    break
        return noticed

    async def next_due(self, since: int) -> int | None:
        """When there is something to do without anybody having written: a quiet chat, or a retry later than `since`."""
        if self.is_off is not None:
            return None
        now = self._now()
        async with self._database.search() as connection:
            retry = await leases.next_retry(connection, KIND, since)
            waiting = [self._ready_at(each) for each in await _pending(connection, now) if each.is_free]
        due = min((each for each in (retry, *waiting) if each is not None), default=None)
        return None if due is None else max(due, self._resume_at)

    async def failures(self) -> list[str]:
        async with self._database.search() as connection:
            return await leases.failures(connection, KIND)

    async def health(self) -> Health:
        """One line: off, in step, or what fails."""
        if not await self._is_able():
            remedy = "Facts and summaries work. Set up a model that can follow a schema to have things noticed."
            return Health("observations", ok=True, detail=f"off: {self.is_off} cannot do it", remedy=remedy)
        failures = sorted(await self.failures())
        if failures:
            detail = f"{len(failures)} sessions: {', '.join(dict.fromkeys(failures))}"
            remedy = "They are tried again within the hour. `merk doctor` checks the model."
            return Health("observations", ok=False, detail=detail, remedy=remedy)
        return Health.following("observations")

    async def state_of(self, session_id: int, message_id: int) -> State:
        """How far a message was looked through."""
        async with self._database.search() as connection:
            query = sa.select(learning.c.watermark, learning.c.last_error).where(leases.of(KIND, session_id))
            row = (await connection.execute(query)).first()
            is_done = row is not None and row[0] >= message_id
            refused = is_done and await _was_refused(connection, session_id, message_id)
        if is_done:
            return "refused" if refused else "done"
        if row is not None and row[1] is not None:
            return "failed"
        return "pending" if self.is_off is None else "off"

    async def _is_able(self) -> bool:
        try:
            traits = await self._model.traits(Tier.SMALL)
        except ModelError as error:
            self.is_off = str(error.failure)
            return False
        self.is_off = None if traits.can_follow_schema else traits.name
        return traits.can_follow_schema

    async def _due(self) -> list[Due]:
        now = self._now()
        async with self._database.search() as connection:
            pending = await _pending(connection, now)
        return [each for each in pending if each.is_free and self._ready_at(each) <= now]

    def _ready_at(self, session: Due) -> int:
        return 0 if session.count >= _READY else session.newest_at + round(self._settings.observe_after * 1000)

    async def _claim(self, session: Due) -> Claim | None:
        token = secrets.token_hex(8)
        async with self._database.write() as connection:
            return await leases.claim(
                connection,
                self._database,
                KIND,
                session.session_id,
                watermark=session.watermark,
                token=token,
                now=self._now(),
            )

    async def _learn(self, session: Due, claimed: Claim) -> int:
        async with self._database.search() as connection:
            lines = await said(connection, session, self._settings.timezone)
        noticed = 0
        one_by_one = claimed.attempts >= _PATIENCE
        for batch in _batches(worth_reading(lines), one_by_one=one_by_one):
            read = await self._read(session, batch, one_by_one=one_by_one)
            kept = await self._write(session, claimed, read)
            if kept is None:
                return noticed
            noticed += sum(each.outcome not in ("known", "hidden") for each in kept)
        async with self._database.write() as connection:
            await leases.finish(connection, claimed, session.until)
        return noticed

    async def _read(self, session: Due, lines: Sequence[Said], *, one_by_one: bool) -> _Read:
        began = time.monotonic()
        try:
            account = Account(Purpose.EXTRACTION, session_id=session.session_id)
            extracted = await extract(self._model, lines, account)
        except (AnswerError, ModelError) as error:
            if not one_by_one or (isinstance(error, ModelError) and error.failure not in _HOPELESS):
                raise
            log.warning("observations.passed_over", session=session.session_id, error=type(error).__name__)
            extracted = Extracted(refused=("unreadable",))
        budget = Budget(_DOUBTS_A_BATCH)
        cost = extracted.usage.input + extracted.usage.output
        share = round(cost / max(len(extracted.drafts), 1))
        wishes: list[Wish] = []
        for draft in extracted.drafts:
            whose = session.owner, draft.said.user_id
            same = await self._neighbours.same_as(draft.content, *whose, self._now(), budget)
            like = None if same else await self._twin(wishes, draft.content, whose, budget)
            wishes.append(
                Wish(
                    draft.content,
                    session.owner,
                    draft.said.user_id,
                    Trigger.CHAT,
                    message_id=draft.said.id,
                    quote=draft.quote,
                    session_id=session.session_id,
                    at=to_ms(draft.said.at),
                    valid_to=None if draft.valid_to is None else to_ms(draft.valid_to),
                    prompt_version=PROMPT_VERSION,
                    cost_tokens=share,
                    repeats=same,
                    like=like,
                )
            )
        return _Read(tuple(lines), extracted, tuple(wishes), lines[-1].id, round((time.monotonic() - began) * 1000))

    async def _twin(
        self, wishes: Sequence[Wish], content: Content, whose: tuple[str, int | None], budget: Budget
    ) -> int | None:
        """The place of an earlier draft of this batch that says the same."""
        places = [place for place, wish in enumerate(wishes) if is_one_person_or_thing(content, wish, *whose)]
        found = await self._neighbours.twin_among(content, [wishes[place].content for place in places], budget)
        return None if found is None else places[found]

    async def _write(self, session: Due, claimed: Claim, read: _Read) -> list[Kept] | None:
        """Rows and watermark in one transaction; None when the lease was lost: then nothing may be written."""
        now = self._now()
        async with self._database.write() as connection:
            if not await _advance(connection, claimed, read.until, now):
                log.info("observations.lease_lost", session=session.session_id)
                return None
            wishes = [wish if await _is_still_said(connection, wish) else None for wish in read.wishes]
            kept = [each for each in await keep_all(connection, wishes, now) if each is not None]
            await telemetry.record(connection, _event(session, read, kept), now)
        return kept

    async def _failed(self, session: Due, claimed: Claim, error: Exception) -> None:
        name = f"{type(error).__name__}.{error.failure}" if isinstance(error, ModelError) else type(error).__name__
        after = error.retry_after if isinstance(error, ModelError) else None
        log.warning("observations.failed", session=session.session_id, error=name, attempts=claimed.attempts)
        now = self._now()
        async with self._database.write() as connection:
            await leases.fail(connection, claimed, name, now + leases.retry_ms(claimed.attempts, after))
            event = telemetry.JobFailed(
                job="observe", error=telemetry.code(name), attempts=claimed.attempts, session_id=session.session_id
            )
            await telemetry.record(connection, event, now)

    def _now(self) -> int:
        return to_ms(self._clock.now())


async def said(connection: AsyncConnection, session: Due, timezone: str) -> list[Said]:
    """What people typed in a session since the watermark, up to the last answer: their own words only."""
    query = (
        sa.select(messages, users.c.timezone)
        .join(users, users.c.id == messages.c.user_id)
        .where(_is_typed(), messages.c.session_id == session.session_id)
        .where(messages.c.id > session.watermark, messages.c.id <= session.until)
        .order_by(messages.c.id)
    )
    rows = (await connection.execute(query)).mappings().all()
    return [
        Said(
            row["id"],
            row["user_id"],
            row["speaker"],
            own_words(row["text"], row["blocks"]),
            from_ms(row["created_at"]).astimezone(ZoneInfo(row["timezone"] or timezone)),
        )
        for row in rows
    ]


def own_words(text: str, blocks: Any) -> str:
    """What its author typed of a message: the names of attached files stand before it, and are somebody else's."""
    pieces = cast("list[dict[str, Any]]", blocks) if isinstance(blocks, list) else []
    starts = [each["at"] for each in pieces if isinstance(each.get("at"), int)]
    start = min(starts, default=0)
    if start <= 0:
        return text
    head, _, rest = text.partition("\n")
    return rest if head.startswith("[") and head.endswith("]") else text[start:]


def _is_typed() -> sa.ColumnElement[bool]:
    return sa.and_(
        messages.c.role == "user",
        messages.c.origin == Origin.TYPED,
        messages.c.user_id.is_not(None),
        ~messages.c.is_ephemeral,
    )


async def _pending(connection: AsyncConnection, now: int) -> list[Due]:
    watermark = sa.func.coalesce(learning.c.watermark, 0)
    answered = (
        sa.select(sa.func.max(messages.c.id))
        .where(messages.c.session_id == sessions.c.id, messages.c.role == "assistant", ~messages.c.is_ephemeral)
        .correlate(sessions)
        .scalar_subquery()
    )
    open_ = (
        sa.select(sessions.c.id, sessions.c.owner, watermark.label("watermark"), answered.label("until"))
        .add_columns(leases.is_free(now).label("is_free"))
        .select_from(sessions.outerjoin(learning, leases.of(KIND, sessions.c.id)))
        .where(answered > watermark)
    ).subquery()
    query = (
        sa.select(open_, sa.func.count(), sa.func.max(messages.c.created_at))
        .join(messages, messages.c.session_id == open_.c.id)
        .where(_is_typed(), messages.c.id > open_.c.watermark, messages.c.id <= open_.c.until)
        .group_by(open_.c.id)
        .order_by(sa.func.max(messages.c.id))
    )
    rows = (await connection.execute(query)).all()
    return [Due(row[0], row[1], row[2], row[3], row[5], row[6], bool(row[4])) for row in rows]


async def _was_refused(connection: AsyncConnection, session_id: int, message_id: int) -> bool:
    """Whether the batch of a message came to nothing by refusal; known as long as telemetry is kept."""
    query = (
        sa.select(telemetry_events.c.data)
        .where(telemetry_events.c.name == telemetry.Extracted.name, telemetry_events.c.session_id == session_id)
        .order_by(telemetry_events.c.id)
    )
    for data in (await connection.execute(query)).scalars():
        if data.get("toMessage", 0) >= message_id:
            return data["rejected"] > 0 and data["observations"] == 0
    return False


async def _advance(connection: AsyncConnection, claimed: Claim, watermark: int, now: int) -> bool:
    mine = leases.of(KIND, claimed.session_id), learning.c.claim == claimed.token
    done = await connection.execute(
        learning.update().where(*mine).values(watermark=watermark, lease_until=now + leases.LEASE_MS)
    )
    return done.rowcount > 0


async def _is_still_said(connection: AsyncConnection, wish: Wish) -> bool:
    """Something may have been forgotten or edited while the model was reading."""
    query = sa.select(messages.c.text).where(messages.c.id == wish.message_id, _is_typed())
    text = (await connection.execute(query)).scalar_one_or_none()
    return text is not None and find_quote(wish.quote, text) is not None


def _batches(lines: Sequence[Said], *, one_by_one: bool) -> Iterator[list[Said]]:
    batch: list[Said] = []
    size = 0
    for line in lines:
        is_full = len(batch) >= (1 if one_by_one else _BATCH) or size + len(line.text) > _BATCH_CHARACTERS
        if batch and is_full:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line.text)
    if batch:
        yield batch


def _event(session: Due, read: _Read, kept: Sequence[Kept]) -> telemetry.Extracted:
    extracted = read.extracted
    event = telemetry.Extracted(
        model=telemetry.code(extracted.model),
        trigger=Trigger.CHAT,
        messages=len(read.lines),
        observations=sum(each.outcome not in ("known", "hidden") for each in kept),
        rejected=len(extracted.refused) + len(extracted.drafts) - len(kept),
        tokens_in=extracted.usage.input,
        tokens_out=extracted.usage.output,
        cost_nano_usd=extracted.nano_usd,
        duration_ms=read.ms,
        to_message=read.until,
    )
    return replace(event, session_id=session.session_id)
