"""Steps of the tests of Matrix: to listen, and to wait for what was heard."""

from handlers.types import Incoming
from tests.contract.transports import MatrixRig, heard
from tests.fakes.homeserver.world import Room
from tests.waiting import until


async def last(rig: MatrixRig, count: int = 1) -> Incoming:
    return (await heard(rig, count))[-1]


async def listening(rig: MatrixRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await until(lambda: rig.transport.last_contact() is not None)


async def quiet(rig: MatrixRig, room: Room) -> None:
    """Return when everything said so far in a room was looked at."""
    marker = await rig.server.say(room, rig.ada, "@merk: marker")
    await until(lambda: marker in rig.inbox.calls)
