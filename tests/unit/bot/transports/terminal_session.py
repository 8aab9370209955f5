"""A conversation on the real standard streams: the real intake and delivery, and an answerer with a script.

Run by test_terminal_window.py as a program of its own: `terminal_session.py FOLDER [--json]`.
"""

import asyncio
import json
import sys
import termios
from itertools import count
from pathlib import Path

from bot import logs
from bot.transports.delivery import Delivery
from bot.transports.intake import Intake
from bot.transports.limiter import Limiter
from bot.transports.terminal import TerminalTransport
from handlers.types import Button, Card, Handled, Incoming, Notice, Reply, Text, Wipe
from memory.instants import SystemClock, to_ms
from memory.storage import confirmations, people, sessions
from memory.storage.database import Database
from memory.storage.outbox import OutboxRow
from memory.storage.tables import metadata
from memory.types import Audience, Role, Utterance

ANSWER = "# Trees\n\nFirst **oak**\nthen ash.\n\n- beech\n- fir\n\n```python\nprint('elm')\n```\n\nThe end <b>here</b>."


async def _offer(_row: OutboxRow) -> Card:
    return Card("May be lost.")


class Script:
    """What the other side does, by the first word of a message."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = asyncio.Event()
        self.terminated = asyncio.Event()

    async def handle(self, incoming: Incoming, _attempt: int) -> Handled:
        return Handled(self._answer(incoming), user_id=1)

    def is_urgent(self, incoming: Incoming) -> bool:
        return incoming.text == "/stop" or incoming.press is not None

    def _answer(self, incoming: Incoming) -> Reply:
        if incoming.press:
            return self._pressed(incoming)
        first = incoming.text.split()[0]
        known = {"/stop": self._stopped, "stream": self._stream, "forever": self._forever, "ask": self._ask}
        known |= {
            "change": self._change,
            "draft": self._draft,
            "wipe": self._wipe,
            "note": self._note,
            "file": self._file,
        }
        known |= {"slow": self._slow, "print": self._print, "terminate": self._terminate}
        return known.get(first, self._echo)(incoming)

    async def _echo(self, incoming: Incoming) -> Reply:
        yield Text(f"You said {json.dumps(incoming.text, ensure_ascii=False)}.", done=True)

    async def _stream(self, _incoming: Incoming) -> Reply:
        for start in range(0, len(ANSWER), 7):
            yield Text(ANSWER[start : start + 7])
            await asyncio.sleep(0.02)
        yield Text(ANSWER, done=True)

    async def _change(self, _incoming: Incoming) -> Reply:
        for piece in ("This was wrong.\n\n", "And more.\n\n", "Even more."):
            yield Text(piece)
            await asyncio.sleep(0.15)
        yield Text("This is right.", done=True)

    async def _forever(self, _incoming: Incoming) -> Reply:
        self._stop.clear()
        said = ""
        for number in count(1):
            said += f"word {number}\n\n"
            yield Text(f"word {number}\n\n")
            await asyncio.sleep(0.05)
            if self._stop.is_set():
                break
        yield Text(said + "Stopped here.", done=True)

    async def _stopped(self, _incoming: Incoming) -> Reply:
        self._stop.set()
        yield Notice("Stopping.")

    async def _ask(self, _incoming: Incoming) -> Reply:
        yield Card("Forget this?\n[not **bold**] \x1b[31mred", ((Button("Yes, forget", "yes"), Button("No", "no")),))

    async def _pressed(self, incoming: Incoming) -> Reply:
        assert incoming.press
        async with self._database.read() as connection:
            pending = await confirmations.find(connection, incoming.press.token)
        assert pending
        yield Card(f"Pressed {pending.action}.", replaces=incoming.press.card)
        yield Notice("In passing.", brief=True)

    async def _wipe(self, _incoming: Incoming) -> Reply:
        yield Wipe(1, "(closed)")

    async def _draft(self, _incoming: Incoming) -> Reply:
        record = Utterance(
            1, "assistant", "Merk", "A draft.", blocks=[{"kind": "version"}], is_ephemeral=True, tool="draft"
        )
        yield Card("A draft.", record=record)

    async def _note(self, _incoming: Incoming) -> Reply:
        yield Notice("Only a note.")

    async def _file(self, _incoming: Incoming) -> Reply:
        yield Card("Your facts.", file=("facts.md", "# Facts\n- one"))

    async def _slow(self, _incoming: Incoming) -> Reply:
        await asyncio.sleep(0.5)
        yield Text("Slowly.", done=True)

    async def _print(self, _incoming: Incoming) -> Reply:
        print("A stray \x1b[31mline.")  # noqa: T201 - as a library might
        yield Text("Printed.", done=True)

    async def _terminate(self, _incoming: Incoming) -> Reply:
        self.terminated.set()
        yield Text("Never seen.", done=True)


async def main(folder: Path, *, as_json: bool) -> None:
    logs.configure(level="ERROR")
    clock = SystemClock()
    database = Database.at(folder / "merk.db")
    async with database.write() as connection:
        await connection.run_sync(metadata.create_all)
        now = to_ms(clock.now())
        ada = await people.admit(connection, "terminal:local", "Ada", Role.OWNER, "en", now)
        chat = await sessions.ensure_chat(connection, "terminal", "local", kind="ai", title="", now=now)
        await sessions.start(connection, Audience(ada.id, chat, is_private=True), "", now=now)
    script = Script(database)
    transport = TerminalTransport(
        json=as_json, is_tty=sys.stdin.isatty(), language="en", history=["the oldest question", "an old question"]
    )
    delivery = Delivery(database, clock, {transport.name: transport}, Limiter(), _offer)
    intake = Intake(
        database,
        clock,
        transport,
        delivery,
        handle=script.handle,
        is_urgent=script.is_urgent,
        finished=lambda: None,
    )

    async def delivered() -> None:
        while not await delivery.idle():  # noqa: ASYNC110 - rows in a database set no event
            await asyncio.sleep(0.005)

    async def settled() -> None:
        while not (intake.is_idle() and await delivery.idle()):  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.005)

    await delivery.recover()
    delivering = asyncio.create_task(delivery.run())
    await intake.recover()
    await transport.start(intake.accept)
    terminating = asyncio.create_task(_stop_when(script.terminated, transport))
    await transport.run(settled=settled, delivered=delivered, command_names=["memory", "memorise", "forget"])
    await transport.stop_receiving()
    await intake.close()
    await delivery.drain(5)
    for task in (delivering, terminating):
        task.cancel()
    await asyncio.gather(delivering, terminating, return_exceptions=True)
    await transport.close()
    await database.close()
    print(f"left, echo {_echoes()}", file=sys.stderr)  # noqa: T201 - the program's last word, for the test


async def _stop_when(terminated: asyncio.Event, transport: TerminalTransport) -> None:
    await terminated.wait()
    await transport.stop_receiving()


def _echoes() -> bool:
    """The terminal is left as it was found: it echoes what is typed."""
    return sys.stdin.isatty() and bool(termios.tcgetattr(sys.stdin.fileno())[3] & termios.ECHO)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), as_json="--json" in sys.argv))
