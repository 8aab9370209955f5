"""What a model is shown of what was said before, and how that is made shorter.

A window, cut in steps, with the session's summary before it; or, where the provider condenses conversations, its
newest compaction and all that was said since. Rule: an answer never waits for a compaction, but where without one there
would be none.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import structlog

from handlers import prompt
from handlers.answering import prefix
from handlers.answering.prefix import Prefix
from handlers.answering.windows import OURS, Window, Windows, is_ours
from handlers.prompt import Situation
from memory.instants import to_ms
from memory.memory import Memory
from memory.ports import (
    Account,
    ChatMessage,
    Clock,
    Compacted,
    Compaction,
    Finished,
    LanguageModel,
    ModelError,
    ModelRequest,
    ModelTraits,
    Purpose,
    TextBlock,
    Tier,
    complete,
)
from memory.storage import compactions
from memory.storage import log as message_log
from memory.storage.compactions import Stored
from memory.storage.database import Database
from memory.telemetry import CacheBroke, CompactionFired, code, record
from memory.types import Message

log = structlog.get_logger(__name__)

MOST_MESSAGES = 400  # since the last compaction: more are cut to a window
COMPACTION_TOKENS = 4096
CACHED_MS = 60 * 60 * 1000  # how long a provider keeps the beginning of a prompt
_TOLD = frozenset(("model_changed", "system_changed", "tools_changed"))
"""A provider's reasons that are ones. To it messages change with every turn, for the newest alone has the clock."""
_BYTES_A_TOKEN = 3
_ROOM = 0.9  # of what fits: sizes in bytes are a guess
_MOSTLY = 4  # a message of less than a quarter of the prompt is not what makes it too long

Build = Callable[[Situation, ModelTraits], ModelRequest]


@dataclass(frozen=True, slots=True)
class Before:
    """What was said before a message, as it is stored."""

    recent: Sequence[Message]
    """The newest of it, oldest first: one more than a window may hold, where there are so many."""
    window: Sequence[Message]
    """Those of them that are shown where nothing else stands for the others."""
    is_all: bool
    """The window holds everything that was said."""
    stored: Stored
    """The session's compaction."""
    trace: Mapping[str, Any]
    """Of the last answer."""
    answered_at: int
    """When that was, in ms."""


@dataclass(frozen=True)
class Talk:
    """A prompt, and what it was made of."""

    situation: Situation
    tier: Tier
    traits: ModelTraits
    build: Build
    stored: Stored
    """The session's compaction as it stood."""
    last: dict[str, Any] = field(default_factory=dict[str, Any])
    """The beginning of the last prompt, where a provider may still have it."""

    @cached_property
    def prompt(self) -> ModelRequest:
        return replace(self.build(self.situation, self.traits), follows=str(self.last.get("answer", "")))

    @cached_property
    def prefix(self) -> Prefix:
        return prefix.prefix_of(self.situation, self.prompt, self.traits.name)

    def cache_break(self, usage: Mapping[str, int], told: str = "") -> CacheBroke | None:
        """What to note where it did not begin as the last one did, and the provider keeps beginnings.

        `told` is what the provider says itself; it counts where we see no reason.
        """
        reason = prefix.broke(self.last, self.prefix, self.prompt) if self.last else None
        reason = reason or (told if told in _TOLD else None)
        written, read = usage.get("cache_write", 0), usage.get("cache_read", 0)
        if reason is None or not (written or read):
            return None
        account = self.prompt.account
        return CacheBroke(
            user_id=account.user_id,
            session_id=account.session_id,
            model=code(self.traits.name),
            reason=reason,
            tokens_cache_write=written,
        )


class MessageTooLongError(Exception):
    """The newest message alone is more than the model can read; `fits` is how much of it would do."""

    def __init__(self, fits: float) -> None:
        super().__init__()
        self.fits = fits


