"""The rows in which a person's words can stand, found by owner and rewritten or removed; and the disk after it.

Rule: every function takes the owners whose rows it may touch; nothing here works without them (pitfall P28).
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.language.telling import Line
from memory.scope import Audience
from memory.storage.database import Database
from memory.storage.tables import chats, confirmations, identities, inbox, messages, outbox, sessions

Rewrite = Callable[[str], str]
"""A text without what is to go; the same text where nothing has to."""
PlaceRewrite = Callable[[str, bool], str]
"""The same, told whether the text stands beside a message that held it."""

_STRUCTURE = frozenset(
    (
        *("kind", "type", "token", "id", "call_id", "tool_use_id", "event_id", "room_id", "ref", "refs", "data"),
        *("role", "transport", "sender", "msgtype", "place", "lane", "language_code"),
        *("username", "first_name", "last_name"),
    )
)
"""Keys whose values are not anybody's words: a rewrite there would only break the row."""
_SENDERS = frozenset(("from", "sender", "user", "user_id", "identity"))
_CHATS = frozenset(("chat", "chat_id", "room_id"))
_QUOTES = ("reply", "quote", "external_reply", "forward", "pinned")


log = structlog.get_logger(__name__)


async def sessions_of(connection: AsyncConnection, owners: Sequence[str]) -> list[int]:
    query = sa.select(sessions.c.id).where(sessions.c.owner.in_(owners)).order_by(sessions.c.id)
    return [int(each) for each in (await connection.execute(query)).scalars()]


async def lines_of(connection: AsyncConnection, owners: Sequence[str]) -> list[Line]:
    """Every message under these owners, working output too, in the order of the log."""
    query = (
        sa.select(messages.c.id, messages.c.session_id, messages.c.user_id, messages.c.role, messages.c.text)
        .add_columns(messages.c.is_ephemeral)
        .join(sessions, sessions.c.id == messages.c.session_id)
        .where(sessions.c.owner.in_(owners))
        .order_by(messages.c.id)
    )
    return [Line(*row) for row in (await connection.execute(query)).all()]


async def rewrite_messages(
    connection: AsyncConnection,
    owners: Sequence[str],
    texts: dict[int, str],
    rewrite: PlaceRewrite,
    now: int,
) -> set[int]:
    """Put new texts in place and rewrite the blocks; return the ids of all messages that changed."""
    changed = set(texts)
    for message_id, text in texts.items():
        await connection.execute(
            messages.update().where(messages.c.id == message_id).values(text=text, redacted_at=now)
        )
    query = (
        sa.select(messages.c.id, messages.c.blocks)
        .join(sessions, sessions.c.id == messages.c.session_id)
        .where(sessions.c.owner.in_(owners), messages.c.blocks.is_not(None))
    )
    for message_id, blocks in (await connection.execute(query)).all():
        new = rewritten(blocks, lambda text, told=message_id in texts: rewrite(text, told))
        if new != blocks:
            changed.add(message_id)
            await connection.execute(
                messages.update().where(messages.c.id == message_id).values(blocks=new, redacted_at=now)
            )
    return changed


async def rewrite_sessions(connection: AsyncConnection, owners: Sequence[str], rewrite: Rewrite) -> set[int]:
    """Rewrite titles, prompts and metadata; a title of which nothing is left is made anew later."""
    query = sa.select(sessions.c.id, sessions.c.title, sessions.c.user_prompt, sessions.c.metadata).where(
        sessions.c.owner.in_(owners)
    )
    changed: set[int] = set()
    for session_id, title, prompt, metadata in (await connection.execute(query)).all():
        new_title = title if rewrite(title) == title else ""
        values = {"title": new_title, "user_prompt": rewrite(prompt), "metadata": rewritten(metadata, rewrite)}
        if values != {"title": title, "user_prompt": prompt, "metadata": metadata}:
            changed.add(session_id)
            await connection.execute(sessions.update().where(sessions.c.id == session_id).values(values))
    return changed


async def rewrite_traffic(
    connection: AsyncConnection, audience: Audience, touched: Iterable[int], rewrite: PlaceRewrite
) -> int:
    """Rewrite what waits to be worked on or sent, and take away buttons that carry the words; return how many rows."""
    told = set(touched)
    count = 0
    for row in await _outbox_of(connection, audience):
        count += await _rewrite_row(connection, outbox, row, "event", rewrite, is_told=row["message_id"] in told)
    inboxes = set((await connection.execute(sa.select(messages.c.inbox_id).where(messages.c.id.in_(told)))).scalars())
    for row in await inbox_of(connection, audience):
        count += await _rewrite_row(connection, inbox, row, "payload", rewrite, is_told=row["id"] in inboxes)
    query = sa.select(confirmations.c.token, confirmations.c.data).where(_buttons_of(audience))
    for token, data in (await connection.execute(query)).all():
        if rewritten(data, lambda text: rewrite(text, False)) != data:
            await connection.execute(confirmations.delete().where(confirmations.c.token == token))
            count += 1
    return count


