"""Events on their way out: encrypted where the room is, once, and every failure as the port's `SendError`."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import structlog

from bot.transports.base import Fault, SendError
from bot.transports.matrix.account import Account, Encryption
from bot.transports.matrix.client import READ_SECONDS, Homeserver, Json, quoted
from bot.transports.matrix.errors import AccountError, MatrixError, as_send_error
from bot.transports.matrix.rooms import Rooms, Rotation
from handlers.types import Place

if TYPE_CHECKING:
    from bot.transports.matrix.crypto.machine import Machine

log = structlog.get_logger(__name__)

T = TypeVar("T")

REACTION = "m.reaction"
MESSAGE = "m.room.message"


class Sender:
    """Sends into rooms as the bot's one device."""

    def __init__(
        self, server: Homeserver, account: Account, rooms: Rooms, encryption: Encryption, machine: "Machine | None"
    ) -> None:
        self._server = server
        self._account = account
        self._rooms = rooms
        self._encryption = encryption
        self._machine = machine
        self._is_encrypted: dict[str, bool] = {}
        self._quiet_until = 0.0

    def is_quiet(self) -> bool:
        """True while the homeserver has asked for silence, in whatever room."""
        return monotonic() < self._quiet_until

    async def send(
        self, place: Place, kind: str, content: Json, txn: str, *, seconds: float = READ_SECONDS, as_it_is: bool = False
    ) -> str:
        """Send an event and return its id. With `as_it_is` it goes into any room, unencrypted. Raises `SendError`."""

        async def work() -> str:
            room, sealed_kind, sealed = place.chat, kind, content
            if not as_it_is and await self.is_encrypted(room):
                if self._machine is None:
                    raise SendError(Fault.REFUSED, "the room is encrypted, and matrix.encryption is off")
                if kind != REACTION:  # these stay open: they hold nobody's words
                    known = self._rooms.find(room)
                    rotation = known.rotation if known else Rotation()
                    sealed_kind, sealed = await self._machine.encrypt(room, kind, content, rotation)
            elif not as_it_is and self._encryption == "required":
                raise SendError(Fault.REFUSED, "the room is not encrypted, and matrix.encryption is required")
            return await self._server.send(room, sealed_kind, sealed, txn, seconds=seconds)

        return await self.ask(work, place)

    async def is_encrypted(self, room_id: str) -> bool:
        """Whether the room is encrypted; the homeserver is asked where no sync has told yet. Raises `MatrixError`."""
        if room := self._rooms.find(room_id):
            return room.is_encrypted
        if room_id not in self._is_encrypted:
            try:
                await self._server.call("GET", f"/rooms/{quoted(room_id)}/state/m.room.encryption/")
                self._is_encrypted[room_id] = True
            except MatrixError as error:
                if error.errcode != "M_NOT_FOUND":
                    raise
                self._is_encrypted[room_id] = False
        return self._is_encrypted[room_id]

    async def ask(self, call: Callable[[], Awaitable[T]], place: Place) -> T:
        """A call as our device, with its failure as `SendError`."""
        await self._ready()
        try:
            return await call()
        except MatrixError as error:
            self._account.lost(error)
            refusal = as_send_error(error, is_in_thread=bool(place.thread))
            if refusal.fault is Fault.LATER:
                self._quiet_until = monotonic() + refusal.retry_after
            raise refusal from error

    async def _ready(self) -> None:
        try:
            await self._account.ensure()
        except MatrixError as error:
            raise SendError(Fault.UNSENT, str(error), retry_after=error.retry_after) from error
        except AccountError as error:
            raise SendError(Fault.UNSENT, str(error)) from error
