"""Whose rows are whose, changed as a whole: all of one person to another, or what was said in one network's chats.

Rule: which columns name a person is read from the tables themselves, so that none is forgotten; what was derived from
rows that move is made anew, and never stands under two people.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.kinds.facts.facts import hash_of
from memory.kinds.observations import store as observation_store
from memory.language.slots import say_the_same
from memory.scope import Audience, Scope, number_of, own_key, scope_of, sensitive_key
from memory.storage import digests, telemetry
from memory.storage import instructions as standing
from memory.storage.erasure import rewritten
from memory.storage.index import lexical
from memory.storage.tables import (
    chats,
    confirmations,
    evidence,
    evidence_changes,
    facts,
    grants,
    instructions,
    kept_values,
    learning,
    link_codes,
    login_links,
    messages,
    metadata,
    observation_evidence,
    observation_feedback,
    observations,
    outbox,
    reminders,
    session_states,
    sessions,
    spend,
    summaries,
    team_members,
    telemetry_events,
    users,
    web_sessions,
)

_OF_ONE = (grants, link_codes, login_links, web_sessions)
"""What is not handed on: whoever joins has the rights of the other one, and opens the dashboard anew."""
_DERIVED = (evidence_changes,)
"""Tables with an owner whose rows are nobody's memory."""


@dataclass(frozen=True, slots=True)
class Belongings:
    """What goes with an identity when it is taken off: ids of rows."""

    sessions: tuple[int, ...]
    facts: tuple[int, ...]
    observations: tuple[int, ...]
    reminders: tuple[int, ...]


# --- all of one person to another ------------------------------------------------------------------


async def merge(connection: AsyncConnection, staying: int, leaving: int, now: int) -> set[str]:
    """Give everything that names one person to another, and remove the former.

    Returns the scope keys under which vectors may be left that have to go.
    """
    names = _names(leaving, staying)
    for table in _OF_ONE:
        await connection.execute(table.delete().where(table.c.user_id == leaving))
    await _join_teams(connection, staying, leaving)
    mine = (own_key(leaving), sensitive_key(leaving))
    await _give_facts(connection, sa.or_(facts.c.owner.in_(mine), facts.c.user_id == leaving), leaving, staying)
    of_them = sa.or_(observations.c.owner.in_(mine), observations.c.user_id == leaving)
    stale = await _give_observations(connection, of_them, leaving, staying, now)
    await _learn_again(connection, sa.select(messages.c.session_id).where(messages.c.user_id == leaving))
    await _give_instructions(connection, leaving, staying, now)
    for old, new in names.items():
        await _give_sessions(connection, sessions.c.owner == old, new)
    await _rename_waits(connection, sa.true(), leaving, staying)
    await _give_the_rest(connection, names, leaving, staying)
    await _speak_as(connection, sa.true(), leaving, staying)
    await telemetry.give(connection, sa.true(), leaving, staying, now)
    await _rename_in_json(connection, {**names, f"user:{leaving}": f"user:{staying}"})
    if await digests.drop(connection, leaving):
        await digests.want(connection, staying, now)
    await connection.execute(users.delete().where(users.c.id == leaving))
    await connection.execute(evidence_changes.delete().where(evidence_changes.c.owner.in_(mine)))
    return {*mine, *stale}


async def _join_teams(connection: AsyncConnection, staying: int, leaving: int) -> None:
    is_in = sa.select(team_members.c.team_id).where(team_members.c.user_id == staying)
    move = team_members.update().where(team_members.c.user_id == leaving, team_members.c.team_id.not_in(is_in))
    await connection.execute(move.values(user_id=staying))
    await connection.execute(team_members.delete().where(team_members.c.user_id == leaving))


async def _give_the_rest(connection: AsyncConnection, names: Mapping[str, str], leaving: int, staying: int) -> None:
    """Every column that refers to a person, and every owner, of whatever table."""
    for table in metadata.sorted_tables:
        for column in table.c:
            if any(key.column is users.c.id for key in column.foreign_keys):
                await connection.execute(table.update().where(column == leaving).values({column: staying}))
            if column.name == "owner" and table not in _DERIVED:
                for old, new in names.items():
                    await connection.execute(table.update().where(column == old).values({column: new}))


async def _give_instructions(connection: AsyncConnection, leaving: int, staying: int, now: int) -> None:
    """Both histories become one; what holds for the one who stays holds on, as the newest snapshot."""
    old, new = standing.subject_of(leaving), standing.subject_of(staying)
    holding = await standing.in_force(connection, new)
    await connection.execute(instructions.update().where(instructions.c.subject == old).values(subject=new))
    newest = await standing.in_force(connection, new)
    if holding is not None and newest is not None and newest.id != holding.id:
        values = {"subject": new, "text": holding.text, "user_id": staying, "restored_from": holding.id}
        await connection.execute(instructions.insert().values(**values, created_at=now))


