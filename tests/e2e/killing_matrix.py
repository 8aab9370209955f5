"""The conversation of killing.py in an encrypted room: Synapse between Merk and a client that trusts signed devices."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.e2e.e2ee_client import StrictPerson, strict_person
from tests.e2e.killing import OFFERS, Conversation
from tests.e2e.matrix_stage import MatrixMerk, enter, matrix_deployment, press
from tests.e2e.synapse import Synapse
from tests.e2e.synapse_view import Message


class OnMatrix(Conversation):
    early = 0.3

    def __init__(self, merk: MatrixMerk, person: StrictPerson, room: str) -> None:
        self.merk = self._on = merk
        self._person = person
        self._room = room

    async def say(self, text: str) -> None:
        await self._person.send(self._room, text)

    async def shown(self) -> list[str]:
        return [message.body for message in await self._said()]

    async def take_offers(self) -> int:
        offers = [
            (message, button)
            for message in await self._said()
            for words, button in OFFERS.items()
            if words in message.body
        ]
        for message, button in offers:
            await press(self._person, self._room, message, button)
        return len(offers)

    async def settle(self, said: int) -> None:
        """Everything has come in, is done with, and has gone out."""
        logged = "SELECT count(*) FROM messages WHERE role = 'user'"
        await self._on.until(lambda: self.merk.rows(logged)[0][0] >= said, 120 + 2 * said)
        await self.merk.settle(120 + 2 * said)
        await asyncio.sleep(1)  # the client has it a moment later

    def violations(self) -> int:
        unread = self._person.rooms[self._room].unreadable()
        return len(unread) + len(self._person.decryption_failures) + len(self.merk.model.violations)

    async def _said(self) -> list[Message]:
        return (await self._person.view(self._room)).said_by(self._on.user_id)


@asynccontextmanager
async def on_matrix(synapse: Synapse, folder: Path) -> AsyncGenerator[Conversation, None]:
    """A private encrypted room with Merk in it, which has stopped again."""
    async with (
        strict_person(synapse, "ada") as ada,
        matrix_deployment(folder, synapse, ada.user_id, encryption="required") as merk,
    ):
        await merk.start()
        room = await enter(merk, ada, encrypted=True)
        await merk.stop()
        yield OnMatrix(merk, ada, room)
