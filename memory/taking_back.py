"""A person takes a message of theirs back: its words go, and what was made of them.

Rule: it is less than a forget. Only this message, the answers to it and what was derived from it change; a fact that
rests on it alone is forgotten as ever, in a group without a word of anybody else's.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import reach
from memory.forgetting import WIPED, Doomed, Forgetting
from memory.instants import to_ms
from memory.kinds.observations import losing
from memory.kinds.observations import store as observation_store
from memory.language.telling import Forgotten, Line, Telling, redact
from memory.language.text import MARK, sentences
from memory.ports import Clock
from memory.scope import Audience, own_key
from memory.storage import compactions, erasure, making, working
from memory.storage.database import Database
from memory.storage.tables import confirmations, facts, messages, outbox, sessions
from memory.types import Receipt


class TakingBack:
    """Finds the message by the transport's id of it."""

    def __init__(self, database: Database, clock: Clock, forgetting: Forgetting) -> None:
        self._database = database
        self._clock = clock
        self._forgetting = forgetting

    async def message(self, user_id: int, chat_id: int, ref: str) -> Receipt:
        """Take back what this person said in a chat. Nothing happens for an unknown message or somebody else's.

        Vectors and the disk follow at the next sweep: of many deletions at once each would write the file anew.
        """
        async with self._database.write() as connection:
            said = await _said(connection, user_id, chat_id, ref)
            if not said:
                return Receipt()
            owner = str(said[0]["owner"])
            audience = Audience(user_id, chat_id, is_private=owner == own_key(user_id))
            ids = [int(row["id"]) for row in said]
            doomed, texts = await self._forget_facts(connection, audience, ids)
            for row in said:
                doomed.add(await self._take_out(connection, audience, row, texts))
            await self._forgetting.outdate(connection, [owner])
            await self._forgetting.note(connection, user_id, doomed.receipt)
        return doomed.receipt

    async def _forget_facts(
        self, connection: AsyncConnection, audience: Audience, ids: Sequence[int]
    ) -> tuple[Doomed, list[str]]:
        """Forget the person's facts that rest on these messages alone; return their texts, too."""
        query = sa.select(facts).where(facts.c.user_id == audience.user_id)  # under whatever scope they were kept
        rows = [
            row
            for row in (await connection.execute(query)).mappings().all()
            if row["source_message_ids"] and set(row["source_message_ids"]) <= set(ids)
        ]
        doomed = Doomed()
        if audience.is_private:  # where all words are the person's own, or said to them
            in_force = [row["id"] for row in rows if row["valid_to"] is None]
            doomed.add(await self._forgetting.remove_facts(connection, audience, in_force) or Doomed())
        gone = await connection.execute(facts.delete().where(facts.c.id.in_([row["id"] for row in rows])))
        doomed.add(Doomed(receipt=Receipt(facts=gone.rowcount)))
        owners = set((await connection.execute(sa.select(facts.c.owner).distinct())).scalars())
        await reach.unlink_sources(connection, owners, ids)
        return doomed, [str(row["text"]) for row in rows]

    async def _take_out(
        self, connection: AsyncConnection, audience: Audience, row: sa.RowMapping, fact_texts: Sequence[str]
    ) -> Doomed:
        """Take the words of one message out of the log, of the answers to it, and of what waits to be sent."""
        now = to_ms(self._clock.now())
        answers = await _answers(connection, row)
        source = frozenset((int(row["id"]),))
        said = [Forgotten(text, audience.user_id, source) for text in (*sentences(row["text"]), *fact_texts)]
        lines = [_line(each) for each in (row, *answers)]
        tellings, texts = await asyncio.to_thread(reach.decide, said, (), lines)
        if row["inbox_id"] is not None:
            making.note(connection, [row["inbox_id"]], tellings)  # its answer may be growing
        texts[row["id"]] = MARK
        for each in (row, *answers):
            text = texts.get(each["id"], each["text"])
            blocks: Any = None if each["id"] == row["id"] else _without(tellings, each["blocks"])
            if (text, blocks) != (each["text"], each["blocks"]):
                change = messages.update().where(messages.c.id == each["id"])
                await connection.execute(change.values(text=text, blocks=blocks, redacted_at=now))
                await compactions.drop_around(connection, each["id"])
        pending = await _empty_traffic(connection, row, tellings, now)
        await _drop_title(connection, row["session_id"], tellings)
        doomed = await self._forgetting.discard(connection, [row["session_id"]], [row["owner"]])
        touched = [each["id"] for each in (row, *answers) if each["id"] in texts]
        resting = await observation_store.resting_on(connection, touched)
        await self._forgetting.lose(connection, doomed, await losing.settle(connection, resting, now))
        await working.wipe_told(connection, [row["owner"]], touched, lambda _text: False, WIPED)
        doomed.add(Doomed(receipt=Receipt(messages_redacted=len(touched), pending=pending)))
        return doomed