async def _rename_in_json(connection: AsyncConnection, names: Mapping[str, str]) -> None:
    """Buttons and the marks of the day carry scope keys and the names of budgets."""

    def rename(text: str) -> str:
        return names.get(text, text)

    for column, key in ((confirmations.c.data, confirmations.c.token), (kept_values.c.value, kept_values.c.key)):
        for row_key, value in (await connection.execute(sa.select(key, column))).all():
            new: Any = rewritten(value, rename)
            if new != value:
                await connection.execute(sa.update(column.table).where(key == row_key).values({column: new}))


# --- what was said in one network's chats ----------------------------------------------------------


async def belongings(connection: AsyncConnection, user_id: int, transport: str) -> Belongings:
    """What goes with a person's identity on a transport: its private chats, and what rests on them alone."""
    own, mine = own_key(user_id), (own_key(user_id), sensitive_key(user_id))
    there = sessions.c.owner == own, sessions.c.chat_id.in_(_chats_on(transport))
    session_ids = (await connection.execute(sa.select(sessions.c.id).where(*there).order_by(sessions.c.id))).scalars()
    said = await _said_in(connection, sa.and_(*there))
    query = sa.select(facts.c.id, facts.c.source_message_ids, facts.c.network).where(facts.c.owner == own)
    rows = (await connection.execute(query.order_by(facts.c.id))).all()
    rests = sa.select(observation_evidence.c.observation_id, observation_evidence.c.message_id)
    rests = rests.join(observations).where(
        observations.c.owner.in_(mine), observation_evidence.c.message_id.is_not(None)
    )
    sources: dict[int, set[int]] = {}
    for observation_id, message_id in (await connection.execute(rests)).all():
        sources.setdefault(observation_id, set()).add(message_id)
    rings = sa.select(reminders.c.id).where(reminders.c.user_id == user_id, rings_on(transport))
    return Belongings(
        sessions=tuple(session_ids),
        # one that rests on no message was told with a command
        facts=tuple(row[0] for row in rows if (said.issuperset(row[1]) if row[1] else row[2] == transport)),
        observations=tuple(sorted(each for each, of in sources.items() if of <= said)),
        reminders=tuple((await connection.execute(rings.order_by(reminders.c.id))).scalars()),
    )


async def split(
    connection: AsyncConnection, user_id: int, new: int, transport: str, going: Belongings, now: int
) -> set[str]:
    """Give a new person what belongs to one network. Returns as `merge`."""
    await _give_sessions(connection, sessions.c.id.in_(going.sessions), own_key(new))
    here = sessions.c.chat_id.in_(_chats_on(transport))
    in_them = sa.select(sessions.c.id).where(here)
    await _let_go_of(
        connection, user_id, await _said_in(connection, sa.and_(here, sessions.c.owner == own_key(new))), going
    )
    groups = sa.select(sa.literal("c") + sa.cast(chats.c.id, sa.Text)).where(chats.c.transport == transport)
    in_groups = facts.c.owner.in_(groups), facts.c.user_id == user_id
    await _give_facts(connection, sa.or_(facts.c.id.in_(going.facts), sa.and_(*in_groups)), user_id, new)
    noticed = sa.and_(observations.c.owner.in_(groups), observations.c.user_id == user_id)
    which = sa.or_(observations.c.id.in_(going.observations), noticed)
    stale = await _give_observations(connection, which, user_id, new, now)
    await _rename_waits(connection, here, user_id, new)
    spoken = messages.c.user_id == user_id, messages.c.session_id.in_(in_them)
    await _learn_again(connection, sa.select(messages.c.session_id).where(*spoken))
    for table in (session_states, messages, confirmations, spend):
        mine = table.c.user_id == user_id, table.c.session_id.in_(in_them)
        await connection.execute(table.update().where(*mine).values(user_id=new))
    shown = outbox.c.user_id == user_id, outbox.c.transport == transport
    await connection.execute(outbox.update().where(*shown).values(user_id=new))
    opened = sessions.update().where(here, sessions.c.user_id == user_id)
    await connection.execute(opened.values(user_id=new))
    on_answers = observation_feedback.c.message_id.in_(
        sa.select(messages.c.id).where(messages.c.session_id.in_(in_them))
    )
    judged = observation_feedback.update().where(observation_feedback.c.user_id == user_id, on_answers)
    await connection.execute(judged.values(user_id=new))
    rings = reminders.c.id.in_(going.reminders)
    await connection.execute(reminders.update().where(rings).values(user_id=new))
    alone = reminders.update().where(rings, reminders.c.owner == own_key(user_id))
    await connection.execute(alone.values(owner=own_key(new)))
    await _speak_as(connection, evidence.c.session_id.in_(in_them), user_id, new)
    await telemetry.give(connection, telemetry_events.c.session_id.in_(in_them), user_id, new, now)
    return {own_key(user_id), *stale}


