"""Everything of one person: handed out, or erased. Other people's rows in a group stay, without that person's part."""

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory import reach
from memory.forgetting import Doomed, Forgetting
from memory.instants import from_ms, to_ms
from memory.kinds.observations import losing
from memory.kinds.observations import store as observation_store
from memory.kinds.observations.losing import Lost
from memory.ports import Clock
from memory.scope import Audience, sensitive_key
from memory.storage import digests, erasure, people, telemetry
from memory.storage import instructions as standing
from memory.storage import sessions as sessions_store
from memory.storage.database import Database
from memory.storage.tables import (
    chats,
    facts,
    instructions,
    messages,
    observations,
    outbox,
    pairing_codes,
    reminders,
    sessions,
    summaries,
    telemetry_events,
    users,
)
from memory.types import Receipt

_INSTANTS = ("created_at", "last_used_at", "updated_at", "valid_from", "valid_to", "redacted_at", "due_at")
_EXPORTED = {
    "sessions": ("id", "title", "status", "created_at", "last_used_at"),
    "messages": ("id", "role", "speaker", "origin", "text", "blocks", "is_ephemeral", "tool", "created_at"),
    "facts": ("id", "scope", "text", "speaker", "source_message_ids", "valid_from", "valid_to", "superseded_by"),
    "instructions": ("id", "subject", "text", "restored_from", "created_at"),
    "observations": ("type", "title", "narrative", "facts", "concepts", "language", "subject", "attribute", "value"),
    "reminders": ("id", "text", "starts", "timezone", "rule", "due_at", "status", "created_at"),
    "summary": ("text", "request", "investigated", "learned", "completed", "next_steps", "notes", "generated_by_model"),
}


class People:
    """Export and erasure by person, for the command line and the law."""

    def __init__(self, database: Database, clock: Clock, forgetting: Forgetting) -> None:
        self._database = database
        self._clock = clock
        self._forgetting = forgetting

    async def erase(self, user_id: int) -> Receipt:
        """Erase a person: account, identities, facts, sessions and their part in groups."""
        async with self._database.write() as connection:
            own = await erasure.sessions_of(connection, [_owner(user_id)])
            places = await sessions_store.chats_of(connection, _owner(user_id))
            doomed = await self._erase_history(connection, user_id)
            for audience, fact_ids in await _facts_in_groups(connection, user_id):
                doomed.add(await self._forgetting.remove_facts(connection, audience, fact_ids) or Doomed())
            gone = await connection.execute(
                facts.delete().where(sa.or_(facts.c.owner == _owner(user_id), facts.c.user_id == user_id))
            )
            doomed.add(Doomed(receipt=Receipt(facts=gone.rowcount)))
            await self._erase_observations(connection, user_id, doomed)
            of_person = sa.or_(telemetry_events.c.user_id == user_id, telemetry_events.c.session_id.in_(own))
            await telemetry.erase(connection, of_person, to_ms(self._clock.now()))
            await _erase_account(connection, user_id, places)
        return await self._forgetting.follow_up(doomed)

    async def erase_history(self, user_id: int) -> Receipt:
        """Erase all that a person said and was answered; facts, account and settings stay."""
        async with self._database.write() as connection:
            doomed = await self._erase_history(connection, user_id)
        return await self._forgetting.follow_up(doomed)

    async def export(self, user_id: int) -> dict[str, Any]:
        """Everything of one person as JSON-able data; of groups, what this person said there."""
        async with self._database.search() as connection:
            user = (await connection.execute(sa.select(users).where(users.c.id == user_id))).mappings().first()
            if user is None:
                return {}
            return {
                "user": _plain(user, ("id", "name", "role", "language", "timezone", "created_at")),
                "identities": sorted(await people.identities_of(connection, user_id)),
                "facts": await _export_facts(connection, user_id),
                "instructions": await _export_instructions(connection, user_id),
                "observations": await _export_observations(connection, user_id),
                "reminders": await _export_reminders(connection, user_id),
                "sessions": await _export_sessions(connection, user_id),
            }

    async def _erase_history(self, connection: AsyncConnection, user_id: int) -> Doomed:
        now = to_ms(self._clock.now())
        me = Audience(user_id, chat_id=0, is_private=True)
        waiting = [row["id"] for row in await erasure.inbox_of(connection, me)]
        pending = await erasure.empty_inbox(connection, waiting, now)
        pending += (await connection.execute(outbox.delete().where(outbox.c.user_id == user_id))).rowcount
        doomed = await self._forgetting.discard(connection, [], [me.owner])
        doomed.add(Doomed(receipt=Receipt(pending=pending)))
        doomed.add(await self._leave_groups(connection, user_id, now))
        mine = await erasure.sessions_of(connection, [me.owner])
        doomed.add(await self._forgetting.remove_sessions(connection, mine))
        return doomed

    async def _erase_observations(self, connection: AsyncConnection, user_id: int, doomed: Doomed) -> None:
        """What is left of one's own, and what hooks and taps kept of one elsewhere: no words of others hang on it."""
        mine = sa.or_(
            observations.c.owner.in_((_owner(user_id), sensitive_key(user_id))), observations.c.user_id == user_id
        )
        rows = (await connection.execute(sa.select(observations.c.id, observations.c.owner).where(mine))).all()
        lost = Lost()
        for observation_id, owner in rows:
            lost.vectors.setdefault(owner, []).append(observation_id)
        lost.deleted = await observation_store.delete(connection, [row[0] for row in rows])
        await self._forgetting.lose(connection, doomed, lost)

    async def _leave_groups(self, connection: AsyncConnection, user_id: int, now: int) -> Doomed:
        """Delete what the person said among others, and the answers to it; a session of nobody else goes whole."""
        query = (
            sa.select(messages.c.id, messages.c.inbox_id, messages.c.session_id, sessions.c.owner)
            .join(sessions, sessions.c.id == messages.c.session_id)
            .where(messages.c.user_id == user_id, sessions.c.owner != _owner(user_id))
        )
        said = (await connection.execute(query)).mappings().all()
        asked = sorted({row["inbox_id"] for row in said if row["inbox_id"] is not None})
        stale = sorted({row["session_id"] for row in said})
        own = sa.or_(messages.c.id.in_([row["id"] for row in said]), messages.c.inbox_id.in_(asked))
        doomed_ids = list(
            (await connection.execute(sa.select(messages.c.id).where(own, messages.c.session_id.in_(stale)))).scalars()
        )
        owners = sorted({row["owner"] for row in said})
        await erasure.empty_inbox(connection, asked, now)
        lost = await losing.withdraw(connection, doomed_ids, now)
        await connection.execute(messages.delete().where(messages.c.id.in_(doomed_ids)))
        await reach.unlink_sources(connection, set(owners), doomed_ids)
        doomed = await self._forgetting.discard(connection, stale, owners)
        await self._forgetting.lose(connection, doomed, lost)
        doomed.add(Doomed(receipt=Receipt(messages_redacted=len(doomed_ids))))
        doomed.add(await self._forgetting.remove_sessions(connection, await _hand_over(connection, user_id)))
        return doomed


