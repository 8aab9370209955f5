"""The emulator as tests hold it: start, stop, trouble, state.

One rule: everything a test does in Python can be done by `POST /emu/OPERATION` as well.
"""

import pickle
from pathlib import Path
from types import TracebackType
from typing import Self

from .control import operate
from .emulator import Emulator
from .faults import Fault, FaultKind, RateLimit
from .reading import Reading
from .server import Server
from .world import World

DEFAULT_TOKEN = "4242:emulated-token"


class BotApi(Reading):
    """A strict Bot API server on loopback.

    >>> async with BotApi() as api:
    ...     ada = api.private_chat(42, "Ada")
    ...     bot = telegram.Bot(api.token, base_url=f"{api.base_url}/bot")

    `base_url` is the server's root without `/bot`. `state` names a file that is read at the start, if it is there,
    and written after every request; faults and rate limits are not part of it.
    """

    def __init__(
        self,
        *,
        token: str = DEFAULT_TOKEN,
        port: int = 0,
        state: Path | None = None,
        topics: bool = True,
        users_create_topics: bool = True,
    ) -> None:
        self.token = token
        self.port = port
        self._state = state
        world = _load(state) if state is not None and state.exists() else _new_world(token, topics, users_create_topics)
        super().__init__(Emulator(world))
        self._server = Server(self._emulator, token, lambda name, body: operate(self, name, body), self._save)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self.port = await self._server.start(self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop()
        self._save()

    def fail(
        self,
        kind: FaultKind,
        method: str = ".*",
        *,
        times: int | None = 1,
        skip: int = 0,
        chat: int | None = None,
        pattern: str | None = None,
        retry_after: int = 1,
        seconds: float | None = None,
        code: int = 400,
        text: str = "emulated failure",
    ) -> Fault:
        """Strike the next requests whose method matches; see Fault for the meaning of each field."""
        fault = Fault(
            kind,
            method,
            times=times,
            skip=skip,
            chat_id=chat,
            pattern=pattern,
            retry_after=retry_after,
            seconds=seconds,
            code=code,
            text=text,
        )
        self._emulator.troubles.faults.append(fault)
        return fault

    def heal(self) -> None:
        """Take back every fault and rate limit, and let held requests go on."""
        for fault in self._emulator.troubles.faults:
            fault.release()
        self._emulator.troubles.faults.clear()
        self._emulator.troubles.rate_limit = None

    def ignore_schema_file(self) -> None:
        """Judge by the hand-written table alone, as where no schema file is at hand."""
        self._emulator.schema = None

    def limit_rate(self, count: int, seconds: float, *, per_chat: bool = True) -> None:
        """Answer 429 to anything above `count` sends, edits, drafts and actions in `seconds`."""
        self._emulator.troubles.rate_limit = RateLimit(count, seconds, per_chat)

    def _save(self) -> None:
        if self._state is not None:
            temporary = self._state.with_suffix(".new")
            temporary.write_bytes(pickle.dumps(self.world))
            temporary.replace(self._state)


def _load(path: Path) -> World:
    world = pickle.loads(path.read_bytes())
    if not isinstance(world, World):
        raise TypeError(f"{path} does not hold the state of this emulator: remove it")
    return world


def _new_world(token: str, topics: bool, users_create_topics: bool) -> World:
    return World(
        bot={
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Merk",
            "username": "merk_test_bot",
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": topics,
            "allows_users_to_create_topics": users_create_topics,
        }
    )
