"""One incoming thing in, reply events out. Access, session, routing, and the one error boundary."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog

from handlers.access import Policy, Verdict, judge
from handlers.again import again
from handlers.locales import Phrases, nearest, phrases
from handlers.routing import route
from handlers.types import (
    Button,
    Card,
    Command,
    Door,
    Event,
    Handled,
    Handler,
    Happened,
    Incoming,
    Notice,
    Place,
    Recipient,
    Reply,
    Request,
    UserError,
)
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import awaiting, confirmations, members, people, sessions
from memory.storage import log as message_log
from memory.storage.database import Database
from memory.storage.link_codes import new_code
from memory.storage.people import Pairing
from memory.telemetry import TurnFailed
from memory.types import Audience, FactRefused, ObservationRefused, Role, Session, User

log = structlog.get_logger(__name__)

INTERRUPTED_TRIES = 5  # a message that brings the program down must not do so for ever
PAIRING_MS = 60 * 60 * 1000
PAIRINGS_PER_HOUR = 20
_AT_THE_DOOR = ("link",)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the stores know of a sender and a place."""

    user: User | None
    chat: int | None
    session: Session | None


class Dispatcher:
    """Finds out who speaks, where and what for, and hands over to a handler."""

    def __init__(  # noqa: PLR0913 - what there is to hand over to
        self,
        database: Database,
        clock: Clock,
        policy: Policy,
        *,
        default_language: str,
        commands: Sequence[Command],
        buttons: Mapping[str, Handler],
        awaited: Mapping[str, Handler],
        message: Handler,
        edited: Handler,
        taken_back: Handler,
        at_the_door: Door,
    ) -> None:
        """`at_the_door` answers a stranger who brings a code with /link."""
        self._database = database
        self._clock = clock
        self._policy = policy
        self._default_language = default_language
        self._commands = {command.name: command for command in commands}
        self._buttons = buttons
        self._awaited = awaited
        self._message = message
        self._edited = edited
        self._taken_back = taken_back
        self._at_the_door = at_the_door

    def is_urgent(self, incoming: Incoming) -> bool:
        """What does not wait in line: most presses, and commands such as /stop."""
        if incoming.press:
            return not incoming.press.waits
        where = route(incoming, self._commands)
        return where.kind == "command" and self._commands[where.name].is_urgent

    async def handle(self, incoming: Incoming, attempt: int = 1) -> Handled:
        """Decide what to do. Never raises for what a person can send."""
        say = phrases(incoming.sender.language or self._default_language)
        try:
            known = await self._look_up(incoming)
            if incoming.is_taken_back:
                return await self._take_back(incoming, known)
            if incoming.chat_kind == "user" and known.chat is not None:
                await self._note_present(known.chat, incoming.sender.identity)
            user, verdict = await self._meet(incoming, known.user)
            if verdict is not Verdict.ADMIT or user is None:
                return Handled(self._guarded(self._receive(incoming, verdict, say), say))
            if not (incoming.is_addressed or incoming.press):
                return Handled(_nothing())
            say = phrases(user.reads)
            request = await self._open(incoming, user, say, known)
            is_too_often = attempt > INTERRUPTED_TRIES
            request, handler = (request, self._interrupted) if is_too_often else await self._choose(request)
            return Handled(self._guarded(handler(request), say, request), user.id, request.session.id)
        except UserError as error:
            return Handled(_one(Notice(str(error), brief=True)))
        except Exception:
            log.exception("dispatcher.failed", inbox=incoming.inbox_ids)
            return Handled(_one(Notice(say("bug"))))

    # --- who ---

    async def _look_up(self, incoming: Incoming) -> _Known:
        place = incoming.place
        async with self._database.read() as connection:
            user = await people.find(connection, incoming.sender.identity)
            chat, session = await sessions.look_up(connection, place.transport, place.chat, place.thread)
        return _Known(user, chat, session)

    async def _note_present(self, chat: int, identity: str) -> None:
        """Whoever writes in a group is in it, known or not: what may be shown there depends on it."""
        now = to_ms(self._clock.now())
        async with self._database.read() as connection:
            is_noted = await members.is_noted(connection, chat, identity, now)
        if not is_noted:
            async with self._database.write() as connection:
                await members.note(connection, chat, identity, now)

    async def _meet(self, incoming: Incoming, user: User | None) -> tuple[User | None, Verdict]:
        sender = incoming.sender
        in_private = incoming.chat_kind == "ai"
        verdict, role = judge(self._policy, sender.identity, user, in_private=in_private)
        if verdict is not Verdict.ADMIT:
            return user, verdict
        language = nearest(sender.language or self._default_language)
        if user is None or user.role is not role:
            async with self._database.write() as connection:
                user = await people.admit(
                    connection, sender.identity, sender.name, role, language, to_ms(self._clock.now())
                )
        if (user.name, user.client_language) != (sender.name, language):
            async with self._database.write() as connection:
                await people.meet(connection, user.id, sender.name, language)
            user = replace(user, name=sender.name, client_language=language)
        return user, verdict

    def _receive(self, incoming: Incoming, verdict: Verdict, say: Phrases) -> Reply:
        """A stranger who brings the code of somebody known is heard; any other is turned away."""
        brought = route(incoming, _AT_THE_DOOR)
        if brought.kind == "command" and brought.args and incoming.chat_kind == "ai" and incoming.is_said:
            return self._at_the_door(incoming, brought.args, say)
        return self._turn_away(incoming, verdict, say)

    async def _turn_away(self, incoming: Incoming, verdict: Verdict, say: Phrases) -> Reply:
        if incoming.press:
            yield Notice(say("press-not-yours"), brief=True)
        elif incoming.is_invitation and verdict is not Verdict.PAIR:
            return  # it waits unanswered: nobody can be told no in a room that one is not in
        elif verdict is Verdict.REFUSE:
            yield Notice(say("stranger-refused"))
        elif verdict is Verdict.PAIR:
            for event in await self._pair(incoming, say):
                if isinstance(event, Card) or not incoming.is_invitation:
                    yield event

    async def _pair(self, incoming: Incoming, say: Phrases) -> list[Event]:
        now = to_ms(self._clock.now())
        sender = incoming.sender
        async with self._database.write() as connection:
            pairing = await people.open_pairing(connection, sender.identity, now)
            if pairing is not None:
                return [Notice(say("pairing-waits", code=pairing.code))]
            if await people.count_pairings(connection, now - PAIRING_MS) >= PAIRINGS_PER_HOUR:
                return [Notice(say("pairing-later"))]
            code = new_code()
            place = {"transport": incoming.place.transport, "chat": incoming.place.chat, "thread": ""}
            language = nearest(sender.language or self._default_language)
            pairing = Pairing(code, sender.identity, sender.name, language, place, now + PAIRING_MS)
            await people.offer_pairing(connection, pairing, now)
        asked = [await self._ask_owner(owner, pairing) for owner in await self._owners()]
        return [Notice(say("pairing-code", code=code)), *(card for card in asked if card)]

    async def _owners(self) -> list[User]:
        """Those that the configuration names, as far as they have ever written; each once."""
        async with self._database.read() as connection:
            found = [await people.find(connection, identity) for identity in sorted(self._policy.owners)]
        return list({owner.id: owner for owner in found if owner}.values())

    async def _ask_owner(self, owner: User, pairing: Pairing) -> Card | None:
        """A card in the owner's private chat, the one used last."""
        async with self._database.read() as connection:
            place = await people.private_place(connection, owner.id)
        if place is None:
            return None
        say = phrases(owner.reads)
        data = {"code": pairing.code}
        return Card(
            say("pairing-ask", name=pairing.name, identity=pairing.identity, code=pairing.code),
            ((Button(say("pairing-yes"), "approve", data), Button(say("pairing-no"), "decline", data)),),
            to=Recipient(Place(*place), owner.id),
        )

    # --- where ---

    async def _open(self, incoming: Incoming, user: User, say: Phrases, known: _Known) -> Request:
        place = incoming.place
        now = to_ms(self._clock.now())
        chat, session, in_private = known.chat, known.session, incoming.chat_kind == "ai"
        # a room in which others came to read along is another audience: what was said in private stays out of it
        if chat is None or session is None or session.owner != Audience(user.id, chat, in_private).owner:
            async with self._database.write() as connection:
                chat = await sessions.ensure_chat(
                    connection,
                    place.transport,
                    place.chat,
                    kind=incoming.chat_kind,
                    title=incoming.chat_title,
                    now=now,
                )
                if incoming.chat_kind == "user":
                    await members.note(connection, chat, incoming.sender.identity, now)
                audience = Audience(user.id, chat, in_private)
                session = await sessions.current(connection, chat, place.thread)
                if session is None or session.owner != audience.owner:
                    session = await sessions.start(connection, audience, place.thread, now=now)
        return Request(incoming, user, Audience(user.id, chat, in_private), session, session, say)

    async def _interrupted(self, request: Request) -> Reply:
        """The program went down with this several times: from now on only the person starts it again."""
        async with self._database.read() as connection:
            message = await message_log.find(connection, request.incoming.inbox_ids[0], "user")
        if message is None:
            yield Notice(request.say("interrupted-resend"))
        else:
            yield Card(request.say("interrupted"), ((again(request.say("answer-again"), message.id),),))

    async def _take_back(self, incoming: Incoming, known: _Known) -> Handled:
        """Nobody is let in or asked anything because of it, and no session begins."""
        if known.user is None or known.chat is None:
            return Handled(_nothing())
        async with self._database.read() as connection:
            session = await sessions.holding(connection, known.chat, known.user.id, incoming.ref)
        if session is None:
            return Handled(_nothing())
        say = phrases(known.user.reads)
        audience = Audience(known.user.id, known.chat, incoming.chat_kind == "ai")
        request = Request(incoming, known.user, audience, session, session, say)
        return Handled(self._guarded(self._taken_back(request), say, request), known.user.id, session.id)

    # --- what for ---

    async def _choose(self, request: Request) -> tuple[Request, Handler]:
        where = route(request.incoming, self._commands)
        match where.kind:
            case "press":
                return await self._pressed(request)
            case "edit":
                return request, self._edited
            case "command":
                command = self._commands[where.name]
                if command.for_owners and request.user.role is not Role.OWNER:
                    raise UserError(request.say("owners-only"))
                return replace(request, args=where.args), command.handle
            case "unknown_command" if request.incoming.chat_kind == "user":
                return request, _ignore  # somebody else's bot may know it
            case "unknown_command":
                raise UserError(request.say("unknown-command", name=where.name))
            case _:
                return await self._message_or_awaited(request)

    async def _pressed(self, request: Request) -> tuple[Request, Handler]:
        press = request.incoming.press
        assert press is not None
        async with self._database.write() as connection:
            pending = await confirmations.find(connection, press.token)
            if pending is None or pending.expires_at < to_ms(self._clock.now()):
                raise UserError(request.say("press-expired"))
            if pending.user_id != request.user.id:
                raise UserError(request.say("press-not-yours"))
            if not await confirmations.claim(connection, pending, request.incoming.inbox_ids[0]):
                told = f"press-again-{pending.claimed_action}"
                raise UserError(request.say(told if told in request.say else "press-again"))
            session = await sessions.by_id(connection, pending.session_id) if pending.session_id else None
        return replace(request, data=pending.data, session=session or request.session), self._buttons[pending.action]

    async def _message_or_awaited(self, request: Request) -> tuple[Request, Handler]:
        if not (request.session.awaits and request.incoming.is_trusted and request.incoming.text):
            return request, self._message
        said_at = request.incoming.inbox_ids[0]
        async with self._database.write() as connection:
            awaited = await awaiting.take(
                connection, request.session.id, request.user.id, said_at=said_at, now=to_ms(self._clock.now())
            )
        if awaited is None:
            return request, self._message
        return replace(request, data=awaited.data), self._awaited[awaited.what]

    # --- the one error boundary ---

    async def _guarded(self, reply: Reply, say: Phrases, request: Request | None = None) -> Reply:
        try:
            async with aclosing(reply) as events:
                async for event in events:
                    yield event
        except UserError as error:
            yield Notice(str(error))
        except FactRefused as error:
            yield Notice(say(f"fact-refused-{error.reason}"))
        except ObservationRefused as error:
            yield Notice(say(f"observation-refused-{error.reason}"))
        except Exception:
            log.exception("dispatcher.handler_failed")
            yield Notice(say("bug"))
            if request is not None:
                yield Happened(TurnFailed(user_id=request.user.id, session_id=request.session.id, failure="bug"))


async def _ignore(_request: Request) -> Reply:
    return
    yield


async def _nothing() -> Reply:
    return
    yield


async def _one(event: Event) -> Reply:
    yield event