async def _hand_over(connection: AsyncConnection, user_id: int) -> list[int]:
    """Give the group sessions that a person opened to somebody who spoke there; return those where nobody did."""
    opened = sa.select(sessions.c.id).where(sessions.c.user_id == user_id, sessions.c.owner != _owner(user_id))
    lonely: list[int] = []
    for session_id in (await connection.execute(opened)).scalars().all():
        other = sa.select(sa.func.min(messages.c.user_id)).where(
            messages.c.session_id == session_id, messages.c.user_id != user_id
        )
        heir = (await connection.execute(other)).scalar_one_or_none()
        if heir is None:
            lonely.append(session_id)
        else:
            await connection.execute(sessions.update().where(sessions.c.id == session_id).values(user_id=heir))
    return lonely


async def _erase_account(connection: AsyncConnection, user_id: int, places: Collection[int]) -> None:
    """`places` are the private chats that they wrote in; one in which others wrote since stays."""
    keys = await people.identities_of(connection, user_id)
    held = sa.select(sessions.c.id).where(sessions.c.chat_id == chats.c.id)
    own = [
        sa.and_(chats.c.transport == people.network_of(key), chats.c.external_id == key.partition(":")[2])
        for key in keys
    ]
    mine = sa.or_(chats.c.id.in_(places), *own)
    await connection.execute(chats.delete().where(mine, chats.c.kind == "ai", ~held.exists()))
    await connection.execute(pairing_codes.delete().where(pairing_codes.c.identity.in_(keys)))
    await standing.forget(connection, _owner(user_id))
    await digests.drop(connection, user_id)
    await connection.execute(users.delete().where(users.c.id == user_id))  # identities, grants and buttons follow


