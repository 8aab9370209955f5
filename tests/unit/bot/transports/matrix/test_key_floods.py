"""Keys are taken in before the messages that they open, but a homeserver that has no end of them holds nothing up."""

from pathlib import Path
from typing import Any, cast

import pytest

from bot.transports.matrix.client import Homeserver
from bot.transports.matrix.errors import MatrixError
from bot.transports.matrix.membership import Membership
from bot.transports.matrix.noting import Noter
from bot.transports.matrix.reading import MANY_KEYS, MOST_KEY_PAGES, Reader
from bot.transports.matrix.rooms import Rooms
from bot.transports.matrix.state import SyncState


def page(number: int, keys: int) -> dict[str, Any]:
    return {"next_batch": f"s{number}", "to_device": {"events": [{"type": "m.room_key"}] * keys}}


class Server:
    """Hands out keys, page by page: `pages` of them, `step` by `step`, then what `last` says."""

    def __init__(self, pages: int, *, step: int = 1, last: MatrixError | None = None) -> None:
        self.pages = pages
        self.step = step
        self.last = last
        self.asked: list[str] = []

    async def sync(self, since: str, *, full_state: bool, seconds: float, only: dict[str, Any]) -> dict[str, Any]:
        assert (full_state, seconds, only["room"]) == (False, 0, {"rooms": []})
        self.asked.append(since)
        if len(self.asked) < self.pages:
            return page(int(since[1:]) + self.step, 2 * MANY_KEYS)
        if self.last is not None:
            raise self.last
        return page(int(since[1:]) + 1, 3)


class Machine:
    def __init__(self) -> None:
        self.taken: list[str] = []

    async def receive(self, body: dict[str, Any]) -> None:
        self.taken.append(body["next_batch"])

    receive_keys = receive


def reader(server: Server, machine: Machine, folder: Path) -> Reader:
    return Reader(
        cast("Homeserver", server),
        SyncState(folder),
        Rooms(),
        "@merk:example.org",
        membership=cast("Membership", None),  # no room is read here
        noter=cast("Noter", None),
        machine=cast("Any", machine),
        open_event=lambda _room, _event: None,
        refuse_plain=None,
    )


async def test_all_keys_come_before_the_messages(tmp_path: Path) -> None:
    server, machine = Server(3), Machine()
    await reader(server, machine, tmp_path).receive(page(1, 2 * MANY_KEYS))
    assert machine.taken == ["s1", "s2", "s3", "s4"]


async def test_a_homeserver_that_never_comes_to_an_end_of_its_keys_does_not_keep_the_messages_out(
    tmp_path: Path,
) -> None:
    server = Server(10 * MOST_KEY_PAGES)
    await reader(server, Machine(), tmp_path).receive(page(1, 2 * MANY_KEYS))
    assert len(server.asked) == MOST_KEY_PAGES


async def test_a_homeserver_that_repeats_itself_is_asked_once(tmp_path: Path) -> None:
    server = Server(10 * MOST_KEY_PAGES, step=0)
    await reader(server, Machine(), tmp_path).receive(page(1, 2 * MANY_KEYS))
    assert server.asked == ["s1"]


async def test_a_homeserver_that_refuses_to_hand_out_keys_alone_is_read_all_the_same(tmp_path: Path) -> None:
    server = Server(2, last=MatrixError(400, "M_BAD_JSON", "no such filter"))
    machine = Machine()
    await reader(server, machine, tmp_path).receive(page(1, 2 * MANY_KEYS))
    assert machine.taken == ["s1", "s2"]


async def test_a_homeserver_that_is_away_for_a_moment_is_asked_again_for_the_whole_sync(tmp_path: Path) -> None:
    server = Server(1, last=MatrixError(502, "M_UNKNOWN", "away"))
    with pytest.raises(MatrixError):
        await reader(server, Machine(), tmp_path).receive(page(1, 2 * MANY_KEYS))