def rewritten(value: Any, rewrite: Rewrite) -> Any:
    """A JSON value with its words rewritten."""
    if isinstance(value, str):
        return rewrite(value)
    if isinstance(value, list):
        return [rewritten(each, rewrite) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {
            key: each if key in _STRUCTURE and isinstance(each, str) else rewritten(each, rewrite)
            for key, each in items
        }
    return value


async def empty_inbox(connection: AsyncConnection, inbox_ids: Sequence[int], now: int) -> int:
    """Call off received updates: their words go, the rows stay so that a repeat is still recognised."""
    result = await connection.execute(
        inbox.update()
        .where(inbox.c.id.in_(inbox_ids), inbox.c.payload.is_not(None))
        .values(payload=sa.null(), status="done", done_at=now)
    )
    return result.rowcount


async def leave_no_trace(database: Database) -> bool:
    """Rewrite the database file without anything deleted, and empty its log; False when readers were in the way.

    `secure_delete` alone does not do: a page that was split keeps copies of moved rows in its gap (seen in half of
    the trials with 3,000 rows), until the file is written anew. Costs about a second per 100 MB.
    """
    if not database.is_sqlite:
        return True
    async with database.write() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        await driver.commit()  # VACUUM runs outside a transaction; we still hold the only write connection
        try:
            await driver.execute("VACUUM")
            cursor = await driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # waits for readers up to busy_timeout
            is_busy, *_ = await cursor.fetchone()
            await cursor.close()
        except sqlite3.OperationalError as error:  # another process writes, or the disk is full
            log.warning("erasure.not_rewritten", error=type(error).__name__)
            return False
    return not is_busy


def file_of(database: Database) -> Path | None:
    """The file of a SQLite database."""
    name = sa.make_url(database.url).database
    return Path(name) if database.is_sqlite and name and name != ":memory:" else None


async def _rewrite_row(
    connection: AsyncConnection,
    table: sa.Table,
    row: sa.RowMapping,
    column: str,
    rewrite: PlaceRewrite,
    *,
    is_told: bool,
) -> bool:
    new = rewritten(row[column], lambda text: rewrite(text, is_told))
    if new == row[column]:
        return False
    await connection.execute(table.update().where(table.c.id == row["id"]).values({column: new}))
    return True


def _buttons_of(audience: Audience) -> sa.ColumnElement[bool]:
    mine = sa.select(sessions.c.id).where(sessions.c.owner == audience.owner)
    of_session = confirmations.c.session_id.in_(mine)
    if not audience.is_private:
        return of_session
    return sa.or_(
        of_session, sa.and_(confirmations.c.session_id.is_(None), confirmations.c.user_id == audience.user_id)
    )


async def _outbox_of(connection: AsyncConnection, audience: Audience) -> Sequence[sa.RowMapping]:
    """What waits to be sent to this audience."""
    mine = sa.select(sessions.c.id).where(sessions.c.owner == audience.owner)
    query = sa.select(outbox).where(outbox.c.event.is_not(None))
    if audience.is_private:
        alone = sa.and_(outbox.c.session_id.is_(None), outbox.c.user_id == audience.user_id)
        query = query.where(sa.or_(outbox.c.session_id.in_(mine), alone))
        return (await connection.execute(query)).mappings().all()
    place = await _place(connection, audience)
    rows = (await connection.execute(query)).mappings().all()
    sessions_here = set((await connection.execute(mine)).scalars())
    return [
        row
        for row in rows
        if row["session_id"] in sessions_here
        or (row["session_id"] is None and (row["transport"], row["place"].get("chat")) == place)
    ]


async def inbox_of(connection: AsyncConnection, audience: Audience) -> list[sa.RowMapping]:
    """What was received from this audience and is not finished: told by the sender's or the chat's own id in it."""
    rows = (await connection.execute(sa.select(inbox).where(inbox.c.payload.is_not(None)))).mappings().all()
    if not audience.is_private:
        transport, chat = await _place(connection, audience)
        return [row for row in rows if row["transport"] == transport and chat in _chats(row["payload"])]
    query = sa.select(identities.c.key).where(identities.c.user_id == audience.user_id)
    keys = {tuple(key.split(":", 1)) for key in (await connection.execute(query)).scalars()}
    return [
        row
        for row in rows
        if any(row["transport"] == name and (_senders(row["payload"]) or {who}) == {who} for name, who in keys)
    ]


async def has_unfinished(connection: AsyncConnection, keys: Collection[str]) -> bool:
    """Whether something of these identities is still being worked on, or waits to be."""
    query = sa.select(inbox.c.transport, inbox.c.payload).where(inbox.c.payload.is_not(None))
    known = [key.split(":", 1) for key in keys]
    return any(
        name == transport and who in (_senders(payload) or {who})
        for transport, payload in (await connection.execute(query)).all()
        for name, who in known
    )


async def _place(connection: AsyncConnection, audience: Audience) -> tuple[str, str]:
    query = sa.select(chats.c.transport, chats.c.external_id).where(chats.c.id == audience.chat_id)
    row = (await connection.execute(query)).first()
    return (row[0], row[1]) if row else ("", "")


def _senders(payload: Any) -> set[str]:
    """The ids of who sent an update, not of whom it quotes. Empty where the transport knows one person only."""
    found: set[str] = set()
    if isinstance(payload, dict):
        for key, value in cast("dict[str, Any]", payload).items():
            if key in _SENDERS:
                found.add(_id_of(value))
            elif not key.startswith(_QUOTES):
                found |= _senders(value)
    return found


def _chats(payload: Any) -> set[str]:
    """The ids of the chats an update comes from."""
    found: set[str] = set()
    if isinstance(payload, dict):
        for key, value in cast("dict[str, Any]", payload).items():
            if key in _CHATS:
                found.add(_id_of(value))
            elif not key.startswith(_QUOTES):
                found |= _chats(value)
    return found


def _id_of(value: Any) -> str:
    return str(cast("dict[str, Any]", value).get("id")) if isinstance(value, dict) else str(value)


async def waiting_in(connection: AsyncConnection, session_ids: Sequence[int]) -> int:
    """How many buttons and unsent answers hang on these sessions: they go with them."""
    count = 0
    for table in (confirmations, outbox):
        query = sa.select(sa.func.count()).select_from(table).where(table.c.session_id.in_(session_ids))
        if table is outbox:
            query = query.where(outbox.c.event.is_not(None))
        count += int((await connection.execute(query)).scalar_one())
    return count
