"""Memory as handlers and the program see it: recall, learn, forget. Everything else is behind it.

Rule: an answer never waits for it. What does not work is named by `health` and by every recall, and costs no answer.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import SQLAlchemyError

from memory.forgettable import Forgettable
from memory.forgetting import Forgetting
from memory.instants import to_ms
from memory.kinds.facts.facts import Facts
from memory.kinds.observations import indexing as observation_indexing
from memory.kinds.observations import store as observation_store
from memory.kinds.observations.consolidate import Consolidated, Consolidation
from memory.kinds.observations.keeping import Neighbours
from memory.kinds.observations.learn import Observing
from memory.kinds.observations.observations import Observations
from memory.kinds.observations.using import count_uses
from memory.kinds.summaries import store as summaries
from memory.kinds.summaries.indexing import KIND as SUMMARIES
from memory.kinds.summaries.indexing import SummaryIndex, rebuild_words
from memory.kinds.summaries.learn import Summaries
from memory.language.words import content_words
from memory.linking import Linking
from memory.people import People
from memory.ports import Clock, Embedder, EmbedderError, LanguageModel, VectorIndex
from memory.recall.changing import Change
from memory.recall.evidence import Evidence
from memory.recall.finder import Finder
from memory.recall.quality import Quality
from memory.recall.recaller import Recaller
from memory.retention import Ages, Retention
from memory.scope import Audience
from memory.storage.database import Database
from memory.storage.index.serving import MakeEmbedder, Serving
from memory.storage.index.vectors import OfKind, Vectors
from memory.taking_back import TakingBack
from memory.types import Health, MemorySettings, Recall, Receipt

_LONGEST_DEBOUNCE = 4  # times `learn_after`: somebody who never stops writing is learned from all the same
_IDLE_SECONDS = 3600.0
_PROBE_SECONDS = 3.0
_URGENT_SECONDS = 15.0
_ROUND_SECONDS = 30.0
"""Of embedding messages at a time: after a change of embedder it is hours in all, and other learning goes on."""
_OPENING_SECONDS = 5.0
"""How long a question or a forget waits for what is being opened (loading a model takes 1 to 2 s)."""

log = structlog.get_logger(__name__)


class Memory:
    """One tenant's memory. Every call that reads or writes says for whom."""

    def __init__(  # noqa: PLR0913 - what memory needs from outside
        self,
        database: Database,
        clock: Clock,
        *,
        vectors: VectorIndex,
        embedder: Embedder,
        model: LanguageModel,
        settings: MemorySettings,
        former: MakeEmbedder | None = None,
    ) -> None:
        """`former` makes the embedder that was used before, for questions until a change of embedder is through."""
        self._database = database
        self._clock = clock
        self._index = vectors
        self._embedder = embedder
        self._settings = settings
        self._serving = serving = Serving(database, embedder, former)
        self.facts = Facts(database, clock, serving, settings)
        noticed = observation_indexing.kind(clock)
        self._vectors = Vectors(database, vectors, embedder, (SUMMARIES, noticed), serving)
        summary_vectors, noticed_vectors = SummaryIndex(self._vectors), OfKind(self._vectors, noticed)
        self.observations = Observations(database, clock, serving, noticed_vectors, settings)
        neighbours = Neighbours(database, noticed_vectors, serving, model)
        self.forgettable = Forgettable(database, self.facts, self.observations, serving)
        self._observing = Observing(database, clock, model, neighbours, settings)
        self._consolidation = Consolidation(database, clock, neighbours)
        self._summaries = Summaries(database, clock, embedder, model)
        self._evidence = Evidence(database, embedder, serving)
        self._change = Change(serving, self._evidence, self._vectors)
        finder = Finder(self._evidence, settings.fusion)
        self.quality = Quality(database, clock, finder, self.observations, serving, learns=settings.refit)
        self._recaller = Recaller(
            database,
            self.facts,
            self.observations,
            summary_vectors,
            finder,
            serving,
            clock,
            settings,
        )
        self._forgetting = Forgetting(
            database,
            clock,
            summary_vectors,
            noticed_vectors,
            self._recaller.recall,
            backups_days=settings.backups_days,
        )
        self._people = People(database, clock, self._forgetting)
        self.linking = Linking(database, clock, self._forgetting)
        self._taking_back = TakingBack(database, clock, self._forgetting)
        self._woken = asyncio.Event()
        self._is_ready = asyncio.Event()
        self._is_ready.set()

    async def open(self) -> None:
        """Open the index, warm the embedder and take up what was left: leases of a dead process, unfinished forgets.
        Never raises for index or embedder: without them recall goes by words, and they are tried again later.
        """
        self._is_ready.clear()
        try:
            await self._summaries.start()
            await self._observing.start()
            await self._change.look()
            await self.quality.load()
            await asyncio.gather(self._vectors.open(), self._warm_embedder())
        finally:
            self._is_ready.set()
        await self._forgetting.sweep()
        self.wake()

    async def look(self) -> None:
        """Find out which vectors can be asked, where this memory is only read and not opened."""
        await self._change.look()

    async def _until_ready(self) -> None:
        """Let what is being opened be opened; what takes longer is missing for now."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPENING_SECONDS):
                await self._is_ready.wait()

    async def _warm_embedder(self) -> None:
        """Make its first call here: that is the one which loads a model."""
        try:
            await self._serving.embed_query("ok")
        except EmbedderError as error:
            log.warning("memory.embedder_silent", error=type(error).__name__)

    async def recall(self, audience: Audience, session_id: int, text: str) -> Recall:
        """What bears on `text`: facts in full and at most three earlier sessions. Never raises."""
        if content_words(text):
            await self._until_ready()
        try:
            return await self._recaller.recall(audience, session_id, text)
        except Exception as error:  # noqa: BLE001 - an answer without memory is better than none
            # the arms of a recall fail as a group, whose first member says why
            cause = (
                cast("ExceptionGroup[Exception]", error).exceptions[0] if isinstance(error, ExceptionGroup) else error
            )
            log.error("recall.failed", error=type(cause).__name__)  # noqa: TRY400 - a traceback could hold words
            return Recall(degraded=("store",), trace={"error": type(cause).__name__})

    async def is_near(self, text: str, other: str) -> bool:
        """Whether a text is near in meaning to another, by the embedder's own floor. Never raises."""
        if not content_words(text) or not other.strip():
            return False
        try:
            async with asyncio.timeout(self._settings.recall_seconds):
                asked = await self._embedder.embed_query(text)
                [said] = await self._embedder.embed_documents([other])
        except (EmbedderError, TimeoutError):
            return False
        return float(asked @ said) >= self._embedder.floor

    async def summary_of(self, session_id: int, *, is_urgent: bool = False) -> str:
        """The session's own summary, to stand in for what fell out of the window; "" while there is none.

        `is_urgent`: bring it up to date before, so far as that takes no longer than a short pause.
        """
        if is_urgent:
            with suppress(TimeoutError):
                async with asyncio.timeout(_URGENT_SECONDS):
                    await self._summaries.learn(only=session_id)
        async with self._database.read() as connection:
            stored = await summaries.load(connection, session_id)
        return stored.summary.body if stored else ""

    async def close(self) -> None:
        """Let go of index and embedder."""
        await self._index.close()
        await self._serving.close()
        await self._embedder.close()

    # --- learning ---------------------------------------------------------------------------------

    async def learn(self) -> int:
        """Sweep every kind once; return how many sessions were learned. What failed comes back later."""
        await self._forgetting.sweep()
        await self._evidence.catch_up(seconds=_ROUND_SECONDS)
        await count_uses(self._database, to_ms(self._clock.now()))
        learned = await self._summaries.learn()
        await self._vectors.catch_up()
        if await self._observing.learn():
            await self._vectors.catch_up()
        await self._change.proceed()
        if self._evidence.has_more:
            self.wake()
        return learned

    def wake(self) -> None:
        """Say that a turn ended: there may be something to learn."""
        self._woken.set()

    async def learn_forever(self, stop: asyncio.Event) -> None:
        """Learn when woken, once things are quiet, until `stop`. Idle costs nothing."""
        looked_at = to_ms(self._clock.now())
        while not stop.is_set():
            await _first(stop, self._woken, seconds=await self._until_retry(looked_at))
            await self._quiet(stop)
            if stop.is_set():
                return
            looked_at = to_ms(self._clock.now())
            try:
                await self.learn()
                # words that were taken out of a row since then are still in the pages from before
                await self._database.flush_deleted()
            except (OSError, SQLAlchemyError) as error:  # the disk: a matter for whoever runs this, not for the code
                log.warning("learn.failed", error=type(error).__name__)
            except Exception as error:
                log.exception("learn.failed", error=type(error).__name__)

    async def _quiet(self, stop: asyncio.Event) -> None:
        now = asyncio.get_running_loop().time
        patience = now() + _LONGEST_DEBOUNCE * self._settings.learn_after
        while now() < patience:
            self._woken.clear()
            await _first(stop, self._woken, seconds=self._settings.learn_after)
            if stop.is_set() or not self._woken.is_set():
                return

    async def _until_retry(self, since: int) -> float:
        """Seconds until there is something to do that could not be done at `since`, when learning last looked."""
        times = (await self._summaries.next_retry(since), await self._observing.next_due(since))
        due = min((each for each in times if each is not None), default=None)
        return _IDLE_SECONDS if due is None else max((due - to_ms(self._clock.now())) / 1000, 0.0)

    # --- forgetting -------------------------------------------------------------------------------

    async def forget_facts(self, audience: Audience, fact_ids: Sequence[int], *, key: str | None = None) -> Receipt:
        """Forget facts and every place where they are said; the receipt is counted from the stores.

        `key` names the request: asked again with it within a day, this returns the receipt of the first time, without
        `texts`.
        """
        return await self.forget(audience, fact_ids, key=key)

    async def forget_session(self, audience: Audience, session_id: int, *, key: str | None = None) -> Receipt:
        """Forget a session: messages, state, summary, vectors, buttons. `key` as in `forget_facts`."""
        await self._until_ready()
        return await self._forgotten(await self._forgetting.session(audience, session_id, key))

    async def forget_observations(
        self, audience: Audience, observation_ids: Sequence[int], *, key: str | None = None, sensitive: bool = False
    ) -> Receipt:
        """Forget observations of which the asker may dispose, and their words where they were said. Others' are left
        alone; the receipt counts what went. `key` as in `forget_facts`.
        """
        return await self.forget(audience, observation_ids=observation_ids, key=key, sensitive=sensitive)

    async def forget(
        self,
        audience: Audience,
        fact_ids: Sequence[int] = (),
        observation_ids: Sequence[int] = (),
        *,
        key: str | None = None,
        sensitive: bool = False,
    ) -> Receipt:
        """Forget facts and observations together, with one receipt: as `forget_facts` and `forget_observations`."""
        await self._until_ready()
        rows = await self.observations.disposable(audience, observation_ids, sensitive=sensitive)
        return await self._forgotten(await self._forgetting.things(audience, fact_ids, rows, key))

    async def take_back(self, user_id: int, chat_id: int, ref: str) -> Receipt:
        """A person deleted a message of theirs, which the transport calls `ref`: its words go, and what was made of
        them. Nothing happens for somebody else's message.
        """
        await self._until_ready()
        return await self._forgotten(await self._taking_back.message(user_id, chat_id, ref))

    async def erase_user(self, user_id: int) -> Receipt:
        """Erase a person altogether."""
        return await self._forgotten(await self._people.erase(user_id))

    async def erase_history(self, user_id: int) -> Receipt:
        """Erase all sessions of a person; facts and account stay."""
        return await self._forgotten(await self._people.erase_history(user_id))

    async def _forgotten(self, receipt: Receipt) -> Receipt:
        self.wake()  # what was derived is made anew from what remains
        return receipt

    async def export(self, user_id: int) -> dict[str, Any]:
        """Everything of one person, as JSON-able data; empty for nobody."""
        return await self._people.export(user_id)

    # --- upkeep -----------------------------------------------------------------------------------

    async def finish_forgetting(self) -> None:
        """Take out of index and disk what follows from what has gone from the rows."""
        await self._forgetting.sweep()

    async def consolidate(self, calls: int = 20) -> Consolidated:
        """The nightly round over observations, with at most so many calls of a model; goes on where it stopped."""
        done = await self._consolidation.run(calls)
        for owner, ids in done.lost.vectors.items():
            await self.observations.unindex(owner, ids)
        await self._vectors.catch_up()
        return done

    async def extraction_of(self, session_id: int, message_id: int) -> str:
        """How far a message was looked through: "off", "pending", "done", "refused" or "failed"."""
        return await self._observing.state_of(session_id, message_id)

    def retention(self, ages: Ages) -> Retention:
        """What deletes what is too old."""
        return Retention(self._database, self._clock, self._forgetting, ages)

    async def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild everything derived from SQL; return how many vectors. Raises OSError and EmbedderError."""
        async with self._database.write() as connection:
            await rebuild_words(connection)
            await observation_store.rebuild_words(connection, to_ms(self._clock.now()))
        await self._evidence.rebuild(progress)
        count = await self._vectors.rebuild(progress)
        await self._change.proceed()
        return count

    async def health(self) -> list[Health]:
        """One line a part. Asks the embedder, so it takes as long as that takes, 3 s at most."""
        checks = (
            self._store_health,
            self._embedder_health,
            self._index_health,
            self._evidence.health,
            self._learning_health,
            self._observing.health,
        )
        return [*[await check() for check in checks], *await self._change.health()]

    async def _store_health(self) -> Health:
        try:
            async with self._database.read() as connection:
                await connection.execute(sa.text("SELECT 1"))
        except (SQLAlchemyError, OSError) as error:
            return Health("store", ok=False, detail=type(error).__name__, remedy="Check the disk and data_dir.")
        return Health("store", ok=True, detail="answers", code="answers")

    async def _embedder_health(self) -> Health:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._embedder.embed_query("ok")
        except (EmbedderError, TimeoutError) as error:
            remedy = "Recall goes by words meanwhile. Check [embedding], or start its server."
            return Health("embedder", ok=False, detail=f"{self._embedder.name}: {type(error).__name__}", remedy=remedy)
        return Health("embedder", ok=True, detail=self._vectors.name)

    async def _index_health(self) -> Health:
        if not self._vectors.is_open:
            return Health("index", ok=False, detail="closed", remedy="Run `merk reindex` while Merk is stopped.")
        return Health.following("index", await self._vectors.behind(), to="embed")

    async def _learning_health(self) -> Health:
        failures = sorted(await self._summaries.failures())
        if not failures:
            return Health.following("learning")
        kinds = ", ".join(dict.fromkeys(failures))
        remedy = "They are tried again within the hour. `merk doctor` checks the model."
        return Health("learning", ok=False, detail=f"{len(failures)} sessions: {kinds}", remedy=remedy)


async def _first(*events: asyncio.Event, seconds: float) -> None:
    """Wait until one of the events is set, at most so long."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
