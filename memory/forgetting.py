"""Forgetting: rows, words, derived text, vectors and bytes, in that order, and a receipt counted from the stores.

Rule: what is forgotten is named by its owner; nobody else's row changes by a byte. One transaction for the rows; what
is left to do after it (vectors, disk) is noted in the same transaction and finished at the next chance.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import reach, telemetry
from memory.instants import to_ms
from memory.kinds.observations import losing
from memory.kinds.observations import store as observation_store
from memory.kinds.observations.losing import Lost
from memory.kinds.observations.observation import Observation
from memory.kinds.summaries import store as summary_store
from memory.kinds.summaries.indexing import SummaryIndex
from memory.language.telling import Forgotten, Telling, is_told, redact
from memory.language.text import clean, normal_form
from memory.ports import Clock
from memory.scope import Audience, seen_by, sensitive_key
from memory.storage import compactions, erasure, kept, making, working
from memory.storage.backups import KEPT_DAYS, backups_of
from memory.storage.database import Database
from memory.storage.index import lexical
from memory.storage.index.vectors import OfKind
from memory.storage.sessions import UNSWEPT
from memory.storage.tables import facts, kept_values, sessions, summaries
from memory.types import Recall, Receipt

WIPED = "–"
"""What stands in a chat for a message of open work that went with the words in it and cannot be deleted any more."""

RECEIPT = "memory.receipt."
"""kept_values: what a forget erased, in figures, by the key of whoever asked for it."""
_RECEIPT_MS = 24 * 60 * 60 * 1000

RecallAgain = Callable[[Audience, int, str], Awaitable[Recall]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Doomed:
    """What one forget has taken out of SQL, to be followed up in the other stores."""

    vectors: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Owner -> sessions whose summary is gone."""
    noticed: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Owner -> observations that are gone or were made anew."""
    receipt: Receipt = field(default_factory=Receipt)
    tellings: list[Telling] = field(default_factory=list[Telling])

    def add(self, other: "Doomed") -> None:
        for owner, session_ids in other.vectors.items():
            self.vectors[owner] = sorted({*self.vectors.get(owner, []), *session_ids})
        for owner, observation_ids in other.noticed.items():
            self.noticed[owner] = sorted({*self.noticed.get(owner, []), *observation_ids})
        mine, more = self.receipt, other.receipt
        self.receipt = Receipt(
            facts=mine.facts + more.facts,
            messages_redacted=mine.messages_redacted + more.messages_redacted,
            summaries=mine.summaries + more.summaries,
            summaries_anew=mine.summaries_anew + more.summaries_anew,
            observations=mine.observations + more.observations,
            pending=mine.pending + more.pending,
            texts=(*mine.texts, *more.texts),
        )
        self.tellings += other.tellings

    def lose(self, lost: Lost) -> None:
        """Count observations that went with the words they rested on."""
        self.add(Doomed(noticed=lost.vectors, receipt=Receipt(observations=lost.deleted)))


class Forgetting:
    """The one way in which anything is forgotten, from chat, from the command line or by retention."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        index: SummaryIndex,
        noticed: OfKind,
        recall: RecallAgain,
        *,
        backups_days: int = KEPT_DAYS,
    ) -> None:
        self._database = database
        self._clock = clock
        self._index = index
        self._noticed = noticed
        self._recall = recall
        self._backups_days = backups_days

    async def things(
        self, audience: Audience, fact_ids: Sequence[int], rows: Sequence[Observation], key: str | None = None
    ) -> Receipt:
        """Forget facts of this audience and every place where they are said; and observations that this person may
        change, with their words where the person, or in a group anybody, said them. Unknown ids change nothing.

        `key` names the request: asked again with it, after a crash, this returns the receipt of the first time.
        """
        async with self._database.write() as connection:
            doomed = await self.remove_facts(connection, audience, fact_ids)
            if rows:
                doomed = doomed or Doomed()
                doomed.add(await self.remove_observations(connection, audience, rows))
            if doomed is not None:
                await self.note(connection, audience.user_id, doomed.receipt)
                await self._keep_receipt(connection, key, doomed.receipt)
        if doomed is None:
            return await self._kept_receipt(key)
        receipt = await self._prove(audience, doomed, await self.follow_up(doomed))
        await self._complete_receipt(key, receipt)
        return receipt

    async def session(self, audience: Audience, session_id: int, key: str | None = None) -> Receipt:
        """Forget a session of this audience: messages, summary, vector, buttons and whatever waits to be sent.

        `key` as in `facts`.
        """
        async with self._database.write() as connection:
            query = sa.select(sessions.c.id).where(sessions.c.id == session_id, seen_by(sessions.c.owner, audience))
            doomed = None
            if (await connection.execute(query)).first() is not None:
                doomed = await self.remove_sessions(connection, [session_id])
                await self.note(connection, audience.user_id, doomed.receipt)
                await self._keep_receipt(connection, key, doomed.receipt)
        if doomed is None:
            return await self._kept_receipt(key)
        receipt = await self.follow_up(doomed)
        await self._complete_receipt(key, receipt)
        return receipt

    async def remove_sessions(self, connection: AsyncConnection, session_ids: Sequence[int]) -> Doomed:
        """Delete sessions with all that hangs on them; facts stay, without pointing at messages that are gone."""
        query = sa.select(sessions.c.id, sessions.c.owner).where(sessions.c.id.in_(session_ids))
        owner_of = {row[0]: row[1] for row in (await connection.execute(query)).all()}
        message_ids, inbox_ids = await reach.messages_in(connection, list(owner_of))
        pending = await erasure.empty_inbox(connection, inbox_ids, self._now())
        pending += await erasure.waiting_in(connection, list(owner_of))
        for session_id in owner_of:
            await working.wipe(connection, session_id, WIPED)
        doomed = await self.discard(connection, list(owner_of), sorted(set(owner_of.values())))
        await self.lose(connection, doomed, await losing.withdraw(connection, message_ids, self._now()))
        await connection.execute(sessions.delete().where(sessions.c.id.in_(list(owner_of))))
        await lexical.optimize(connection)  # the words of the messages went with them
        await reach.unlink_sources(connection, set(owner_of.values()), message_ids)
        doomed.receipt = replace(
            doomed.receipt,
            messages_redacted=len(message_ids),
            summaries_anew=0,
            pending=doomed.receipt.pending + pending,
        )
        return doomed

    async def follow_up(self, doomed: Doomed) -> Receipt:
        """After the commit: vectors, then the disk. What does not answer is named, and swept up later."""
        vectors, unfinished = 0, list[str]()
        for owner, session_ids in doomed.vectors.items():
            try:
                vectors += await self._index.drop(owner, session_ids)
            except OSError:
                unfinished.append("index")
        for owner, observation_ids in doomed.noticed.items():
            try:
                vectors += await self._noticed.drop(owner, observation_ids)
            except OSError:
                unfinished.append("index")
        if not await erasure.leave_no_trace(self._database):
            unfinished.append("disk")
        if unfinished:
            log.warning("forget.unfinished", stores=unfinished)
        else:
            await self._swept({*doomed.vectors, *doomed.noticed})
        return replace(
            doomed.receipt,
            vectors=vectors,
            backups=self._backups(),
            unfinished=tuple(dict.fromkeys(unfinished)),
        )

    async def sweep(self) -> None:
        """Finish what a crash or a silent index left of earlier forgets; drop what was noted of them long ago."""
        async with self._database.read() as connection:
            owners = await reach.unswept(connection)
            has_old = (await connection.execute(sa.select(kept_values.c.key).where(self._is_old_receipt()))).first()
        if has_old or making.is_anything_noted():
            async with self._database.write() as connection:
                await connection.execute(kept_values.delete().where(self._is_old_receipt()))
                await making.let_go(connection)
        try:
            for owner in owners:
                await self._index.drop(owner, [])
                await self._noticed.drop(owner, [])
        except OSError:
            return  # at the next chance
        if owners and await erasure.leave_no_trace(self._database):
            await self._swept(owners)

    async def remove_facts(
        self, connection: AsyncConnection, audience: Audience, fact_ids: Sequence[int]
    ) -> Doomed | None:
        """Delete facts and take their words out of every row of this audience. None when there are no such facts."""
        rows = await reach.with_history(connection, audience, fact_ids)
        if not rows:
            return None
        ids = [row["id"] for row in rows]
        await connection.execute(facts.delete().where(facts.c.id.in_(ids)))
        said = [Forgotten(row["text"], row["user_id"], frozenset(row["source_message_ids"])) for row in rows]
        doomed = await self._take_out(connection, audience, said)
        left = sa.select(sa.func.count()).select_from(facts).where(facts.c.id.in_(ids))
        gone = len(ids) - int((await connection.execute(left)).scalar_one())
        texts = tuple(clean(row["text"]) for row in rows if row["valid_to"] is None)
        doomed.receipt = replace(doomed.receipt, facts=gone, texts=texts)
        return doomed

    async def _take_out(self, connection: AsyncConnection, audience: Audience, said: Sequence[Forgotten]) -> Doomed:
        """Take words out of every row of this audience, and of what was derived from them."""
        lines = await erasure.lines_of(connection, audience.visible)
        kept_texts = await reach.texts_in_force(connection, audience)
        # a thread, so that a log of years holds nobody's answer up
        tellings, texts = await asyncio.to_thread(reach.decide, said, kept_texts, lines)
        making.note(connection, [row["id"] for row in await erasure.inbox_of(connection, audience)], tellings)

        def rewrite(text: str, is_told: bool) -> str:
            return redact(tellings, text, is_strict=is_told)

        touched = await erasure.rewrite_messages(connection, audience.visible, texts, rewrite, self._now())
        await compactions.drop_of(connection, audience.visible)
        renamed = await erasure.rewrite_sessions(connection, audience.visible, lambda text: redact(tellings, text))
        pending = await erasure.rewrite_traffic(connection, audience, touched, rewrite)
        stale = {line.session_id for line in lines if line.id in touched} | renamed
        stale |= await reach.summaries_that_tell(connection, audience, tellings)
        doomed = await self.discard(connection, sorted(stale), audience.visible)
        await self._lose_told(connection, audience, doomed, touched, tellings)
        redacted = await reach.count_redacted(connection, touched)  # before open work goes with its rows
        await working.wipe_told(
            connection, audience.visible, touched, lambda text: redact(tellings, text) != text, WIPED
        )
        doomed.tellings = tellings
        doomed.receipt = replace(
            doomed.receipt,
            messages_redacted=redacted,
            pending=doomed.receipt.pending + pending,
            still_said=await reach.still_said(connection, audience, lambda text: redact(tellings, text)),
        )
        return doomed

    async def remove_observations(
        self, connection: AsyncConnection, audience: Audience, rows: Sequence[Observation]
    ) -> Doomed:
        """Delete observations, what they replaced, and their words in the log: of one's own chats, and of the group
        that a row belongs to or in which one said it; nobody else's private words change.
        """
        rows = await reach.with_replaced(connection, rows)
        said_in = await reach.sessions_said_in(connection, rows)
        gone = await observation_store.delete(connection, [row.id for row in rows])
        doomed = Doomed(receipt=Receipt(observations=gone, texts=tuple(row.narrative for row in rows)))
        lost = Lost()
        for row in rows:
            lost.add(row, is_deleted=False)
        await self.lose(connection, doomed, lost)
        for owner in sorted(set(said_in.values())):
            place = reach.place_of(owner, audience)
            if place is not None:
                doomed.add(await self._take_out(connection, place, reach.words_said_in(owner, rows, said_in)))
        return doomed

    async def _lose_told(
        self,
        connection: AsyncConnection,
        audience: Audience,
        doomed: Doomed,
        touched: Iterable[int],
        tellings: Sequence[Telling],
    ) -> None:
        """Observations that rest on what was redacted, whoever's; and those of this audience that tell it anyhow."""
        owners = (audience.owner, sensitive_key(audience.user_id)) if audience.is_private else (audience.owner,)

        def tells(text: str) -> bool:
            return is_told(tellings, text)

        ids = {
            *await observation_store.resting_on(connection, touched),
            *await losing.telling(connection, owners, tells),
        }
        await self.lose(connection, doomed, await losing.settle(connection, ids, self._now(), tells))

    async def lose(self, connection: AsyncConnection, doomed: Doomed, lost: Lost) -> None:
        """Note that the vectors of these observations have to follow."""
        doomed.lose(lost)
        if lost.vectors:
            await lexical.optimize(connection)
            await self._mark_unswept(connection, sorted(lost.vectors))

    async def discard(self, connection: AsyncConnection, session_ids: Sequence[int], owners: Sequence[str]) -> Doomed:
        """Remove the summaries of sessions of these owners and note that their vectors and the disk have to follow."""
        query = sa.select(sessions.c.owner, sessions.c.id).where(
            sessions.c.id.in_(session_ids), sessions.c.owner.in_(owners)
        )
        by_owner: dict[str, list[int]] = {owner: [] for owner in owners}
        for owner, session_id in (await connection.execute(query)).all():
            by_owner[owner].append(session_id)
        held = sa.select(sa.func.count()).select_from(summaries).where(summaries.c.session_id.in_(session_ids))
        before = int((await connection.execute(held)).scalar_one())
        pending = await summary_store.discard(connection, session_ids)
        after = int((await connection.execute(held)).scalar_one())
        await lexical.optimize(connection)
        await self._mark_unswept(connection, owners)
        gone = before - after
        return Doomed(by_owner, receipt=Receipt(summaries=gone, summaries_anew=gone, pending=pending))

    async def _prove(self, audience: Audience, doomed: Doomed, receipt: Receipt) -> Receipt:
        """Recall what was forgotten: nothing may come back (pitfall P26)."""
        # what told an observation elsewhere may tell something of its own here: then only its own wording counts
        tellings = doomed.tellings if receipt.facts else []
        for text in receipt.texts:
            again = await self._recall(audience, 0, text)
            found = [fact.text for fact in again.facts if fact.text == text]
            found += [each.text for each in again.recollections if is_told(tellings, each.told)]
            found += [each.text for each in again.observations if normal_form(text) in normal_form(each.text)]
            if found:
                log.error("forget.came_back", places=len(found))
                return replace(receipt, unfinished=(*receipt.unfinished, "recall"))
        return receipt

    # --- receipts that outlive a crash --------------------------------------------------------------

    async def _keep_receipt(self, connection: AsyncConnection, key: str | None, receipt: Receipt) -> None:
        if key is not None:
            figures = asdict(replace(receipt, texts=()))  # what was forgotten is stored nowhere
            await kept.put(connection, RECEIPT + key, figures, self._now())

    async def _complete_receipt(self, key: str | None, receipt: Receipt) -> None:
        if key is not None:
            async with self._database.write() as connection:
                await self._keep_receipt(connection, key, receipt)

    async def _kept_receipt(self, key: str | None) -> Receipt:
        """What the first call with this key erased; nothing where there was none."""
        if key is None:
            return Receipt()
        await self.sweep()
        async with self._database.read() as connection:
            figures: dict[str, Any] | None = await kept.load(connection, RECEIPT + key)
            unfinished = ("index",) if await reach.unswept(connection) else ()
        if figures is None:
            return Receipt()
        backups, still_said = tuple(figures.pop("backups")), tuple(figures.pop("still_said", ()))
        return replace(Receipt(**figures), texts=(), backups=backups, still_said=still_said, unfinished=unfinished)

    def _is_old_receipt(self) -> sa.ColumnElement[bool]:
        return sa.and_(kept_values.c.key.startswith(RECEIPT), kept_values.c.updated_at < self._now() - _RECEIPT_MS)

    # --- what is still to be done -----------------------------------------------------------------

    async def outdate(self, connection: AsyncConnection, owners: Sequence[str]) -> None:
        """Note that what these owners' vectors were made of has gone: they follow at the next sweep, and the disk."""
        await lexical.optimize(connection)
        await self._mark_unswept(connection, owners)

    async def _mark_unswept(self, connection: AsyncConnection, owners: Sequence[str]) -> None:
        await kept.put(connection, UNSWEPT, sorted({*await reach.unswept(connection), *owners}), self._now())

    async def _swept(self, owners: Iterable[str]) -> None:
        done = set(owners)
        async with self._database.write() as connection:
            left = [owner for owner in await reach.unswept(connection) if owner not in done]
            if left:
                change = kept_values.update().where(kept_values.c.key == UNSWEPT).values(value=left)
            else:
                change = kept_values.delete().where(kept_values.c.key == UNSWEPT)
            await connection.execute(change)

    async def note(self, connection: AsyncConnection, user_id: int, receipt: Receipt) -> None:
        """Tell telemetry what a forget erased."""
        event = telemetry.Forgot(
            user_id=user_id,
            facts=receipt.facts,
            messages=receipt.messages_redacted,
            summaries=receipt.summaries,
            observations=receipt.observations,
        )
        await telemetry.record(connection, event, self._now())

    def _backups(self) -> tuple[str, ...]:
        path = erasure.file_of(self._database)
        copies = backups_of(path, self._backups_days) if path else []
        return tuple(f"{copy.path.name} ({copy.goes_on.isoformat()})" for copy in copies)

    def _now(self) -> int:
        return to_ms(self._clock.now())
