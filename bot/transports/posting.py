"""From reply events to rows: the one transaction that makes an answer ready to be sent.

Records, buttons and outbox rows are committed together with the end of the inbox row they answer.
"""

import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from bot.transports.base import Key, Outgoing
from handlers.types import WAITS, Button, Card, Event, Happened, Notice, Place, Progress, Recipient, Status, Text, Wipe
from memory import telemetry
from memory.storage import confirmations, log, outbox, working
from memory.storage.confirmations import Pending
from memory.storage.making import without_forgotten
from memory.storage.outbox import Draft, OutboxRow
from memory.types import SessionState, Utterance

BUTTONS_LIVE_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Context:
    """Whom the events answer, and where."""

    place: Place
    user_id: int | None
    session_id: int | None
    inbox_id: int | None
    """The inbox row that they answer."""
    may_grow: bool = True
    """The answer may be growing in a message already."""


async def post(connection: AsyncConnection, context: Context, events: list[Event], now: int) -> None:
    """Write what the events say. A growing message of the same inbox row takes the final text."""
    may_grow = context.may_grow and context.inbox_id is not None
    growing = await outbox.streaming(connection, context.inbox_id or 0) if may_grow else None
    happened: list[telemetry.Event] = []
    for event in events:
        match event:
            case Progress():
                await working.put(connection, _without_forgotten(connection, context, event.state))
            case Wipe():
                await working.wipe(connection, event.session_id, event.stub)
            case Text() | Card() | Notice():
                message_id = await _record(connection, context, event.record, now)
                if isinstance(event, Text) and growing is not None:
                    await _grow_up(connection, context, growing, event, message_id)
                    growing = None
                else:
                    await _enqueue(connection, context, event, message_id, now)
            case Happened():
                happened.append(event.event)
            case Status():
                pass  # it was shown in passing
    await telemetry.record_all(connection, happened, now)
    if growing is not None:  # nothing came of what grew: a line that said what was being done
        await outbox.change(connection, growing.id, status="wiping", event={"kind": "wipe", "text": "…"})


def _without_forgotten(connection: AsyncConnection, context: Context, state: SessionState) -> SessionState:
    """The name of the work is made of people's words, too."""
    said = {"title": state.title, "step": state.step, "data": state.data}
    return replace(state, **without_forgotten(connection, context.inbox_id, said))


async def _record(connection: AsyncConnection, context: Context, record: Utterance | None, now: int) -> int | None:
    if record is None:
        return None
    return (await log.append(connection, record, now, made_for=context.inbox_id)).id


async def _grow_up(
    connection: AsyncConnection, context: Context, growing: OutboxRow, event: Text, message_id: int | None
) -> None:
    """The final text takes the place of the growing message, or is offered where that one may be lost."""
    final = _outgoing(event)
    if growing.refs:
        final, status = replace(final, replaces=growing.refs[0]), "pending"
    else:
        status = "doubtful"
    values: dict[str, Any] = {"status": status, "event": _packed(connection, context, final)}
    values |= {"message_id": message_id, "user_id": context.user_id, "session_id": context.session_id, "refs": ()}
    await outbox.change(connection, growing.id, **values)


def _packed(connection: AsyncConnection, context: Context, outgoing: Outgoing) -> dict[str, Any]:
    """Without what was forgotten while the reply was in the making."""
    packed: dict[str, Any] = without_forgotten(connection, context.inbox_id, pack(outgoing))
    return packed


async def _enqueue(
    connection: AsyncConnection, context: Context, event: Text | Card | Notice, message_id: int | None, now: int
) -> None:
    to = event.to if isinstance(event, Card | Notice) else None
    place = to.place if to else context.place
    user_id = to.user_id if to else context.user_id
    outgoing = _outgoing(event)
    if isinstance(event, Card) and event.buttons:
        outgoing = replace(outgoing, keys=await _keys(connection, context, event, user_id, now))
    draft = Draft(
        transport=place.transport,
        place={"chat": place.chat, "thread": place.thread},
        lane=place.lane,
        event=_packed(connection, context, outgoing),
        user_id=user_id,
        session_id=None if to else context.session_id,
        message_id=message_id,
        inbox_id=context.inbox_id,
    )
    await outbox.add(connection, draft, now)


async def _keys(
    connection: AsyncConnection, context: Context, card: Card, user_id: int | None, now: int
) -> tuple[tuple[Key, ...], ...]:
    assert user_id is not None, "a button acts only for a person"
    name = secrets.token_urlsafe(9)
    to_other = isinstance(card.to, Recipient)
    is_working = card.record is not None and card.record.is_ephemeral

    async def key(button: Button) -> Key:
        token = (WAITS if button.waits else "") + secrets.token_urlsafe(12)
        pending = Pending(
            token=token,
            action=button.action,
            data=button.data,
            user_id=user_id,
            session_id=None if to_other else context.session_id,
            card=name,
            claimed_by=None,
            expires_at=now + BUTTONS_LIVE_MS,
            is_working=is_working,
        )
        await confirmations.add(connection, pending, now)
        return Key(button.label, token)

    return tuple([tuple([await key(button) for button in row]) for row in card.buttons])


def _outgoing(event: Text | Card | Notice) -> Outgoing:
    match event:
        case Text():
            return Outgoing("text", event.text)
        case Card():
            return Outgoing("card", event.text, replaces=event.replaces, file=event.file, formatted=event.formatted)
        case Notice():
            return Outgoing("notice", event.text)


def pack(outgoing: Outgoing) -> dict[str, Any]:
    """As JSON for the outbox."""
    return asdict(outgoing)


def unpack(event: dict[str, Any]) -> Outgoing:
    """The inverse of `pack`."""
    file = event["file"]
    return Outgoing(
        kind=event["kind"],
        text=event["text"],
        keys=tuple(tuple(Key(key["label"], key["token"]) for key in row) for row in event["keys"]),
        replaces=event["replaces"],
        file=(file[0], file[1]) if file else None,
        formatted=event.get("formatted", False),
    )
