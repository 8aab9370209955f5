"""The strict person: matrix-js-sdk in a Node process, trusting only devices that their owner signed.

One rule: everything about encryption is the other implementation's word; nothing here decrypts or signs.

    async with strict_person(synapse, "ada") as ada:  # skips the test where Node is missing; a fresh user each time
        room = await ada.create_room(invite=[bot.user_id], encrypted=True)
        # before sending: keys go to members only
        await ada.wait_for(room, lambda view: view.membership(bot.user_id) == "join")
        question = await ada.send(room, "Hello")  # also thread=, reply_to=, mention=; edit, react, redact
        view = await ada.wait_for(room, lambda view: view.said_by(bot.user_id))
        assert view.said_by(bot.user_id)[0].is_encrypted
        assert all((await ada.signed_devices(bot.user_id)).values())
        assert not ada.decryption_failures  # event id -> reason
        await ada.go_offline(); await ada.come_back()  # the client anew, from its stored keys
        await ada.rotate(room)  # the next message begins a new Megolm session

`signs=False` leaves the device unsigned, `isolates=False` trusts every device: together the negative control.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.e2e.synapse import Synapse
from tests.e2e.synapse_participant import Participant
from tests.e2e.synapse_view import Event, Message, RoomView

FOLDER = Path(__file__).parent / "e2ee"
_LINE_BYTES = 2**24
_ANSWER_SECONDS = 60


class StrictClientError(Exception):
    """What the client said instead of an answer."""


class StrictPerson(Participant):
    """Its view grows in the background. `view` is what has arrived; `wait_for` is what tests should use."""

    def __init__(self, process: asyncio.subprocess.Process, words: IO[bytes], user_id: str) -> None:
        super().__init__(user_id, "", "")
        self.decryption_failures: dict[str, str] = {}
        self.process = process
        self._words = words
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self._news = asyncio.Event()
        self._end: StrictClientError | None = None

    async def log_in(self, url: str, password: str, *, signs: bool, isolates: bool) -> None:
        """Once, before anything else."""
        reply = await self._ask("login", url=url, user=self.user_id, password=password, signs=signs, isolates=isolates)
        self.device_id, self.access_token = reply["device_id"], reply["access_token"]

    async def call(self, method: str, path: str, body: Event | None = None, **parameters: Any) -> Event:
        """Refusals raise StrictClientError with the server's words."""
        return await self._ask("call", method=method, path=path, body=body, query=parameters)

    async def send_event(self, room: str, kind: str, content: Event) -> str:
        """StrictClientError where the client refuses to send, as an unsigned device of a signed user does."""
        return await self._ask("send", room=room, kind=kind, content=content)

    async def sync(self, seconds: float = 0) -> None:
        """The client syncs by itself; this waits until something new has arrived."""
        if self._end is not None:
            raise self._end
        if seconds:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), seconds)
            except TimeoutError:
                return  # no news: the caller looks at its own deadline

    async def signed_devices(self, user_id: str) -> dict[str, bool]:
        """Each device of this user that has keys: whether its owner signed it (`signedByOwner`)."""
        return await self._ask("devices", user=user_id)

    async def rotate(self, room: str) -> None:
        await self._ask("rotate", room=room)

    async def read_file(self, message: Message) -> tuple[str, str]:
        """An encrypted file: what the homeserver keeps of it, and the text that this client makes of that."""
        answer = await self._ask("read_file", file=message.content["file"])
        return answer["stored"], answer["text"]

    async def scroll_up(self, room: str) -> None:
        """To the beginning: a sync that brings much leaves out what came first. It is shown in the order of arrival."""
        await self._ask("scroll_up", room=room)

    async def go_offline(self) -> None:
        await self._ask("stop")

    async def come_back(self) -> None:
        """A new client over the stored keys. It shows the last 100 events of each room, decrypted anew."""
        self.decryption_failures.clear()
        await self._ask("start")

    async def _ask(self, verb: str, **arguments: Any) -> Any:
        assert self.process.stdin is not None
        if self._end is not None:
            raise self._end
        self._asked += 1
        answer = self._answers[self._asked] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": self._asked, "verb": verb, **arguments})
        self.process.stdin.write(line.encode() + b"\n")
        await self.process.stdin.drain()
        return await asyncio.wait_for(answer, _ANSWER_SECONDS)

    async def listen(self) -> None:
        """Until the client ends: its answers and its events."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            said: Event = json.loads(line)
            if "event" in said:
                self._take(said["event"])
            elif not (answer := self._answers.pop(said["id"])).done():
                if "error" in said:
                    answer.set_exception(StrictClientError(said["error"]))
                else:
                    answer.set_result(said["result"])
        self._words.seek(0)
        self._end = StrictClientError(f"The client has ended. Its last words: {self._words.read()[-2000:].decode()}")
        self._news.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._end)

    def _take(self, event: Event) -> None:
        view = self.rooms.setdefault(event["room_id"], RoomView())
        if event.get("event_id"):
            view.take([event])
            if event["decryption_failure"]:
                self.decryption_failures[event["event_id"]] = event["decryption_failure"]
            else:
                self.decryption_failures.pop(event["event_id"], None)
        else:
            view.take_ephemeral(event)
        self._news.set()


def is_installed() -> bool:
    """Whether `strict_person` has what it needs."""
    return shutil.which("node") is not None and (FOLDER / "node_modules").exists()


@asynccontextmanager
async def strict_person(
    synapse: Synapse, name: str, *, signs: bool = True, isolates: bool = True
) -> AsyncGenerator[StrictPerson]:
    """A new user with this client, logged in, their device signed. About three seconds."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed: without it there is no matrix-js-sdk to check encryption against")
    if not (FOLDER / "node_modules").exists():
        pytest.fail("matrix-js-sdk is not installed. Install it: scripts/setup e2e")
    account = await synapse.register(name)
    with tempfile.TemporaryFile() as words:
        process = await asyncio.create_subprocess_exec(
            node,
            str(FOLDER / "person.mjs"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=words,
            limit=_LINE_BYTES,
        )
        person = StrictPerson(process, words, account.user_id)
        listening = asyncio.create_task(person.listen())
        try:
            await person.log_in(synapse.url, account.password, signs=signs, isolates=isolates)
            yield person
        finally:
            await _finish(process)
            await listening


async def _finish(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), 10)
    except TimeoutError:
        process.kill()
        await process.wait()