class Past:
    """Opens talks, shortens them, and has compactions made beside them."""

    def __init__(  # noqa: PLR0913 - parts and settings
        self,
        database: Database,
        clock: Clock,
        memory: Memory,
        model: LanguageModel,
        *,
        kept: int,
        most: int,
        compact_from: int,
    ) -> None:
        """A chat is condensed when all but its newest `kept` messages have more than `compact_from` tokens.

        Where nobody condenses it, it is cut back to `kept` messages when there are more than `most`.
        """
        self._database = database
        self._clock = clock
        self._memory = memory
        self._model = model
        self._kept = kept
        self._windows = Windows(database, clock, kept, most)
        self._compact_from = compact_from
        self._making: dict[int, asyncio.Task[None]] = {}

    async def look(self, newest: Message) -> Before:
        """What is stored of the time before a message."""
        session_id, most = newest.session_id, self._windows.most
        async with self._database.read() as connection:
            recent, count = await message_log.newest_and_count(connection, session_id, most + 1, before=newest.id)
            trace, answered_at = await message_log.last_trace(connection, session_id)
            stored = await compactions.load(connection, session_id)
        fallen = prompt.window_start(count, self._kept, most)
        window = recent[len(recent) - (count - fallen) :]
        return Before(recent, window, fallen == 0, stored, trace, answered_at)

    async def open(self, before: Before, situation: Situation, tier: Tier, build: Build) -> Talk:
        """Show the model all that it can be shown. Raises `ModelError`."""
        traits = await self._model.traits(tier)
        newest, stored = situation.newest, before.stored
        is_warm = to_ms(self._clock.now()) - before.answered_at < CACHED_MS
        last: dict[str, Any] = before.trace.get("prefix", {}) if is_warm else {}
        talk = Talk(situation, tier, traits, build, stored, last)
        if stored.through_id >= newest.id:  # an old message, asked once more: the block knows what came of it
            return replace(talk, stored=Stored())
        if traits.compaction is Compaction.NONE:
            return await self._windowed(before, talk)
        async with self._database.read() as connection:
            since = await message_log.newest_after(
                connection, newest.session_id, stored.through_id, MOST_MESSAGES, before=newest.id
            )
        is_all = len(since) < MOST_MESSAGES
        earlier = "" if is_all else situation.earlier
        whole = replace(situation, history=since, earlier=earlier, compacted=stored.compacted)
        older = sum(len(message.text.encode()) for message in since[: -self._kept]) // _BYTES_A_TOKEN
        if traits.compaction is Compaction.ON_DEMAND and older > self._compact_from:
            self._begin(replace(talk, situation=whole))
        if not is_all or (traits.compaction is Compaction.ON_DEMAND and older > 2 * self._compact_from):
            return talk  # nothing has come of compactions for long
        return replace(talk, situation=whole)

    async def _windowed(self, before: Before, talk: Talk) -> Talk:
        """Show the window as it was last cut, where a summary stands for what fell out of it."""
        if talk.stored.compacted is None and not talk.situation.earlier:
            return talk  # nothing fell out, or nothing can stand for it
        if not is_ours(talk.stored) or not await self._is_windowed():
            return talk
        session_id = talk.situation.newest.session_id
        window = await self._windows.open(session_id, talk.stored, before.recent, is_cold=not talk.last)
        if window is None:
            return talk
        return replace(talk, stored=window.stored, situation=_within(talk.situation, window))

    async def _is_windowed(self) -> bool:
        """Whether nobody condenses the chats here: what a provider may show whole is not cut for another model."""
        return (await self._model.traits(Tier.DEFAULT)).compaction is Compaction.NONE

    async def shorten(self, talk: Talk, error: ModelError) -> Talk:
        """Make a prompt fit that was too long. Raises `MessageTooLongError` where the newest message
        does not, and the error itself where that is not to blame.
        """
        newest = talk.situation.newest
        summary = await self._memory.summary_of(newest.session_id, is_urgent=True)
        tried = list(prompt.shorter(talk.situation, summary))
        sizes = [prompt.weigh(talk.build(each, talk.traits)) for each in tried]
        whole, barest = prompt.weigh(talk.prompt), sizes[-1]
        message = len(newest.text.encode(errors="replace"))
        room = whole * _ROOM / error.excess if error.excess else (whole + barest) / 2
        shorter = next((each for each, size in zip(tried, sizes, strict=True) if size <= room), None)
        if shorter is None or (error.excess is None and message > whole / 2):
            if message < barest / _MOSTLY:
                raise error  # it is what we say ourselves that does not fit
            raise MessageTooLongError(room / whole)
        cut = len(talk.situation.history) - len(shorter.history)
        if cut and talk.traits.compaction is Compaction.ON_DEMAND:
            made = await self._make(talk, talk.situation.history[:cut])
            if made is not None:
                shorter = replace(shorter, compacted=made, earlier="")
        elif cut and is_ours(talk.stored) and await self._is_windowed():
            shorter = await self._cut(talk, shorter, room)
        return replace(talk, situation=shorter)

    async def _cut(self, talk: Talk, shorter: Situation, room: float) -> Situation:
        """Let the window begin where the shorter prompt does, else the next turn is too long again."""
        told = replace(shorter, earlier="", compacted=Compacted(shorter.earlier, {}, OURS))
        if not shorter.earlier or prompt.weigh(talk.build(told, talk.traits)) > room:
            return shorter
        session_id, history = talk.situation.newest.session_id, talk.situation.history
        window = await self._windows.cut(session_id, talk.stored, history, len(shorter.history))
        return _within(shorter, window) if window is not None else shorter

    async def keep(self, talk: Talk, finished: Finished) -> None:
        """Store a compaction that came with an answer: it stands for all up to the question."""
        assert finished.compacted is not None, "only such are kept"
        await self._store(talk, finished.compacted, talk.situation.newest.id, finished)

    async def settled(self) -> None:
        """Return when no compaction is being made."""
        await asyncio.gather(*self._making.values())

    async def close(self) -> None:
        """Give up what is being made: it is begun anew with the next message."""
        for task in list(self._making.values()):
            task.cancel()
        await asyncio.gather(*self._making.values(), return_exceptions=True)

    def _begin(self, talk: Talk) -> None:
        """Condense all but the newest messages, beside the answer; one at a time in a session."""
        older = list(talk.situation.history[: -self._kept])
        while older and older[-1].role == "user":
            older.pop()
        session_id = talk.situation.newest.session_id
        if not older or session_id in self._making:
            return

        async def make() -> None:
            try:
                await self._make(talk, older)
            except Exception:
                log.exception("past.compaction_failed", session=session_id)
            finally:
                del self._making[session_id]

        self._making[session_id] = asyncio.create_task(make())

    async def _make(self, talk: Talk, older: Sequence[Message]) -> Compacted | None:
        """Have the provider condense what it has of the session up to here; None where it does not."""
        older_talk = replace(talk.situation, history=older)
        built = talk.build(older_talk, talk.traits)
        messages = built.messages[:-1]
        if not messages:
            return None
        if older_talk.earlier and built.compacted is None:
            told = prompt.fence("earlier in this chat", older_talk.earlier)
            messages = (ChatMessage("user", (TextBlock(told),)), *messages)
        account = Account(Purpose.SUMMARY, built.account.user_id, talk.situation.newest.session_id)
        asked = replace(
            built, messages=messages, compacts=True, max_tokens=COMPACTION_TOKENS, tier=talk.tier, account=account
        )
        try:
            finished = await complete(self._model, asked)
        except ModelError as error:
            log.warning("past.not_condensed", failure=error.failure, detail=error.detail)
            return None
        if finished.compacted is None:  # whoever stands in for the provider answered
            return None
        await self._store(talk, finished.compacted, older[-1].id, finished)
        return finished.compacted

    async def _store(self, talk: Talk, compacted: Compacted, through_id: int, finished: Finished) -> None:
        session_id = talk.situation.newest.session_id
        usage = finished.billed[0].usage if finished.billed else finished.usage  # its line comes first
        event = CompactionFired(
            user_id=talk.prompt.account.user_id,
            session_id=session_id,
            model=code(compacted.model),
            tokens_before=usage.input + usage.cache_read + usage.cache_write,
            tokens_after=usage.output,
        )
        now = to_ms(self._clock.now())
        async with self._database.write() as connection:
            if await compactions.put(connection, session_id, compacted, through_id, epoch=talk.stored.epoch, now=now):
                await record(connection, event, now)
            else:
                log.info("past.compaction_outdated", session=session_id)


def _within(situation: Situation, window: Window) -> Situation:
    return replace(situation, history=window.since, earlier="", compacted=window.stored.compacted)