async def _let_go_of(connection: AsyncConnection, user_id: int, said: Collection[int], going: Belongings) -> None:
    """What stays rests on what was said elsewhere, and no longer on these messages."""
    staying = facts.c.owner == own_key(user_id), facts.c.id.not_in(going.facts)
    for fact_id, sources in (
        await connection.execute(sa.select(facts.c.id, facts.c.source_message_ids).where(*staying))
    ).all():
        left = [each for each in sources if each not in said]
        if left != sources:
            await connection.execute(facts.update().where(facts.c.id == fact_id).values(source_message_ids=left))
    mine = (
        observations.c.owner.in_((own_key(user_id), sensitive_key(user_id))),
        observations.c.id.not_in(going.observations),
    )
    query = sa.select(observation_evidence.c.id, observation_evidence.c.message_id, observations.c.id)
    query = query.join(observations, observations.c.id == observation_evidence.c.observation_id).where(*mine)
    for row_id, message_id, observation_id in (await connection.execute(query)).all():
        if message_id in said:
            await connection.execute(observation_evidence.delete().where(observation_evidence.c.id == row_id))
            less = observations.update().where(observations.c.id == observation_id, observations.c.proof_count > 1)
            await connection.execute(less.values(proof_count=observations.c.proof_count - 1))
    elsewhere = observations.update().where(*mine, observations.c.session_id.in_(going.sessions))
    await connection.execute(elsewhere.values(session_id=None))


# --- what both do ------------------------------------------------------------------------------------


async def _give_sessions(connection: AsyncConnection, which: sa.ColumnElement[bool], owner: str) -> None:
    """Sessions with their summaries. Their messages are indexed anew; whoever learns from them begins again."""
    ids = sa.select(sessions.c.id).where(which)
    moved = list((await connection.execute(ids)).scalars())
    words = sa.text(f"UPDATE {lexical.TABLE} SET owner = :new WHERE rowid = :id")
    for session_id in moved:
        await connection.execute(words, {"id": session_id, "new": owner})
    of_them = summaries.update().where(summaries.c.session_id.in_(ids))
    await connection.execute(of_them.values(owner=owner, indexed_as=None))
    await _learn_again(connection, ids)
    await connection.execute(sessions.update().where(which).values(owner=owner))


async def _learn_again(connection: AsyncConnection, of: sa.Select[tuple[int]]) -> None:
    """Whoever is learning from these sessions has read them under a name that holds no more, and may not write."""
    in_them = learning.update().where(learning.c.session_id.in_(of))
    await connection.execute(in_them.values(lease_until=0, claim=None, retry_at=0))


async def _give_facts(connection: AsyncConnection, which: sa.ColumnElement[bool], old: int, new: int) -> None:
    """What both said becomes one row, with the sources of both."""
    names = _names(old, new)
    for row in (await connection.execute(sa.select(facts).where(which).order_by(facts.c.id))).mappings().all():
        held: str = row["owner"]
        owner = names.get(held, held)
        is_private = scope_of(owner) is not Scope.TEAM
        speaker = new if row["user_id"] == old else row["user_id"]
        hashed = hash_of(Audience(speaker or 0, number_of(owner), is_private), row["text"])
        twin = await _same_fact(connection, row, owner, hashed, speaker) if row["valid_to"] is None else None
        if twin is None:
            values = {"owner": owner, "user_id": speaker, "content_hash": hashed}
            await connection.execute(facts.update().where(facts.c.id == row["id"]).values(values))
            continue
        both = sorted({*twin["source_message_ids"], *row["source_message_ids"]})
        earliest = {name: min(twin[name], row[name]) for name in ("valid_from", "created_at")}
        await connection.execute(
            facts.update().where(facts.c.superseded_by == row["id"]).values(superseded_by=twin["id"])
        )
        await connection.execute(facts.delete().where(facts.c.id == row["id"]))
        await connection.execute(
            facts.update().where(facts.c.id == twin["id"]).values(source_message_ids=both, **earliest)
        )


