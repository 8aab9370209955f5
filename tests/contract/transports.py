"""The transports under contract, each with people on its other side. Add an adapter to RIGS.

One rule: a rig plays the network and the people on it, and asserts nothing.
"""

import asyncio
import io
import json
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from bot.transports.base import Transport
from bot.transports.matrix.account import MatrixSettings
from bot.transports.matrix.transport import MatrixTransport
from bot.transports.telegram.transport import TelegramTransport
from bot.transports.telegram.webhook import WebhookSettings
from bot.transports.terminal import TerminalTransport
from handlers.types import Incoming, Place
from memory.instants import SystemClock
from memory.storage.inbox import InboxRow
from tests.fakes.bot_api import BotApi
from tests.fakes.homeserver import HomeserverFake
from tests.fakes.homeserver.server import BOT, PASSWORD
from tests.fakes.homeserver.views import body_now, messages
from tests.waiting import until

T = TypeVar("T")


class Inbox:
    """What a transport hands over. It stores as the real one does: an id that was seen is ignored."""

    def __init__(self) -> None:
        self.rows: list[InboxRow] = []
        self.calls: list[str] = []
        self.failures = 0
        """How many of the next updates cannot be stored."""
        self.gate = asyncio.Event()
        self.gate.set()
        """While it is clear, storing does not come to an end."""

    async def accept(self, external_id: str, payload: dict[str, Any]) -> None:
        self.calls.append(external_id)
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("disk full\nand then the text of the message")
        if all(row.external_id != external_id for row in self.rows):
            self.rows.append(InboxRow(len(self.rows) + 1, "any", external_id, payload, 0))


class Rig(Protocol):
    """One person in a private place of their own. What a rig cannot do it says, and the test is skipped."""

    name: ClassVar[str]
    redelivers: ClassVar[bool]
    """The network keeps what was not acknowledged."""
    has_threads: ClassVar[bool]
    inbox: Inbox

    @property
    def transport(self) -> Transport: ...

    @property
    def place(self) -> Place: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def say(self, text: str) -> None:
        """Let the person write."""
        ...

    async def press(self, label: str) -> None:
        """Let the person press a button of the newest message."""
        ...

    def shown(self, thread: str = "") -> list[str]:
        """The bot's texts in the place (or a thread of it) as the person sees them now."""
        ...

    async def die(self) -> None:
        """Lose the process at once, without any good-bye, and make a new transport that is not started."""
        ...


async def heard(rig: Rig, count: int = 1) -> list[Incoming]:
    """Wait for so many updates, and understand them all."""
    await until(lambda: len(rig.inbox.rows) >= count)
    return [incoming for row in rig.inbox.rows if (incoming := rig.transport.parse(row))]


class TelegramRig:
    """Telegram by long polling, over the emulator."""

    name: ClassVar[str] = "telegram"
    redelivers: ClassVar[bool] = True
    has_threads: ClassVar[bool] = True

    def __init__(self) -> None:
        self.api = BotApi()
        self.inbox = Inbox()
        self.ada = self.api.private_chat(42, "Ada", language="de", topics=True)
        self.transports: list[TelegramTransport] = []

    @property
    def transport(self) -> TelegramTransport:
        return self.transports[-1]

    @property
    def place(self) -> Place:
        return Place("telegram", str(self.ada))

    async def __aenter__(self) -> Self:
        await self.api.__aenter__()
        self.connect()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for transport in self.transports:
            await transport.close()
        await self.api.__aexit__(None, None, None)

    def connect(self, *, token: str | None = None, webhook: WebhookSettings | None = None) -> TelegramTransport:
        """Make one more transport, from now on the one under test."""
        transport = TelegramTransport(
            token or self.api.token,
            SystemClock(),
            lambda language: [("help", f"Help ({language})"), ("memory", f"Memory ({language})")],
            base_url=self.api.base_url,
            webhook=webhook,
        )
        self.transports.append(transport)
        return transport

    async def say(self, text: str) -> None:
        self.api.say(self.ada, text)

    async def press(self, label: str) -> None:
        self.api.press(self.ada, self.api.last(self.ada).id, re.escape(label))

    def shown(self, thread: str = "") -> list[str]:
        return self.api.answers(self.ada, thread=int(thread) if thread else None)

    async def die(self) -> None:
        # cancelled in the middle of whatever it does: `stop` would let a commit under way come to its end
        for task in self.transport._receiver._tasks:  # pyright: ignore[reportPrivateUsage] - a kill asks nobody
            task.cancel()
        await asyncio.sleep(0)
        self.inbox = Inbox()
        self.connect()


