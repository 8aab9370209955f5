"""The terminal between two pipes, and the pure parts of what a window shows."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.transports.base import Fault, Key, Outgoing, Part, Preview, SendError, Transport
from bot.transports.terminal import TerminalTransport
from bot.transports.terminal.growing import Growth, finished
from bot.transports.terminal.transport import PLACE
from bot.transports.terminal.waiting import WaitingLine
from handlers.types import Press
from memory.storage.inbox import InboxRow

KEYS = ((Key("Yes, forget", "token-yes"), Key("No", "token-no")), (Key("All", "token-all"),))

Answer = Callable[["Chat", str, dict[str, Any]], Awaitable[None]]


async def at_once() -> None: ...


async def silence(_chat: "Chat", _external_id: str, _payload: dict[str, Any]) -> None: ...


class Chat:
    """A transport between two pipes, and what went through it."""

    def __init__(self, *, as_json: bool = False, language: str = "en", stdout: TextIO | None = None) -> None:
        number, typing = os.pipe()
        self._stdin, self._typing = os.fdopen(number), os.fdopen(typing, "wb", buffering=0)
        self._stdout = stdout or StringIO()
        self.heard: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.failures = 0
        self.transport = TerminalTransport(
            json=as_json, is_tty=False, language=language, stdin=self._stdin, stdout=self._stdout
        )

    def type(self, *lines: str | bytes, end: bytes = b"\n") -> None:
        for line in lines:
            self._typing.write((line if isinstance(line, bytes) else line.encode()) + end)

    def end(self) -> None:
        self._typing.close()

    def close(self) -> None:
        self.end()
        self._stdin.close()

    async def until_left(self, answer: Answer = silence) -> None:
        """Let the input end, and run to the end."""
        self.end()
        await self.run(answer)

    async def run(self, answer: Answer = silence) -> None:
        async def accept(external_id: str, payload: dict[str, Any]) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError("disk full")
            self.heard.append(payload)
            self.ids.append(external_id)
            await answer(self, external_id, payload)

        await self.transport.start(accept)
        async with asyncio.timeout(10):
            await self.transport.run(settled=at_once)
        await self.transport.close()

    @property
    def lines(self) -> list[str]:
        assert isinstance(self._stdout, StringIO)
        return self._stdout.getvalue().splitlines()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @property
    def texts(self) -> list[str]:
        return [payload["text"] for payload in self.heard]

    async def post(self, outgoing: Outgoing, key: str = "1-0") -> str:
        (part,) = self.transport.render(outgoing)
        return await self.transport.send(PLACE, part, key)


OpenChat = Callable[..., Chat]


@pytest.fixture
def open_chat() -> Iterator[OpenChat]:
    chats: list[Chat] = []

    def opened(**options: Any) -> Chat:
        chats.append(Chat(**options))
        return chats[-1]

    yield opened
    for chat in chats:
        chat.close()


@pytest.fixture
def chat(open_chat: OpenChat) -> Chat:
    return open_chat()


def test_the_terminal_is_a_transport() -> None:
    """Pyright checks the protocol here."""
    transport: Transport = TerminalTransport(json=True, is_tty=False, language="en", stdout=StringIO())
    assert (transport.name, transport.resends_safely) == ("terminal", True)
    assert transport.preview_style(PLACE) is Preview.NONE
    assert transport.last_contact() is None


# --- lines ---------------------------------------------------------------------------------------------


async def test_a_line_is_a_message_and_blank_ones_are_none(chat: Chat) -> None:
    chat.type("one", "", "   ", "\ttwo ", "three\r")
    await chat.until_left()
    assert chat.texts == ["one", "\ttwo ", "three"]
    assert len(set(chat.ids)) == 3


async def test_the_last_line_needs_no_end(chat: Chat) -> None:
    chat.type("no newline", end=b"")
    await chat.until_left()
    assert chat.texts == ["no newline"]


async def test_bytes_that_are_no_text_do_no_harm(chat: Chat) -> None:
    """Nothing that a database or a model refuses gets through."""
    chat.type(b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe", b"a\xff\x00b")
    await chat.until_left()
    assert chat.texts == ["Grüße", "a\ufffdb"]


async def test_a_line_may_be_longer_than_a_terminal_allows(chat: Chat) -> None:
    line = "ö🎉" * 10_000
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(chat.type, line, "next"))
        group.create_task(chat.run(_leave_after(2)))
    assert chat.texts == [line, "next"]
    chat.end()


def _leave_after(count: int) -> Answer:
    async def answer(chat: Chat, _external_id: str, _payload: dict[str, Any]) -> None:
        if len(chat.heard) == count:
            chat.transport.left.set()

    return answer


async def test_the_next_line_waits_for_the_answer(chat: Chat) -> None:
    chat.type("one", "two")
    chat.end()
    said: list[str] = []

    async def accept(_external_id: str, payload: dict[str, Any]) -> None:
        said.append(payload["text"])

    async def settled() -> None:
        await asyncio.sleep(0.02)
        said.append("settled")

    await chat.transport.start(accept)
    await chat.transport.run(settled=settled)
    assert said == ["settled", "one", "settled", "two", "settled"]
    assert chat.transport.left.is_set()


async def test_answers_are_plain_text(chat: Chat) -> None:
    """No colours, and nothing that could steer a terminal."""

    async def answer(chat: Chat, _external_id: str, _payload: dict[str, Any]) -> None:
        await chat.post(Outgoing("text", "**Oak**\r\n\x1b[31mash\x9b1m"), "1-0")
        await chat.post(Outgoing("card", "Forget?", KEYS), "2-0")
        await chat.post(Outgoing("card", "Facts", file=("f.md", "# Facts")), "3-0")
        await chat.post(Outgoing("notice", "Noted."), "4-0")
        await chat.transport.delete(PLACE, ("1-0",))

    chat.type("hi")
    await chat.until_left(answer)
    assert chat.lines == [
        "**Oak**",
        "[31mash1m",
        "Forget?",
        "[1] Yes, forget  [2] No",
        "[3] All",
        "Facts",
        "f.md:",
        "# Facts",
        "Noted.",
        "What was taken back may still stand above; clear the window to be rid of it.",
    ]


async def test_a_bare_number_presses_the_newest_open_card(chat: Chat) -> None:
    cards = {"1-0": KEYS, "2-0": ((Key("One", "token-one"),),)}

    async def answer(chat: Chat, _external_id: str, payload: dict[str, Any]) -> None:
        if payload.get("text") == "cards":
            for key, keys in cards.items():
                await chat.post(Outgoing("card", "?", keys), key)
        elif "press" in payload:
            await chat.transport.edit(PLACE, payload["press"]["card"], Part("Pressed."))

    chat.type("1", "cards", "2", "1", " 3 ", "1")
    await chat.until_left(answer)
    said = [payload.get("text") or payload["press"] for payload in chat.heard]
    # the newest card has no second button; when it is gone, the one before is the newest
    assert said == [
        "1",
        "cards",
        "2",
        {"token": "token-one", "card": "2-0"},
        {"token": "token-all", "card": "1-0"},
        "1",
    ]


async def test_what_is_wiped_can_be_neither_pressed_nor_edited(chat: Chat) -> None:
    async def answer(chat: Chat, _external_id: str, payload: dict[str, Any]) -> None:
        if payload["text"] == "card":
            ref = await chat.post(Outgoing("card", "?", KEYS))
            assert await chat.transport.delete(PLACE, (ref,)) == ()
            with pytest.raises(SendError) as caught:
                await chat.transport.edit(PLACE, ref, Part("late"))
            assert caught.value.fault is Fault.NO_MESSAGE

    chat.type("card", "1")
    await chat.until_left(answer)
    assert chat.texts == ["card", "1"]


async def test_a_send_that_is_repeated_is_shown_once(chat: Chat) -> None:
    assert await chat.post(Outgoing("text", "once"), "7-0") == "7-0"
    assert await chat.post(Outgoing("text", "once"), "7-0") == "7-0"
    await chat.post(Outgoing("text", "twice"), "8-0")
    assert chat.lines == ["once", "twice"]


async def test_a_store_that_fails_drops_nothing(open_chat: OpenChat) -> None:
    """There is no network that would repeat what was typed."""
    chat = open_chat(language="de-DE")
    chat.failures = 2
    chat.type("important")
    await chat.until_left()
    assert chat.texts == ["important"]
    assert chat.lines == ["Das kann ich gerade nicht speichern; ich versuche es weiter."]


async def test_the_end_cuts_no_commit_and_takes_nothing_more(chat: Chat) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def answer(_chat: Chat, _external_id: str, _payload: dict[str, Any]) -> None:
        begun.set()
        await gate.wait()

    chat.type("one", "two")
    running = asyncio.create_task(chat.run(answer))
    await begun.wait()
    stopping = asyncio.create_task(chat.transport.stop_receiving())
    await asyncio.sleep(0.02)
    assert not stopping.done()
    gate.set()
    await stopping
    await running
    assert chat.texts == ["one"]
    chat.end()


@pytest.fixture
def nothing() -> Iterator[TextIO]:
    with Path(os.devnull).open() as opened:
        yield opened


async def test_an_empty_input_is_an_end(nothing: TextIO) -> None:
    """As a service or a job of cron has it."""
    transport = TerminalTransport(json=False, is_tty=False, language="en", stdin=nothing, stdout=StringIO())
    await transport.start(lambda _id, _payload: at_once())
    await transport.run(settled=at_once)
    assert transport.left.is_set()


async def test_a_reader_that_is_gone_ends_the_chat(open_chat: OpenChat) -> None:
    number, writing = os.pipe()
    os.close(number)
    faults: list[Fault] = []

    async def answer(chat: Chat, _external_id: str, _payload: dict[str, Any]) -> None:
        try:
            await chat.post(Outgoing("text", "nobody reads this"))
        except SendError as error:
            faults.append(error.fault)

    with os.fdopen(writing, "w") as stdout:
        chat = open_chat(stdout=stdout)
        chat.type("one", "two")
        await chat.until_left(answer)
    assert faults == [Fault.NO_CHAT]
    assert chat.texts == ["one"]


# --- json ----------------------------------------------------------------------------------------------


async def test_json_is_one_object_a_reply_event(open_chat: OpenChat) -> None:
    async def answer(chat: Chat, _external_id: str, _payload: dict[str, Any]) -> None:
        await chat.post(Outgoing("text", "**Oak**\nund Grüße"), "1-0")
        await chat.post(Outgoing("card", "Forget?", KEYS), "2-0")
        (part,) = chat.transport.render(Outgoing("card", "Facts", replaces="2-0", file=("f.md", "# Facts")))
        await chat.transport.edit(PLACE, "2-0", part)
        await chat.post(Outgoing("notice", "Noted."), "3-0")
        await chat.transport.delete(PLACE, ("1-0", "x"))

    chat = open_chat(as_json=True)
    chat.type("hi")
    await chat.until_left(answer)
    assert chat.events == [
        {"type": "text", "id": "1-0", "text": "**Oak**\nund Grüße"},
        {
            "type": "card",
            "id": "2-0",
            "text": "Forget?",
            "buttons": [[{"n": 1, "label": "Yes, forget"}, {"n": 2, "label": "No"}], [{"n": 3, "label": "All"}]],
        },
        {
            "type": "card",
            "id": "2-0",
            "text": "Facts",
            "buttons": [],
            "replaces": "2-0",
            "file": {"name": "f.md", "content": "# Facts"},
        },
        {"type": "notice", "id": "3-0", "text": "Noted."},
        {"type": "wipe", "refs": ["1-0", "x"]},
    ]


async def test_json_input_may_be_an_object_or_a_line(open_chat: OpenChat) -> None:
    async def answer(chat: Chat, _external_id: str, payload: dict[str, Any]) -> None:
        if payload.get("text") == "card":
            await chat.post(Outgoing("card", "?", KEYS))

    chat = open_chat(as_json=True)
    chat.type("card", '{"text": "two\\nlines"}', '{"text": "1"}', '{"press": 2}', "3", '"quoted"', "[1]", "{broken")
    await chat.until_left(answer)
    said = [payload.get("text") or payload["press"]["token"] for payload in chat.heard]
    assert said == ["card", "two\nlines", "1", "token-no", "token-all", '"quoted"', "[1]", "{broken"]


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        ('{"press": 1}', "There is no button 1 to press."),
        ('{"press": true}', 'An object must be {"text": "…"} or {"press": 1}.'),
        ('{"txt": "hi"}', 'An object must be {"text": "…"} or {"press": 1}.'),
    ],
)
async def test_json_input_that_means_nothing_is_told(line: str, notice: str, open_chat: OpenChat) -> None:
    chat = open_chat(as_json=True)
    chat.type(line, "still here")
    await chat.until_left()
    assert chat.texts == ["still here"]
    assert [(event["type"], event["text"]) for event in chat.events] == [("notice", notice)]


async def test_a_toast_is_a_notice(open_chat: OpenChat) -> None:
    chat = open_chat(as_json=True)
    incoming = chat.transport.parse(InboxRow(3, "terminal", "u", {"at": 0, "press": {"token": "t", "card": "c"}}, 0))
    assert incoming
    await chat.transport.acknowledge(incoming, "In passing.")
    await chat.transport.acknowledge(incoming, "")
    assert [(event["type"], event["text"]) for event in chat.events] == [("notice", "In passing.")]


# --- what an update means ------------------------------------------------------------------------------


def test_an_update_is_of_the_one_person_in_the_one_place() -> None:
    transport = TerminalTransport(json=False, is_tty=False, language="de", stdout=StringIO())
    said = transport.parse(InboxRow(3, "terminal", "u1", {"at": 1_700_000_000_000, "text": "hi"}, 0))
    assert said
    assert (said.inbox_ids, said.place, said.chat_kind, said.text, said.ref) == ((3,), PLACE, "ai", "hi", "u1")
    assert (said.sender.identity, said.sender.language) == ("terminal:local", "de")
    assert said.sender.name
    assert said.sent_at.isoformat() == "2023-11-14T22:13:20+00:00"
    pressed = transport.parse(InboxRow(4, "terminal", "u2", {"at": 0, "press": {"token": "t", "card": "c"}}, 0))
    assert pressed
    assert pressed.press == Press("t", "c")


@given(
    st.dictionaries(
        st.sampled_from(["at", "text", "press", "x"]),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3) | st.floats(),
            lambda inner: st.dictionaries(st.sampled_from(["token", "card"]), inner) | st.lists(inner, max_size=2),
            max_leaves=4,
        ),
    )
)
def test_understanding_never_fails(payload: dict[str, Any]) -> None:
    transport = TerminalTransport(json=False, is_tty=False, language="en", stdout=StringIO())
    transport.parse(InboxRow(1, "terminal", "u", payload, 0))


# --- what may be printed of a growing answer -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("one", ""),
        ("one\n\n", ""),
        ("one\n\ntwo", "one\n\n"),
        ("one\ntwo\n\n\nthree\n\n", "one\ntwo\n\n\n"),
        ("- a\n\n- b\n\n  more", ""),
        ("1. a\n\n2. b\n\nend", "1. a\n\n2. b\n\n"),
        ("one\n\n- a\n\n- b", "one\n\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n\nc", "```\na\n\nb\n```\n\n"),
        ("````\n```\n\nx\n````\n\ny", "````\n```\n\nx\n````\n\n"),
        ("~~~\n```\n\nx", ""),
    ],
)
def test_a_block_is_whole_when_the_next_begins(text: str, whole: str) -> None:
    assert text[: finished(text)] == whole


PIECES = st.lists(st.sampled_from(["word", " ", "\n", "\n\n", "- a", "1. b", "```", "~~~~", "  ", "**", "# t", "#"]))


@given(st.lists(PIECES.map("".join), max_size=8), st.booleans())
def test_nothing_is_printed_twice_and_nothing_left_out(deltas: list[str], trimmed: bool) -> None:
    growth, text, printed = Growth(1), "", ""
    for delta in deltas:
        text += delta
        printed += growth.grow(text)
        assert printed + growth.picture == text.lstrip()
    final = text.strip() if trimmed else text
    rest = growth.finish(final)
    assert rest is not None
    assert (printed.rstrip() + rest).replace("\n", "").strip() == final.replace("\n", "").strip()


def test_an_answer_that_became_another_is_told_anew() -> None:
    growth = Growth(1)
    assert growth.grow("one\n\ntwo") == "one\n\n"
    assert growth.grow("other\n\nwords") == ""
    assert growth.finish("other\n\nwords") is None


# --- what waits behind an answer -----------------------------------------------------------------------


def test_what_waited_is_echoed_above_its_own_answer() -> None:
    """The turns that follow may be answered before the answer before them is even sent."""
    waiting = WaitingLine()
    waiting.join("a", "first", 1, is_echoed=False)
    waiting.join("b", "second", 2, is_echoed=False)
    waiting.call("a")
    waiting.call("b")
    assert waiting.holds_back(1)
    assert waiting.answered_by_next_text() is None  # the answer of the turn before
    assert waiting.answered_by_next_text() == "a"
    assert waiting.leave("a") == "first"
    assert not waiting.holds_back(1)
    assert waiting.words() == ["second"]
    assert waiting.answered_by_next_text() == "b"


def test_what_stands_on_the_screen_is_not_echoed_again() -> None:
    waiting = WaitingLine()
    waiting.join("a", "/memory", 1, is_echoed=True)
    assert waiting.answered_by_next_text() is None  # it waits yet
    waiting.call("a")
    assert waiting.leave("a") is None
    assert waiting.leave("a") is None
    assert "a" not in waiting
