"""`merk run` on Matrix, as a process of its own, between Synapse and the Messages API stand-in."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.merk_process import Merk
from tests.e2e.synapse import Account, Synapse
from tests.e2e.synapse_participant import Participant
from tests.e2e.synapse_view import Event, Message, RoomView
from tests.fakes.bot_api import BotApi
from tests.fakes.messages_api import MessagesApi, Request


@dataclass
class MatrixMerk(Merk):
    """One deployment whose only network is Matrix, unless `also_telegram`."""

    synapse: Synapse = field(kw_only=True)
    account: Account = field(kw_only=True)
    owners: list[str] = field(kw_only=True, default_factory=list[str])
    encryption: str = "off"
    also_telegram: bool = False

    @property
    def user_id(self) -> str:
        return self.account.user_id

    def environment(self) -> dict[str, str]:
        inherited = super().environment()
        if not self.also_telegram:
            inherited = {key: value for key, value in inherited.items() if "TELEGRAM" not in key}
        return inherited | {
            "MERK_MATRIX__HOMESERVER": self.synapse.url,
            "MERK_MATRIX__USER_ID": self.account.user_id,
            "MERK_MATRIX__PASSWORD": self.account.password,
            "MERK_MATRIX__ENCRYPTION": self.encryption,
            "MERK_MATRIX__EDIT_SECONDS": "5",
            "MERK_BUDGET__MESSAGES_PER_MINUTE": "1000",
            "MERK_ACCESS__OWNERS": ",".join(["telegram:42", *(f"matrix:{user}" for user in self.owners)]),
            **self.more,
        }

    async def start(self, *, wait: bool = True) -> None:
        before = self.log().count("matrix.synced") if (self.data_dir.parent / "merk.log").exists() else 0
        await super().start(wait=False)
        if wait:
            await self.until(lambda: self.log().count("matrix.synced") > before, 60)

    async def until(self, holds: "object", seconds: float = 30) -> None:
        """Wait until something can be seen from outside."""
        assert callable(holds)
        async with asyncio.timeout(seconds):
            while not holds():
                assert self.process is None or self.process.returncode is None, self.log()[-3000:]
                await asyncio.sleep(0.05)

    def answers(self) -> list[Request]:
        """The requests that were made to answer somebody, as opposed to those in the background."""
        return [request for request in self.model.requests if request.body.get("stream")]


@asynccontextmanager
async def matrix_deployment(
    folder: Path,
    synapse: Synapse,
    *owners: str,
    encryption: str = "off",
    also_telegram: bool = False,
    more: dict[str, str] | None = None,
) -> AsyncGenerator[MatrixMerk, None]:
    """The servers and a Merk that is not started yet."""
    async with BotApi() as telegram, MessagesApi() as model:
        data_dir = folder / "data"
        data_dir.mkdir()
        merk = MatrixMerk(
            telegram,
            model,
            data_dir,
            more or {},
            synapse=synapse,
            account=await synapse.register("merk"),
            owners=list(owners),
            encryption=encryption,
            also_telegram=also_telegram,
        )
        try:
            yield merk
        finally:
            await merk.kill()


async def enter(merk: MatrixMerk, person: Participant, *, encrypted: bool = False, state: Sequence[Event] = ()) -> str:
    """A private room with Merk in it."""
    room_id = await person.create_room(invite=[merk.user_id], direct=True, encrypted=encrypted, state=state)
    await person.wait_for(room_id, lambda view: view.membership(merk.user_id) == "join")
    return room_id


async def answer(
    merk: MatrixMerk, person: Participant, room: str, text: str, *, thread: str | None = None, within: float = 30
) -> Message:
    """Say something and return the newest message of Merk's once it has answered."""
    before = len((await person.view(room)).said_by(merk.user_id))
    await person.send(room, text, thread=thread)
    view = await person.wait_for(room, lambda view: len(view.said_by(merk.user_id)) > before, within)
    return view.said_by(merk.user_id)[-1]


def echoes(view: RoomView, merk: MatrixMerk) -> list[str]:
    """What of the person's own words the model gave back, answer by answer."""
    return [each.body.removeprefix("Echo: ") for each in view.said_by(merk.user_id) if each.body.startswith("Echo: ")]


async def press(person: Participant, room: str, card: Message, label: str) -> None:
    """React to a card with the mark in front of this label."""
    mark = next(line for line in card.body.splitlines() if label in line).split(" ")[0]
    await person.react(room, card.event_id, mark)


def device(merk: MatrixMerk) -> str:
    kept = json.loads((merk.data_dir / "matrix" / "device.json").read_text())
    return str(kept["device_id"])