async def _said(connection: AsyncConnection, user_id: int, chat_id: int, ref: str) -> Sequence[sa.RowMapping]:
    """The rows of this person's message; those whose words have gone already are none."""
    query = (
        sa.select(messages, sessions.c.owner)
        .join(sessions, sessions.c.id == messages.c.session_id)
        .where(
            sessions.c.chat_id == chat_id,
            messages.c.user_id == user_id,
            messages.c.role == "user",
            messages.c.external_ref == ref,
            messages.c.text != MARK,
        )
        .order_by(messages.c.id)
    )
    return (await connection.execute(query)).mappings().all()


async def _answers(connection: AsyncConnection, row: sa.RowMapping) -> Sequence[sa.RowMapping]:
    """What Merk said to it, working output too."""
    if row["inbox_id"] is None:
        return ()
    query = sa.select(messages).where(
        messages.c.session_id == row["session_id"],
        messages.c.role == "assistant",
        messages.c.inbox_id == row["inbox_id"],
    )
    return (await connection.execute(query.order_by(messages.c.id))).mappings().all()


async def _empty_traffic(connection: AsyncConnection, row: sa.RowMapping, tellings: Sequence[Telling], now: int) -> int:
    """What waits to be worked on or sent, and the buttons that would bring the words back."""
    count = 0
    if row["inbox_id"] is not None:
        count += await erasure.empty_inbox(connection, [row["inbox_id"]], now)
        waiting = sa.select(outbox).where(outbox.c.inbox_id == row["inbox_id"], outbox.c.event.is_not(None))
        for each in (await connection.execute(waiting)).mappings().all():
            event = _without(tellings, each["event"])
            if event != each["event"]:
                await connection.execute(outbox.update().where(outbox.c.id == each["id"]).values(event=event))
                count += 1
    buttons = sa.select(confirmations).where(confirmations.c.session_id == row["session_id"])
    for each in (await connection.execute(buttons)).mappings().all():
        if each["data"].get("message_id") == row["id"] or _without(tellings, each["data"]) != each["data"]:
            await connection.execute(confirmations.delete().where(confirmations.c.token == each["token"]))
            count += 1
    return count


async def _drop_title(connection: AsyncConnection, session_id: int, tellings: Sequence[Telling]) -> None:
    """A title that tells it is made anew later."""
    query = sa.select(sessions.c.title).where(sessions.c.id == session_id)
    title = str((await connection.execute(query)).scalar_one())
    if redact(tellings, title) != title:
        await connection.execute(sessions.update().where(sessions.c.id == session_id).values(title=""))


def _without(tellings: Sequence[Telling], value: Any) -> Any:
    return erasure.rewritten(value, lambda text: redact(tellings, text, is_strict=True))


def _line(row: sa.RowMapping) -> Line:
    return Line(row["id"], row["session_id"], row["user_id"], row["role"], row["text"], row["is_ephemeral"])
