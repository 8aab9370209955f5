"""A room as a client draws it: edits applied, redactions gone, reactions counted, threads apart.

One rule: a pure fold over the events of the timeline, by the rules of the specification, not by what Merk sends.
A client that decrypts marks each such event with `was_encrypted`.
"""

from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


@dataclass
class Message:
    """One bubble. `content` is the newest version, without the fallbacks of an edit."""

    event_id: str
    sender: str
    kind: str  # m.text, m.notice, m.image, …; `m.room.encrypted` for what this client cannot read
    content: Event
    thread: str | None  # event id of the thread's root
    reply_to: str | None  # None too where a reply is only the fallback of a thread
    sent_at: int  # ms since the epoch, by the server's clock
    versions: list[str]  # each text the person saw, oldest first
    reactions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # key -> who, in order
    is_redacted: bool = False
    is_encrypted: bool = False  # every version of it came encrypted and could be read

    @property
    def is_readable(self) -> bool:
        return not self.is_redacted and self.kind != "m.room.encrypted"

    @property
    def body(self) -> str:
        return self.content.get("body", "")

    @property
    def html(self) -> str | None:
        return self.content.get("formatted_body")

    @property
    def mentions(self) -> list[str]:
        return self.content.get("m.mentions", {}).get("user_ids", [])


@dataclass
class RoomView:
    """What a person sees of one room now. `take` and `take_ephemeral` bring it up to date."""

    messages: list[Message] = field(default_factory=list[Message])  # in the order of the timeline, redacted ones too
    state: dict[tuple[str, str], Event] = field(default_factory=dict[tuple[str, str], Event])
    typing: list[str] = field(default_factory=list[str])
    read_up_to: dict[str, str] = field(default_factory=dict[str, str])  # user id -> event id
    events: list[Event] = field(default_factory=list[Event])  # the timeline as it came

    def take(self, events: list[Event]) -> None:
        """Events of the timeline in their order. One that is known already (decrypted by now) keeps its place."""
        places = {event["event_id"]: place for place, event in enumerate(self.events)}
        for event in events:
            if event["event_id"] in places:
                self.events[places[event["event_id"]]] = event
            else:
                places[event["event_id"]] = len(self.events)
                self.events.append(event)
        self.take_state(events)
        self.messages = fold(self.events)

    def take_state(self, events: list[Event]) -> None:
        for event in events:
            if event.get("state_key") is not None:
                self.state[event["type"], event["state_key"]] = event["content"]

    def take_ephemeral(self, event: Event) -> None:
        if event["type"] == "m.typing":
            self.typing = event["content"]["user_ids"]
        elif event["type"] == "m.receipt":
            for event_id, receipts in event["content"].items():
                self.read_up_to |= dict.fromkeys(receipts.get("m.read", {}), event_id)

    def message(self, event_id: str) -> Message:
        """KeyError where the person has never seen such a message."""
        for message in self.messages:
            if message.event_id == event_id:
                return message
        raise KeyError(event_id)

    def said_by(self, user_id: str, thread: str | None = None) -> list[Message]:
        """What of this user still stands and can be read: in one thread, or, without one, wherever they said it."""
        return [
            message
            for message in self.messages
            if message.sender == user_id and message.is_readable and (thread is None or message.thread == thread)
        ]

    def unreadable(self) -> list[Message]:
        """What arrived encrypted and stayed so, edits excepted."""
        return [message for message in self.messages if not message.is_redacted and not message.is_readable]

    def main_line(self) -> list[Message]:
        return [message for message in self.messages if message.thread is None and not message.is_redacted]

    def in_thread(self, root: str) -> list[Message]:
        """The replies, without the root."""
        return [message for message in self.messages if message.thread == root and not message.is_redacted]

    def threads(self) -> list[str]:
        """Roots of the threads that hold something, by their first reply."""
        return list(dict.fromkeys(message.thread for message in self.messages if message.thread))

    def membership(self, user_id: str) -> str | None:
        """join, invite, leave, ban, knock; None for one who was never here."""
        return self.state.get(("m.room.member", user_id), {}).get("membership")

    def transcript(self) -> str:
        """For the message of a failed test."""
        lines = [
            f"{message.sender}{' in ' + message.thread if message.thread else ''}: "
            + ("(redacted)" if message.is_redacted else f"{message.body!r} {message.reactions or ''}")
            for message in self.messages
        ]
        return "\n".join(lines) or "(nothing was said)"


def fold(events: list[Event]) -> list[Message]:
    """The messages that these events of one room amount to."""
    gone = _redacted_ids(events)
    messages: dict[str, Message] = {}
    for event in events:
        if event["type"] in {"m.room.message", "m.room.encrypted"} and event.get("state_key") is None:
            _fold_message(event, messages, is_gone=event["event_id"] in gone)
        elif event["type"] == "m.reaction" and event["event_id"] not in gone:
            _fold_reaction(event, messages)
    return list(messages.values())


def _redacted_ids(events: list[Event]) -> set[str]:
    redactions = {redacted_by(event) for event in events if event["type"] == "m.room.redaction"}
    return redactions | {event["event_id"] for event in events if "redacted_because" in event.get("unsigned", {})}


def redacted_by(event: Event) -> str:
    """The event that a redaction takes away. Rooms since version 11 keep it in the content."""
    return event.get("redacts") or event["content"].get("redacts", "")


def _fold_message(event: Event, messages: dict[str, Message], *, is_gone: bool) -> None:
    content: Event = event["content"]
    relation: Event = content.get("m.relates_to", {})
    if relation.get("rel_type") == "m.replace":
        edited = messages.get(relation["event_id"])
        if edited and edited.sender == event["sender"] and not is_gone and "m.new_content" in content:
            edited.content = content["m.new_content"]
            edited.versions.append(edited.body)
            edited.is_encrypted &= event.get("was_encrypted", False)
        return
    is_threaded = relation.get("rel_type") == "m.thread"
    replied: str | None = relation.get("m.in_reply_to", {}).get("event_id")
    message = Message(
        event_id=event["event_id"],
        sender=event["sender"],
        kind=content.get("msgtype", event["type"]),
        content={} if is_gone else content,
        thread=relation["event_id"] if is_threaded else None,
        reply_to=None if is_threaded and relation.get("is_falling_back") else replied,
        sent_at=event["origin_server_ts"],
        versions=[content.get("body", "")],
        is_redacted=is_gone,
        is_encrypted=event.get("was_encrypted", False) and event["type"] == "m.room.message",
    )
    messages[message.event_id] = message


def _fold_reaction(event: Event, messages: dict[str, Message]) -> None:
    relation: Event = event["content"].get("m.relates_to", {})
    target = messages.get(relation.get("event_id", ""))
    if target is not None and not target.is_redacted:
        target.reactions.setdefault(relation["key"], []).append(event["sender"])