class TerminalRig:
    """The terminal by pipes, in JSON, with a person who writes lines."""

    name: ClassVar[str] = "terminal"
    redelivers: ClassVar[bool] = False
    has_threads: ClassVar[bool] = False

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.place = Place("terminal", "local")
        self._out = io.StringIO()
        reading, writing = os.pipe()
        self._lines = os.fdopen(reading)
        self._pen = os.fdopen(writing, "wb", buffering=0)
        self.transport = TerminalTransport(json=True, is_tty=False, language="en", stdin=self._lines, stdout=self._out)
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.transport.stop_receiving()
        await self.transport.close()
        if self._running:
            await self._running
        self._pen.close()
        self._lines.close()

    async def say(self, text: str) -> None:
        self._write({"text": text})

    async def press(self, label: str) -> None:
        newest = list(self._events().values())[-1]
        numbers = {key["label"]: key["n"] for row in newest.get("buttons", ()) for key in row}
        if label not in numbers:
            raise ValueError(f"there is no button {label}")
        self._write({"press": numbers[label]})

    def shown(self, thread: str = "") -> list[str]:
        del thread
        # a terminal that is read by programs keeps the Markdown that people do not see elsewhere
        return [re.sub(r"[*`]", "", event["text"]) for event in self._events().values()]

    async def die(self) -> None:
        raise NotImplementedError("nobody sends a terminal anything twice")

    def _events(self) -> dict[str, dict[str, Any]]:
        events: dict[str, dict[str, Any]] = {}
        for line in self._out.getvalue().splitlines():
            event = json.loads(line)
            if event["type"] == "wipe":
                for ref in event["refs"]:
                    events.pop(ref, None)
            else:
                events[event["id"]] = event
        return events

    def _write(self, line: dict[str, Any]) -> None:
        if self._running is None:
            self._running = asyncio.create_task(self.transport.run(settled=_at_once))
        self._pen.write(json.dumps(line).encode() + b"\n")


async def _at_once() -> None:
    return


class MatrixRig:
    """Matrix over the homeserver of tests/fakes, in a private room that Merk has been in before."""

    name: ClassVar[str] = "matrix"
    redelivers: ClassVar[bool] = True
    has_threads: ClassVar[bool] = True

    def __init__(self) -> None:
        self.server = HomeserverFake()
        self.inbox = Inbox()
        self.ada = self.server.person("ada", "Ada")
        self.room = self.server.world.create(self.ada, BOT)
        self.transports: list[MatrixTransport] = []
        self.open_tokens = True
        self.admitted = {f"matrix:{self.ada}"}
        self.folder = tempfile.TemporaryDirectory(prefix="merk-matrix-")

    @property
    def transport(self) -> MatrixTransport:
        return self.transports[-1]

    @property
    def place(self) -> Place:
        return Place("matrix", self.room.id)

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        first = self.connect()
        await first.start(self.inbox.accept)
        await until(lambda: first.last_contact() is not None)
        await first.close()
        self.connect()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for transport in self.transports:
            await transport.close()
        await self.server.__aexit__(None, None, None)
        self.folder.cleanup()

    def connect(self, **settings: Any) -> MatrixTransport:
        """Make one more transport, from now on the one under test."""
        folder = Path(self.folder.name)
        usual = MatrixSettings(self.server.url, BOT, folder, PASSWORD, encryption="off")
        transport = MatrixTransport(
            replace(usual, **settings),
            commands=("help", "newchat"),
            may_invite=self._may_invite,
            may_press=self._may_press,
        )
        self.transports.append(transport)
        return transport

    async def _may_invite(self, identity: str) -> bool:
        return identity in self.admitted

    async def _may_press(self, identity: str, token: str) -> bool:
        del token
        return self.open_tokens and identity == f"matrix:{self.ada}"

    async def say(self, text: str) -> None:
        await self.server.say(self.room, self.ada, text)

    async def press(self, label: str) -> None:
        newest = messages(self.room, BOT)[-1]
        for line in body_now(self.room, newest).split("\n"):
            mark, _, words = line.partition(" ")
            if words == label:
                await self.server.react(self.room, self.ada, newest["event_id"], mark)
                return
        raise ValueError(f"there is no button {label}")

    def shown(self, thread: str = "") -> list[str]:
        return self.server.shown(self.room, thread)

    async def die(self) -> None:
        for task in self.transport._receiver._tasks:  # pyright: ignore[reportPrivateUsage] - a kill asks nobody
            task.cancel()
        await asyncio.sleep(0)
        self.inbox = Inbox()
        self.connect()


RIGS: tuple[type[Rig], ...] = (TelegramRig, TerminalRig, MatrixRig)
