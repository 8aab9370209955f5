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

from memory import telemetry
from memory.instants import to_ms
from memory.kinds.summaries import store as summary_store
from memory.kinds.summaries.indexing import SummaryIndex
from memory.language.telling import Forgotten, Line, Log, Telling, is_told, redact, redactions, tell
from memory.language.text import clean
from memory.ports import Clock
from memory.scope import Audience, seen_by
from memory.storage import erasure, kept, lexical, making
from memory.storage.backups import backups_of
from memory.storage.database import Database
from memory.storage.tables import facts, kept_values, messages, sessions, summaries
from memory.types import Recall, Receipt

UNSWEPT = "memory.unswept"
"""kept_values: the owners whose vectors are still to be cleared after a forget."""

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
    receipt: Receipt = field(default_factory=Receipt)
    tellings: list[Telling] = field(default_factory=list[Telling])

    def add(self, other: "Doomed") -> None:
        for owner, session_ids in other.vectors.items():
            self.vectors[owner] = sorted({*self.vectors.get(owner, []), *session_ids})
        mine, more = self.receipt, other.receipt
        self.receipt = Receipt(
            facts=mine.facts + more.facts,
            messages_redacted=mine.messages_redacted + more.messages_redacted,
            summaries=mine.summaries + more.summaries,
            summaries_anew=mine.summaries_anew + more.summaries_anew,
            pending=mine.pending + more.pending,
            texts=(*mine.texts, *more.texts),
        )
        self.tellings += other.tellings


class Forgetting:
    """The one way in which anything is forgotten, from chat, from the command line or by retention."""

    def __init__(self, database: Database, clock: Clock, index: SummaryIndex, recall: RecallAgain) -> None:
        self._database = database
        self._clock = clock
        self._index = index
        self._recall = recall

    async def facts(self, audience: Audience, fact_ids: Sequence[int], key: str | None = None) -> Receipt:
        """Forget facts of this audience, and every place where they are said. Unknown ids change nothing.

        `key` names the request: asked again with it, after a crash, this returns the receipt of the first time.
        """
        async with self._database.write() as connection:
            doomed = await self.remove_facts(connection, audience, fact_ids)
            if doomed is not None:
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
        message_ids, inbox_ids = await messages_in(connection, list(owner_of))
        pending = await erasure.empty_inbox(connection, inbox_ids, self._now())
        pending += await erasure.waiting_in(connection, list(owner_of))
        doomed = await self.discard(connection, list(owner_of), sorted(set(owner_of.values())))
        await connection.execute(sessions.delete().where(sessions.c.id.in_(list(owner_of))))
        await unlink_sources(connection, set(owner_of.values()), message_ids)
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
        if not await erasure.leave_no_trace(self._database):
            unfinished.append("disk")
        if unfinished:
            log.warning("forget.unfinished", stores=unfinished)
        else:
            await self._swept(doomed.vectors)
        return replace(
            doomed.receipt,
            vectors=vectors,
            backups=self._backups(),
            unfinished=tuple(dict.fromkeys(unfinished)),
        )

    async def sweep(self) -> None:
        """Finish what a crash or a silent index left of earlier forgets; drop what was noted of them long ago."""
        async with self._database.read() as connection:
            owners = await _unswept(connection)
            has_old = (await connection.execute(sa.select(kept_values.c.key).where(self._is_old_receipt()))).first()
        if has_old or making.is_anything_noted():
            async with self._database.write() as connection:
                await connection.execute(kept_values.delete().where(self._is_old_receipt()))
                await making.let_go(connection)
        try:
            for owner in owners:
                await self._index.drop(owner, [])
        except OSError:
            return  # at the next chance
        if owners and await erasure.leave_no_trace(self._database):
            await self._swept(owners)

    async def remove_facts(
        self, connection: AsyncConnection, audience: Audience, fact_ids: Sequence[int]
    ) -> Doomed | None:
        """Delete facts and take their words out of every row of this audience. None when there are no such facts."""
        rows = await _with_history(connection, audience, fact_ids)
        if not rows:
            return None
        ids = [row["id"] for row in rows]
        await connection.execute(facts.delete().where(facts.c.id.in_(ids)))
        lines = await erasure.lines_of(connection, audience.visible)
        kept_texts = await _texts_in_force(connection, audience)
        # a thread, so that a log of years holds nobody's answer up
        tellings, texts = await asyncio.to_thread(_decide, rows, kept_texts, lines)
        making.note(connection, [row["id"] for row in await erasure.inbox_of(connection, audience)], tellings)

        def rewrite(text: str, is_told: bool) -> str:
            return redact(tellings, text, is_strict=is_told)

        touched = await erasure.rewrite_messages(connection, audience.visible, texts, rewrite, self._now())
        renamed = await erasure.rewrite_sessions(connection, audience.visible, lambda text: redact(tellings, text))
        pending = await erasure.rewrite_traffic(connection, audience, touched, rewrite)
        stale = {line.session_id for line in lines if line.id in touched} | renamed
        stale |= await _summaries_that_tell(connection, audience, tellings)
        doomed = await self.discard(connection, sorted(stale), audience.visible)
        left = sa.select(sa.func.count()).select_from(facts).where(facts.c.id.in_(ids))
        gone = len(ids) - int((await connection.execute(left)).scalar_one())
        doomed.tellings = tellings
        doomed.receipt = replace(
            doomed.receipt,
            facts=gone,
            messages_redacted=await _count_redacted(connection, touched),
            pending=doomed.receipt.pending + pending,
            texts=tuple(clean(row["text"]) for row in rows if row["valid_to"] is None),
        )
        await self._note(connection, audience.user_id, doomed.receipt)
        return doomed

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
        return Doomed(by_owner, Receipt(summaries=gone, summaries_anew=gone, pending=pending))

    async def _prove(self, audience: Audience, doomed: Doomed, receipt: Receipt) -> Receipt:
        """Recall what was forgotten: nothing may come back (pitfall P26)."""
        for text in receipt.texts:
            again = await self._recall(audience, 0, text)
            found = [fact.text for fact in again.facts if fact.text == text]
            found += [each.text for each in again.recollections if is_told(doomed.tellings, each.text)]
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
            unfinished = ("index",) if await _unswept(connection) else ()
        if figures is None:
            return Receipt()
        backups = tuple(figures.pop("backups"))
        return replace(Receipt(**figures), texts=(), backups=backups, unfinished=unfinished)

    def _is_old_receipt(self) -> sa.ColumnElement[bool]:
        return sa.and_(kept_values.c.key.startswith(RECEIPT), kept_values.c.updated_at < self._now() - _RECEIPT_MS)

    # --- what is still to be done -----------------------------------------------------------------

    async def _mark_unswept(self, connection: AsyncConnection, owners: Sequence[str]) -> None:
        both = sorted({*await _unswept(connection), *owners})
        row = self._database.insert(kept_values).values(key=UNSWEPT, value=both, updated_at=self._now())
        await connection.execute(
            row.on_conflict_do_update(index_elements=["key"], set_={"value": both, "updated_at": self._now()})
        )

    async def _swept(self, owners: Iterable[str]) -> None:
        done = set(owners)
        async with self._database.write() as connection:
            left = [owner for owner in await _unswept(connection) if owner not in done]
            if left:
                change = kept_values.update().where(kept_values.c.key == UNSWEPT).values(value=left)
            else:
                change = kept_values.delete().where(kept_values.c.key == UNSWEPT)
            await connection.execute(change)

    async def _note(self, connection: AsyncConnection, user_id: int, receipt: Receipt) -> None:
        data = {"facts": receipt.facts, "messages": receipt.messages_redacted, "summaries": receipt.summaries}
        await telemetry.note(connection, "memory.forgot", data, now=self._now(), user_id=user_id)

    def _backups(self) -> tuple[str, ...]:
        path = erasure.file_of(self._database)
        copies = backups_of(path) if path else []
        return tuple(f"{copy.path.name} ({copy.goes_on.isoformat()})" for copy in copies)

    def _now(self) -> int:
        return to_ms(self._clock.now())


