"""Synapse, the reference homeserver, as a process on loopback. `scripts/setup e2e` installs it into .venv-synapse.

One rule: tests reach it as its clients do; nobody looks into its database.

    pytestmark = pytest.mark.external  # without it the test runs in `make test`, where there is no Synapse

    async def test_...(synapse: Synapse):  # one server for all tests; users and rooms are new in each test
        bot = await synapse.register("merk")  # Account(user_id="@merk-1:localhost", name, password): log in with these
        async with synapse.person("ada") as ada:  # registered and logged in, see tests/e2e/synapse_person.py
            room = await ada.create_room(invite=[bot.user_id])  # encrypted=True, direct=True, name=... as wanted
            ...  # start the bot on synapse.url
            await ada.wait_for(room, lambda view: view.membership(bot.user_id) == "join")
            question = await ada.send(room, "Hello")
            view = await ada.wait_for(room, lambda view: view.said_by(bot.user_id))

`stock_synapse` is the same with the rate limits of a server that nobody tuned. A test that stops or kills the server
takes one of its own: `with Synapse.running(tmp_path) as mine: mine.kill(); mine.start()` (same port, same data).
"""

import base64
import hashlib
import hmac
import itertools
import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from tests.e2e.synapse_person import Person

PYTHON = Path(__file__).parents[2] / ".venv-synapse/bin/python"
SERVER_NAME = "localhost"
_START_SECONDS = 60  # two seconds on an idle machine
_FREE = {"per_second": 10_000, "burst_count": 10_000}
# Logins and registrations are counted per address, and all of ours come from one: no limit in either mode.
_FREE_DOORS: dict[str, Any] = {
    "rc_registration": _FREE,
    "rc_login": dict.fromkeys(("address", "account", "failed_attempts"), _FREE),
    "rc_room_creation": _FREE,
}
_FREE_ROOMS: dict[str, Any] = {
    "rc_message": _FREE,
    "rc_admin_redaction": _FREE,
    "rc_joins": dict.fromkeys(("local", "remote"), _FREE),
    "rc_joins_per_room": _FREE,
    "rc_invites": dict.fromkeys(("per_room", "per_user", "per_issuer"), _FREE),
    "rc_key_requests": _FREE,
    "rc_profile": _FREE,
    "rc_media_create": _FREE,
}

