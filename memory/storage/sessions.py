"""Chats and their sessions: one session of a place is current, the others wait to be switched to."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.instants import from_ms
from memory.storage import kept
from memory.storage import reminders as reminders_store
from memory.storage.index import lexical
from memory.storage.tables import chat_members, chats, facts, messages, observations, reminders, sessions, summaries
from memory.types import Audience, Session

UNSWEPT = "memory.unswept"
"""kept_values: the owners whose vectors are still to be cleared. `memory.forgetting` does it."""


async def chat_id(connection: AsyncConnection, transport: str, external_id: str) -> int | None:
    query = sa.select(chats.c.id).where(chats.c.transport == transport, chats.c.external_id == external_id)
    return (await connection.execute(query)).scalar_one_or_none()


async def ensure_chat(
    connection: AsyncConnection, transport: str, external_id: str, *, kind: str, title: str, now: int
) -> int:
    """The id of a chat, made on first sight."""
    known = await chat_id(connection, transport, external_id)
    if known is not None:
        return known
    result = await connection.execute(
        chats.insert().values(transport=transport, external_id=external_id, kind=kind, title=title, created_at=now)
    )
    key = result.inserted_primary_key
    assert key is not None
    return int(key[0])


async def move_chat(connection: AsyncConnection, transport: str, old: str, new: str) -> None:
    """Follow a chat to its new id on the transport (a group that became a supergroup).

    Where somebody wrote under the new id before this was known, the two become one.
    """
    await reminders_store.follow_chat(connection, transport, old, new)
    leaving = await chat_id(connection, transport, old)
    staying = await chat_id(connection, transport, new)
    if leaving is not None and staying is not None:
        await _merge(connection, leaving, staying)
    else:
        await connection.execute(chats.update().where(chats.c.id == leaving).values(external_id=new))


async def _merge(connection: AsyncConnection, leaving: int, staying: int) -> None:
    """Move everything of one chat to another. Of two current sessions of a place the one begun first goes on."""
    both = sessions.c.chat_id.in_((leaving, staying)), sessions.c.is_current
    later = sa.select(sa.func.max(sessions.c.id)).where(*both).group_by(sessions.c.thread).having(sa.func.count() > 1)
    await connection.execute(sessions.update().where(sessions.c.id.in_(later)).values(is_current=False))
    await _hand_over(connection, _owner_of(leaving), _owner_of(staying))
    await connection.execute(sessions.update().where(sessions.c.chat_id == leaving).values(chat_id=staying))
    await connection.execute(chats.delete().where(chats.c.id == leaving))


async def _hand_over(connection: AsyncConnection, old: str, new: str) -> None:
    """Give all memory of one owner to another; its vectors are made anew, and swept away where they were."""
    twin = facts.alias()
    same = sa.select(twin.c.id).where(
        twin.c.owner == new, twin.c.valid_to.is_(None), twin.c.content_hash == facts.c.content_hash
    )
    await connection.execute(
        facts.update()
        .where(facts.c.owner == old, facts.c.valid_to.is_(None), same.exists())
        .values(valid_to=facts.c.valid_from, superseded_by=same.scalar_subquery())
    )
    of_old = "rowid IN (SELECT session_id FROM summaries WHERE owner = :old)"
    words = sa.text(f"UPDATE {lexical.TABLE} SET owner = :new WHERE {of_old}")
    await connection.execute(words, {"old": old, "new": new})
    await connection.execute(summaries.update().where(summaries.c.owner == old).values(owner=new, indexed_as=None))
    await _hand_over_observations(connection, old, new)
    for table in (sessions, facts, reminders):
        await connection.execute(table.update().where(table.c.owner == old).values(owner=new))
    unswept: list[str] = await kept.load(connection, UNSWEPT) or []
    await kept.put(connection, UNSWEPT, sorted({*unswept, old}), now=0)  # nobody asks since when


async def _hand_over_observations(connection: AsyncConnection, old: str, new: str) -> None:
    """What both know holds once; the members of both are present now."""
    twin = observations.alias()
    same = sa.select(twin.c.id).where(
        twin.c.owner == new, twin.c.valid_to.is_(None), twin.c.content_hash == observations.c.content_hash
    )
    mine = observations.c.owner == old
    await connection.execute(
        observations.update()
        .where(mine, observations.c.valid_to.is_(None), same.exists())
        .values(valid_to=observations.c.valid_from, superseded_by=same.scalar_subquery())
    )
    words = sa.text(f"UPDATE {lexical.OBSERVATIONS} SET owner = :new WHERE owner = :old")
    await connection.execute(words, {"old": old, "new": new})
    await connection.execute(observations.update().where(mine).values(owner=new, indexed_as=None))
    there, here = int(old[1:]), int(new[1:])
    known = sa.select(chat_members.c.identity).where(chat_members.c.chat_id == here)
    members = chat_members.update().where(chat_members.c.chat_id == there, chat_members.c.identity.not_in(known))
    await connection.execute(members.values(chat_id=here))


def _owner_of(chat: int) -> str:
    return Audience(0, chat, is_private=False).owner


async def current(connection: AsyncConnection, chat: int, thread: str) -> Session | None:
    query = sa.select(sessions).where(sessions.c.chat_id == chat, sessions.c.thread == thread, sessions.c.is_current)
    row = (await connection.execute(query)).mappings().first()
    return _session(row) if row else None


# built once: every message asks it
_LOOK_UP = (
    sa.select(chats.c.id.label("chat"), sessions)
    .select_from(
        chats.outerjoin(
            sessions,
            sa.and_(
                sessions.c.chat_id == chats.c.id,
                sessions.c.thread == sa.bindparam("at_thread"),
                sessions.c.is_current,
            ),
        )
    )
    .where(chats.c.transport == sa.bindparam("on_transport"), chats.c.external_id == sa.bindparam("in_chat"))
)


async def look_up(
    connection: AsyncConnection, transport: str, external_id: str, thread: str
) -> tuple[int | None, Session | None]:
    """The id of a chat and the current session of a place in it, as far as they are there."""
    where = {"on_transport": transport, "in_chat": external_id, "at_thread": thread}
    row = (await connection.execute(_LOOK_UP, where)).mappings().first()
    if row is None:
        return None, None
    return row["chat"], _session(row) if row["id"] is not None else None


async def start(
    connection: AsyncConnection, audience: Audience, thread: str, *, now: int, title: str = "", is_current: bool = True
) -> Session:
    """Open a session in a place and make it the current one there."""
    if is_current:
        await _step_down(connection, audience.chat_id, thread)
    values = {
        "chat_id": audience.chat_id,
        "thread": thread,
        "user_id": audience.user_id,
        "owner": audience.owner,
        "title": title,
        "is_current": is_current,
        "created_at": now,
        "last_used_at": now,
    }
    result = await connection.execute(sessions.insert().values(values))
    key = result.inserted_primary_key
    assert key is not None
    found = await by_id(connection, int(key[0]))
    assert found is not None
    return found


async def switch(connection: AsyncConnection, session: Session) -> None:
    """Make a session the current one of its place."""
    await _step_down(connection, session.chat_id, session.thread)
    await connection.execute(sessions.update().where(sessions.c.id == session.id).values(is_current=True))


async def by_id(connection: AsyncConnection, session_id: int) -> Session | None:
    row = (await connection.execute(sa.select(sessions).where(sessions.c.id == session_id))).mappings().first()
    return _session(row) if row else None


async def holding(connection: AsyncConnection, chat: int, user_id: int, ref: str) -> Session | None:
    """The session of a chat in which this person said what the transport calls `ref`."""
    said = sa.select(messages.c.session_id).where(messages.c.external_ref == ref, messages.c.user_id == user_id)
    query = sa.select(sessions).where(sessions.c.chat_id == chat, sessions.c.id.in_(said)).limit(1)
    row = (await connection.execute(query)).mappings().first()
    return _session(row) if row else None


async def page(connection: AsyncConnection, audience: Audience, *, offset: int, limit: int) -> list[Session]:
    """The sessions of this audience that hold anything or are current, newest first."""
    spoken = sa.select(messages.c.id).where(messages.c.session_id == sessions.c.id).exists()
    query = (
        sa.select(sessions)
        .where(_listed(audience), sa.or_(spoken, sessions.c.is_current))
        .order_by(sessions.c.last_used_at.desc(), sessions.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return [_session(row) for row in (await connection.execute(query)).mappings()]


async def chats_of(connection: AsyncConnection, owner: str) -> list[int]:
    """The chats in which an owner has sessions."""
    query = sa.select(sessions.c.chat_id).distinct().where(sessions.c.owner == owner)
    return list((await connection.execute(query)).scalars())


async def networks(connection: AsyncConnection, chat_ids: Collection[int]) -> dict[int, str]:
    """The transport of each chat."""
    query = sa.select(chats.c.id, chats.c.transport).where(chats.c.id.in_(chat_ids))
    return {row[0]: row[1] for row in await connection.execute(query)}


async def rename(connection: AsyncConnection, session_id: int, title: str) -> None:
    await connection.execute(sessions.update().where(sessions.c.id == session_id).values(title=title))


# built once: every message does it
_TOUCH = sessions.update().where(sessions.c.id == sa.bindparam("touched")).values(last_used_at=sa.bindparam("at"))


async def touch(connection: AsyncConnection, session_id: int, now: int) -> None:
    await connection.execute(_TOUCH, {"touched": session_id, "at": now})


async def pin(connection: AsyncConnection, session_id: int, tier: str | None) -> None:
    """Have one model answer in a session from now on; None: whichever fits each message."""
    await connection.execute(sessions.update().where(sessions.c.id == session_id).values(pinned_tier=tier))


async def give_to(connection: AsyncConnection, session_id: int, tier: str) -> None:
    """Note which model the matter in hand was given to: the next message tends to go there too."""
    await connection.execute(sessions.update().where(sessions.c.id == session_id).values(routed_tier=tier))


async def forget_thread(connection: AsyncConnection, chat: int, thread: str) -> None:
    """A thread was deleted on the transport: nothing is current there any more, the sessions stay."""
    await _step_down(connection, chat, thread)


def _listed(audience: Audience) -> sa.ColumnElement[bool]:
    if audience.is_private:  # one's own, from every private place
        return sessions.c.owner == audience.owner
    return sessions.c.chat_id == audience.chat_id


async def _step_down(connection: AsyncConnection, chat: int, thread: str) -> None:
    await connection.execute(
        sessions.update()
        .where(sessions.c.chat_id == chat, sessions.c.thread == thread, sessions.c.is_current)
        .values(is_current=False)
    )


def _session(row: sa.RowMapping) -> Session:
    return Session(
        id=row["id"],
        chat_id=row["chat_id"],
        thread=row["thread"],
        user_id=row["user_id"],
        owner=row["owner"],
        title=row["title"],
        is_current=row["is_current"],
        created_at=from_ms(row["created_at"]),
        last_used_at=from_ms(row["last_used_at"]),
        awaits="awaiting" in (row["metadata"] or {}),
        pinned_tier=row["pinned_tier"],
        routed_tier=row["routed_tier"],
    )