async def _with_history(
    connection: AsyncConnection, audience: Audience, fact_ids: Sequence[int]
) -> list[sa.RowMapping]:
    """The facts in force with these ids, and all that they ever replaced."""
    mine = seen_by(facts.c.owner, audience)
    query = sa.select(facts).where(mine, facts.c.id.in_(fact_ids), facts.c.valid_to.is_(None)).order_by(facts.c.id)
    found = list((await connection.execute(query)).mappings())
    newest = found
    while newest:
        ids = [row["id"] for row in newest]
        known = [row["id"] for row in found]
        query = sa.select(facts).where(mine, facts.c.superseded_by.in_(ids), facts.c.id.not_in(known))
        newest = list((await connection.execute(query)).mappings())
        found += newest
    return found


async def _texts_in_force(connection: AsyncConnection, audience: Audience) -> list[str]:
    query = sa.select(facts.c.text).where(seen_by(facts.c.owner, audience), facts.c.valid_to.is_(None))
    return [str(text) for text in (await connection.execute(query)).scalars()]


async def _summaries_that_tell(
    connection: AsyncConnection, audience: Audience, tellings: Sequence[Telling]
) -> set[int]:
    query = sa.select(summaries).where(seen_by(summaries.c.owner, audience))
    rows = (await connection.execute(query)).mappings()
    return {row["session_id"] for row in rows if is_told(tellings, summary_store.of_row(row).body)}


async def messages_in(connection: AsyncConnection, session_ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """The ids of the messages of sessions, and of the updates they came from."""
    query = sa.select(messages.c.id, messages.c.inbox_id).where(messages.c.session_id.in_(session_ids))
    rows = (await connection.execute(query)).all()
    return [row[0] for row in rows], [row[1] for row in rows if row[1] is not None]


async def unlink_sources(connection: AsyncConnection, owners: set[str], message_ids: Sequence[int]) -> None:
    gone = set(message_ids)
    query = sa.select(facts.c.id, facts.c.source_message_ids).where(facts.c.owner.in_(sorted(owners)))
    for fact_id, sources in (await connection.execute(query)).all():
        left = [each for each in sources if each not in gone]
        if left != sources:
            await connection.execute(facts.update().where(facts.c.id == fact_id).values(source_message_ids=left))


async def _count_redacted(connection: AsyncConnection, message_ids: set[int]) -> int:
    query = (
        sa.select(sa.func.count())
        .select_from(messages)
        .where(messages.c.id.in_(sorted(message_ids)), messages.c.redacted_at.is_not(None))
    )
    return int((await connection.execute(query)).scalar_one())


async def _unswept(connection: AsyncConnection) -> list[str]:
    query = sa.select(kept_values.c.value).where(kept_values.c.key == UNSWEPT)
    return list((await connection.execute(query)).scalar_one_or_none() or [])


def _decide(
    rows: Sequence[sa.RowMapping], kept: Sequence[str], lines: Sequence[Line]
) -> tuple[list[Telling], dict[int, str]]:
    """What gives the facts away, and the log without it."""
    log_of_owner = Log(lines)
    here = {line.id for line in lines}
    facts_gone = [Forgotten(row["text"], row["user_id"], frozenset(row["source_message_ids"]) & here) for row in rows]
    tellings = [tell(fact, kept, log_of_owner) for fact in facts_gone]
    return tellings, redactions(tellings, log_of_owner)
