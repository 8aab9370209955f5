"""The open piece of work of a session during one reply: what a tool shows and changes, posted as one with the reply.

Rule: nothing is written before the reply is. What a tool changed is seen by the next call of the same reply, and a
crash before the end leaves everything as it was.
"""

from dataclasses import dataclass, replace
from typing import Any

from handlers import closing
from handlers.remembering.own_events import OwnEvents
from handlers.types import Card, Event, Notice, Progress, Request, UserError, Wipe
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import working
from memory.storage.database import Database
from memory.storage.working import Shown
from memory.types import SessionState, Utterance

KIND = "kind"
LISTED = "listing"
"""The kind of working output that opens no work of its own; its state has no words at its end."""


@dataclass(frozen=True, slots=True)
class Works:
    """Where handlers get the open work of a request's session."""

    database: Database
    clock: Clock
    name: str
    """What the assistant is called: the speaker of what it shows."""
    timezone: str = "UTC"
    """The tenant's; a person may have chosen another."""
    idle_turns: int = 4
    """So many turns in a row that do not touch a work close it."""
    events: OwnEvents | None = None
    """Where Merk's own writes are noted."""

    async def load(self, request: Request) -> "Work":
        async with self.database.read() as connection:
            state = await working.load(connection, request.session.id)
        return Work(self, request, state)


class Work:
    """What is open, and what this reply makes of it. `events` comes last, once."""

    def __init__(self, works: Works, request: Request, state: SessionState | None) -> None:
        self._works = works
        self._request = request
        self._before = state
        self.state = state
        self._cards: list[Card] = []
        self._ended: list[Event] = []
        self._wiped = False
        self._completed = False
        self.is_touched = False

    # --- what tools do ------------------------------------------------------------------------------

    def holds(self, tool: str) -> bool:
        """Whether this tool has the open work."""
        return self.state is not None and self.state.tool == tool

    def open(self, tool: str, title: str, **data: Any) -> None:
        """Begin a piece of work; another one that is open is closed, and the person reads so."""
        self.check_theirs()
        if self.state is not None:
            self._end("switch")
        now = to_ms(self._works.clock.now())
        self.state = SessionState(
            self._request.session.id, self._request.user.id, tool, title, data=data, opened_at=now, touched_at=now
        )
        self.is_touched = True

    def change(self, *, title: str | None = None, step: str | None = None, **data: Any) -> None:
        """Say where the work stands. Raises `UserError` for work of somebody else."""
        self.check_theirs()
        state = self._open_state()
        self.state = replace(
            state,
            title=state.title if title is None else title,
            step=state.step if step is None else step,
            data=state.data | data,
        )
        self.touch()

    def touch(self) -> None:
        """The person is still at it: its turns are counted anew."""
        if self.state is not None:
            self.state = replace(self.state, idle_turns=0, touched_at=to_ms(self._works.clock.now()))
        self.is_touched = True

    def note_outcome(self, *, failed: bool) -> None:
        """Keep in mind that something went wrong with it, until somebody is at it again without that."""
        if self.state is not None and (failed or self.is_touched) and failed != self.has_failed:
            self.state = replace(self.state, data=self.state.data | {"failed": failed})

    @property
    def has_failed(self) -> bool:
        return self.state is not None and bool(self.state.data.get("failed"))

    @property
    def shows_something(self) -> bool:
        """Whether the person sees something of it with this reply."""
        return bool(self._cards or self._ended)

    def show(self, card: Card, text: str, kind: str, **data: Any) -> None:
        """Show a card as working output. `text` is what `latest` and `read_work` find again."""
        state = self._open_state()
        self._cards.append(replace(card, record=self._working(state.tool, text, kind, data)))

    def show_list(self, tool: str, card: Card, text: str) -> None:
        """Show a list that is worth nothing tomorrow: it goes with the work that is open, or by itself."""
        if self.state is None:
            self.open(tool, "", light=True)
        self._cards.append(replace(card, record=self._working(tool, text, LISTED, {})))

    async def latest(self, kind: str) -> Shown | None:
        """The newest working output of a kind, this reply's first."""
        return next((each for each in await self.shown() if each.kind == kind), None)

    async def shown(self) -> list[Shown]:
        """All working output that will stand when this reply is posted, newest first."""
        fresh = [_shown(card) for card in reversed(self._cards)]
        if self._wiped or self._before is None:
            return fresh
        async with self._works.database.read() as connection:
            return [*fresh, *await working.shown(connection, self._request.session.id)]

    def complete(self, achieved: str) -> None:
        """The work is done as far as the tool can tell: the person is asked whether to close it.

        `achieved` is the one line that stays when they do.
        """
        self.change(achieved=achieved)
        self._completed = True

    def close(self, why: str) -> None:
        """End the work now. `why` is the reason that the person reads: asked, idle, switch, time; "" says nothing."""
        if self.state is not None:
            self._end(why)
            self.state = None

    def finish(self, fallback: str) -> None:
        """Yes: end the work; the line that says what was achieved stays, and the model has it too."""
        state = self._open_state()
        line = state.data.get("achieved") or fallback
        self.close("")
        record = Utterance(
            session_id=state.session_id,
            role="assistant",
            speaker=self._works.name,
            text=line,
            inbox_id=self._request.incoming.inbox_ids[0],
            tool=state.tool,
        )
        self._ended.append(Notice(line, record=record))

    # --- the end of a reply ---------------------------------------------------------------------------

    def end_turn(self) -> None:
        """Count a turn that did not touch the work; the one too many closes it."""
        if self.state is None or self.is_touched:
            return
        state = replace(self.state, idle_turns=self.state.idle_turns + 1)
        if state.idle_turns >= self._works.idle_turns:
            self.close("idle")
        else:
            self.state = state

    def events(self) -> list[Event]:
        """All of it, in the order in which it holds: what ends, where the work stands, what is shown of it."""
        events = [*self._ended]
        if self.state is None:
            return events
        if self.state != self._before or self._wiped:
            events.append(Progress(self.state))
        events += self._cards
        if self._completed:
            card = closing.ask(self._request.say)
            events.append(replace(card, record=self._working(self.state.tool, card.text, "closing", {})))
        return events

    def _end(self, why: str) -> None:
        assert self.state is not None
        say = self._request.say
        if self._before is not None and not self._wiped:
            self._wiped = True
            self._ended.append(Wipe(self._request.session.id, say("work-stub")))
            if why and not self.state.data.get("light"):
                self._ended.append(Notice(closing.line(say, self.state, why)))
        self._cards.clear()
        self._completed = False

    def check_theirs(self) -> None:
        """Raises `UserError` where somebody else's work is open."""
        if self.state is not None and self.state.user_id != self._request.user.id and not self.state.data.get("light"):
            raise UserError(self._request.say("work-not-yours", title=self.state.title))

    def _open_state(self) -> SessionState:
        if self.state is None:
            raise UserError(self._request.say("work-none"))
        return self.state

    def _working(self, tool: str, text: str, kind: str, data: dict[str, Any]) -> Utterance:
        return Utterance(
            session_id=self._request.session.id,
            role="assistant",
            speaker=self._works.name,
            text=text,
            blocks=[{KIND: kind, **data}],
            inbox_id=self._request.incoming.inbox_ids[0],
            is_ephemeral=True,
            tool=tool,
        )


def _shown(card: Card) -> Shown:
    record = card.record
    assert record is not None
    assert record.blocks is not None
    return working.shown_of(record.text, record.blocks)