Limits = Literal["fast", "stock"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class Account:
    """Someone who may log in. `name` is the localpart."""

    user_id: str
    name: str
    password: str


@dataclass
class Synapse:
    """One homeserver with its data in `folder`. `stock` keeps the limits on messages, joins and invitations."""

    folder: Path
    limits: Limits = "fast"
    port: int = field(default_factory=_free_port)
    process: subprocess.Popen[bytes] | None = None
    _secret: str = field(default_factory=lambda: secrets.token_hex(16))
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _admin: str = ""

    @classmethod
    @contextmanager
    def running(cls, folder: Path, limits: Limits = "fast") -> "Generator[Synapse]":
        """A server of the test's own, up within seconds, stopped at the end."""
        server = cls(folder, limits)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when clients are served. Blocks; in an async test that must go on: `await asyncio.to_thread(...)`."""
        if not PYTHON.exists():
            pytest.fail("There is no Synapse here. Install it: scripts/setup e2e")
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "homeserver.yaml"
        if not config.exists():
            config.write_text(json.dumps(self._configuration(), indent=1))  # JSON is YAML
        with (self.folder / "synapse.log").open("ab") as log:
            self.process = subprocess.Popen(
                [PYTHON, "-m", "synapse.app.homeserver", "-c", config],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
            )
        self._wait_until_served()

    def stop(self) -> None:
        """As a supervisor does it."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """As a power cut does it. `start()` brings it back with what it had stored."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return (self.folder / "synapse.log").read_text(errors="replace")

    async def register(self, name: str, *, admin: bool = False) -> Account:
        """A new user with no device yet. A number is added to the name, so that each test has people of its own."""
        account = Account(f"@{(unique := f'{name}-{next(self._numbers)}')}:{SERVER_NAME}", unique, secrets.token_hex(8))
        path = f"{self.url}/_synapse/admin/v1/register"
        async with httpx.AsyncClient(verify=False) as client:
            nonce: str = (await client.get(path)).raise_for_status().json()["nonce"]
            signed = "\0".join((nonce, account.name, account.password, "admin" if admin else "notadmin"))
            body: dict[str, Any] = {
                "nonce": nonce,
                "username": account.name,
                "displayname": name.capitalize(),
                "password": account.password,
                "admin": admin,
                "inhibit_login": True,
                "mac": hmac.new(self._secret.encode(), signed.encode(), hashlib.sha1).hexdigest(),
            }
            (await client.post(path, json=body)).raise_for_status()
        return account

    @asynccontextmanager
    async def person(self, name: str) -> AsyncGenerator[Person]:
        """A new user, logged in, with a client that shows them what a person sees."""
        async with self.login(await self.register(name)) as person:
            yield person

    @asynccontextmanager
    async def login(self, account: Account) -> AsyncGenerator[Person]:
        """Another device of a user that exists. It ends with the block, its access token does not."""
        async with Person.logged_in(self.url, account.user_id, account.password) as person:
            yield person

    async def lift_limits(self, user_id: str) -> None:
        """What the administrator of a stock server does for a bot: no limit on this user's messages."""
        await self._administer(f"users/{user_id}/override_ratelimit", {"messages_per_second": 0, "burst_count": 0})

    async def deactivate(self, user_id: str) -> None:
        """The administrator ends an account: its tokens are worth nothing from now on."""
        await self._administer(f"deactivate/{user_id}", {"erase": False})

    async def _administer(self, path: str, body: dict[str, Any]) -> None:
        async with httpx.AsyncClient(base_url=self.url, verify=False) as client:
            if not self._admin:
                account = await self.register("admin", admin=True)
                login = {
                    "type": "m.login.password",
                    "identifier": {"type": "m.id.user", "user": account.user_id},
                    "password": account.password,
                }
                reply = await client.post("/_matrix/client/v3/login", json=login)
                self._admin = reply.raise_for_status().json()["access_token"]
            headers = {"Authorization": f"Bearer {self._admin}"}
            (await client.post(f"/_synapse/admin/v1/{path}", json=body, headers=headers)).raise_for_status()

    def _configuration(self) -> dict[str, Any]:
        """No federation, no key server, no preview: nothing here may ask the outside."""
        listener: dict[str, Any] = {
            "type": "http",
            "port": self.port,
            "bind_addresses": ["127.0.0.1"],
            "resources": [{"names": ["client"], "compress": False}],
        }
        return {
            "server_name": SERVER_NAME,
            "pid_file": str(self.folder / "synapse.pid"),
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": str(self.folder / "homeserver.db")}},
            "media_store_path": str(self.folder / "media"),
            "signing_key": f"ed25519 test {base64.b64encode(secrets.token_bytes(32)).decode().rstrip('=')}",
            "macaroon_secret_key": secrets.token_hex(16),
            "form_secret": secrets.token_hex(16),
            "registration_shared_secret": self._secret,
            "bcrypt_rounds": 4,  # passwords of tests need no slow hash
            "report_stats": False,
            "trusted_key_servers": [],
            "suppress_key_server_warning": True,
            "federation_domain_whitelist": [],
            "presence": {"enabled": False},
            "url_preview_enabled": False,
            **_FREE_DOORS,
            **(_FREE_ROOMS if self.limits == "fast" else {}),
        }

    def _wait_until_served(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                httpx.get(f"{self.url}/_matrix/client/versions", verify=False).raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.05)
            else:
                return
        self.kill()
        pytest.fail(f"Synapse did not start. The end of its log:\n{self.log()[-4000:]}")


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Generator[Synapse]:
    """The homeserver that tests share, without limits."""
    with Synapse.running(tmp_path_factory.mktemp("synapse")) as server:
        yield server


@pytest.fixture(scope="session")
def stock_synapse(tmp_path_factory: pytest.TempPathFactory) -> Generator[Synapse]:
    """The homeserver that tests share, with the limits of one that nobody tuned."""
    with Synapse.running(tmp_path_factory.mktemp("stock-synapse"), "stock") as server:
        yield server