async def _facts_in_groups(connection: AsyncConnection, user_id: int) -> list[tuple[Audience, list[int]]]:
    query = sa.select(facts.c.owner, facts.c.id).where(
        facts.c.user_id == user_id, facts.c.owner != _owner(user_id), facts.c.valid_to.is_(None)
    )
    by_owner: dict[str, list[int]] = {}
    for owner, fact_id in (await connection.execute(query)).all():
        by_owner.setdefault(owner, []).append(fact_id)
    return [(Audience(user_id, int(owner[1:]), is_private=False), ids) for owner, ids in by_owner.items()]


async def _export_facts(connection: AsyncConnection, user_id: int) -> list[dict[str, Any]]:
    query = (
        sa.select(facts)
        .where(sa.or_(facts.c.owner == _owner(user_id), facts.c.user_id == user_id))
        .order_by(facts.c.id)
    )
    return [_plain(row, _EXPORTED["facts"]) for row in (await connection.execute(query)).mappings()]


async def _export_instructions(connection: AsyncConnection, user_id: int) -> list[dict[str, Any]]:
    """Every version that this person applied, of their own and of the bot's character."""
    query = sa.select(instructions).where(instructions.c.user_id == user_id).order_by(instructions.c.id)
    return [_plain(row, _EXPORTED["instructions"]) for row in (await connection.execute(query)).mappings()]


async def _export_observations(connection: AsyncConnection, user_id: int) -> list[dict[str, Any]]:
    """One's own, and what was noticed elsewhere of what one said; of the evidence one's own words only."""
    private = (_owner(user_id), sensitive_key(user_id))
    mine = sa.or_(observations.c.owner.in_(private), observations.c.user_id == user_id)
    owners = list((await connection.execute(sa.select(observations.c.owner).distinct().where(mine))).scalars())
    exported: list[dict[str, Any]] = []
    for each in await observation_store.load(connection, owners, mine) if owners else ():
        said = [quote for quote in each.evidence if each.owner in private or quote.user_id == user_id]
        content: dict[str, Any] = {name: getattr(each.content, name) for name in _EXPORTED["observations"]}
        content |= {"facts": [*each.content.facts], "concepts": [*each.content.concepts, *each.content.aliases]}
        exported.append(
            {"id": each.id, "scope": each.scope}
            | content
            | {"trigger_source": each.trigger_source, "proof_count": each.proof_count}
            | {"valid_from": each.valid_from.isoformat(), "valid_to": each.valid_to and each.valid_to.isoformat()}
            | {"superseded_by": each.superseded_by, "created_at": each.created_at.isoformat()}
            | {"evidence": [{"message_id": quote.message_id, "quote": quote.quote} for quote in said]}
        )
    return exported


async def _export_reminders(connection: AsyncConnection, user_id: int) -> list[dict[str, Any]]:
    query = sa.select(reminders).where(reminders.c.user_id == user_id).order_by(reminders.c.id)
    return [_plain(row, _EXPORTED["reminders"]) for row in (await connection.execute(query)).mappings()]


async def _export_sessions(connection: AsyncConnection, user_id: int) -> list[dict[str, Any]]:
    """One's own sessions whole, working output marked as such; of a group's only what one said."""
    spoke = sa.select(messages.c.session_id).where(messages.c.user_id == user_id)
    query = (
        sa.select(sessions)
        .where(sa.or_(sessions.c.owner == _owner(user_id), sessions.c.id.in_(spoke)))
        .order_by(sessions.c.id)
    )
    exported: list[dict[str, Any]] = []
    for row in (await connection.execute(query)).mappings().all():
        is_own = row["owner"] == _owner(user_id)
        said = sa.select(messages).where(messages.c.session_id == row["id"]).order_by(messages.c.id)
        if not is_own:
            said = said.where(messages.c.user_id == user_id)
        summary = (
            (await connection.execute(sa.select(summaries).where(summaries.c.session_id == row["id"])))
            .mappings()
            .first()
        )
        exported.append(
            _plain(row, _EXPORTED["sessions"])
            | {
                "is_private": is_own,
                "title": row["title"] if is_own else "",  # of a group it may be made of what somebody else said
                "messages": [
                    _plain(each, _EXPORTED["messages"]) for each in (await connection.execute(said)).mappings()
                ],
                "summary": _plain(summary, _EXPORTED["summary"]) if summary is not None and is_own else None,
            }
        )
    return exported


def _plain(row: sa.RowMapping, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: from_ms(row[name]).isoformat() if name in _INSTANTS and row[name] is not None else row[name]
        for name in names
    }


def _owner(user_id: int) -> str:
    return Audience(user_id, chat_id=0, is_private=True).owner