async def _same_fact(
    connection: AsyncConnection, row: sa.RowMapping, owner: str, hashed: str, speaker: int | None
) -> sa.RowMapping | None:
    others = facts.c.owner == owner, facts.c.id != row["id"], facts.c.valid_to.is_(None)
    same_slot = sa.and_(facts.c.slot == row["slot"], facts.c.user_id == speaker)
    query = sa.select(facts).where(*others, sa.or_(facts.c.content_hash == hashed, same_slot)).order_by(facts.c.id)
    for other in (await connection.execute(query)).mappings().all():
        if other["content_hash"] == hashed or say_the_same(other["text"], row["text"]):
            return other
    return None


async def _give_observations(
    connection: AsyncConnection, which: sa.ColumnElement[bool], old: int, new: int, now: int
) -> set[str]:
    """What both told becomes one row, with the evidence of both. Returns whose vectors were left behind."""
    names = _names(old, new)
    owners = list((await connection.execute(sa.select(observations.c.owner).distinct().where(which))).scalars())
    stale: set[str] = set()
    words = sa.text(f"UPDATE {lexical.OBSERVATIONS} SET owner = :new WHERE rowid = :id")
    for each in await observation_store.load(connection, owners, which) if owners else ():
        owner = names.get(each.owner, each.owner)
        whose = new if each.user_id == old else each.user_id
        about = f"person:{new}" if each.content.subject == f"person:{old}" else each.content.subject
        hashed = replace(each.content, subject=about).hash_for(owner, whose)
        twin = await _same_observation(connection, each.id, owner, hashed) if each.valid_to is None else None
        if twin is not None:
            await observation_store.move_evidence(connection, each.id, twin, now)
            replaced = observations.update().where(observations.c.superseded_by == each.id)
            await connection.execute(replaced.values(superseded_by=twin))
            await observation_store.delete(connection, [each.id])
            stale.add(each.owner)
            continue
        values: dict[str, Any] = {"owner": owner, "user_id": whose, "subject": about, "content_hash": hashed}
        if owner != each.owner:
            values["indexed_as"] = None
            stale.add(each.owner)
            await connection.execute(words, {"id": each.id, "new": owner})
        await connection.execute(observations.update().where(observations.c.id == each.id).values(values))
    return stale


async def _same_observation(connection: AsyncConnection, but: int, owner: str, hashed: str) -> int | None:
    same = observations.c.owner == owner, observations.c.content_hash == hashed, observations.c.valid_to.is_(None)
    query = sa.select(observations.c.id).where(*same, observations.c.id != but)
    return (await connection.execute(query)).scalar_one_or_none()


async def _rename_waits(connection: AsyncConnection, which: sa.ColumnElement[bool], old: int, new: int) -> None:
    """After "Edit" or "Rename" a session waits for a person by their number."""
    query = sa.select(sessions.c.id, sessions.c.metadata).where(which)
    found: list[tuple[int, dict[str, Any] | None]] = [(row[0], row[1]) for row in await connection.execute(query)]
    for session_id, data in found:
        waits: dict[str, Any] = (data or {}).get("awaiting", {})
        if str(old) in waits:
            renamed = {str(new) if who == str(old) else who: value for who, value in waits.items()}
            change = sessions.update().where(sessions.c.id == session_id)
            await connection.execute(change.values(metadata={**(data or {}), "awaiting": renamed}))


async def _speak_as(connection: AsyncConnection, which: sa.ColumnElement[bool], old: int, new: int) -> None:
    """Who said what among others; what is held in memory of those owners is no longer true."""
    spoke = sa.and_(which, evidence.c.speaker == old)
    owners = sa.select(evidence.c.owner).distinct().where(spoke)
    changed = evidence_changes.update().where(evidence_changes.c.owner.in_(owners))
    await connection.execute(changed.values(words=evidence_changes.c.words + 1))
    await connection.execute(evidence.update().where(spoke).values(speaker=new))


async def _said_in(connection: AsyncConnection, which: sa.ColumnElement[bool]) -> frozenset[int]:
    """The messages of sessions."""
    query = sa.select(messages.c.id).join(sessions, sessions.c.id == messages.c.session_id).where(which)
    return frozenset((await connection.execute(query)).scalars())


def _chats_on(transport: str) -> sa.Select[Any]:
    return sa.select(chats.c.id).where(chats.c.transport == transport)


def rings_on(transport: str) -> sa.ColumnElement[bool]:
    """The reminders that ring on a network."""
    return reminders.c.place["transport"].as_string() == transport


def _names(old: int, new: int) -> dict[str, str]:
    return {own_key(old): own_key(new), sensitive_key(old): sensitive_key(new)}
