"""`merk init`, typed into a terminal: each answer is checked, and nothing is written before the last one."""

import asyncio
import json
import os
import re
import signal
import sys
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import pexpect
import pytest

from bot.config import load
from bot.transports.matrix import files
from tests.fakes.bot_api import BotApi
from tests.fakes.homeserver.server import BOT, PASSWORD, HomeserverFake
from tests.fakes.messages_api import MessagesApi
from tests.fakes.ollama_api import OllamaApi, OllamaModel

ROOT = Path(__file__).parents[4]
NOBODY = "http://127.0.0.1:9"

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def _hears_ctrl_c() -> None:
    """As in a terminal: what was started in the background, as tests may be, does not, nor do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _processor_time(pid: int) -> str:
    """What a process used of the processor so far, and whether it sleeps."""
    state, *figures = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return " ".join((state, *figures[10:12]))


class Terminal:
    """A person at `merk init`."""

    def __init__(self, target: Path, environment: dict[str, str]) -> None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("MERK_", "ANTHROPIC_"))}
        self._child: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            ["-m", "bot", "init", "--config", str(target)],
            env=clean
            | {"OLLAMA_HOST": NOBODY, "NO_COLOR": "1", "TERM": "dumb", "HOME": str(target.parent)}
            | environment,  # pyright: ignore[reportArgumentType] - its type forgets mappings of str
            cwd=str(ROOT),
            encoding="utf-8",
            timeout=20,
            dimensions=(40, 160),
            preexec_fn=_hears_ctrl_c,
        )

    async def reads(self, text: str) -> str:
        """Wait for words; return them as they were shown."""
        await asyncio.to_thread(self._child.expect, text)
        found = self._child.match
        assert isinstance(found, re.Match)
        return str(found.group(0))

    async def types(self, text: str) -> Self:
        self._child.sendline(text)
        return self

    async def passes_matrix(self) -> None:
        await self.reads("Homeserver")
        await self.types("")

    async def is_asked(self) -> None:
        """Wait until the program only waits for a key: a Ctrl-C just before that is heard at the next key."""
        before, pid = "", self._child.pid
        assert pid is not None
        while (now := _processor_time(pid)) != before:
            before = now
            await asyncio.sleep(0.3)

    def interrupts(self) -> None:
        self._child.sendintr()

    async def leaves(self) -> int:
        """Wait for the end; return the exit code."""
        await asyncio.to_thread(self._child.expect, pexpect.EOF)
        await asyncio.to_thread(self._child.wait)
        return self._child.exitstatus if self._child.exitstatus is not None else -1

    @property
    def shown(self) -> str:
        return str(self._child.before)

    def close(self) -> None:
        self._child.close(force=True)


@asynccontextmanager
async def terminal(target: Path, **environment: str) -> AsyncGenerator[Terminal, None]:
    opened = Terminal(target, environment)
    try:
        yield opened
    finally:
        await asyncio.to_thread(opened.close)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    folder.mkdir()
    return folder / "config.toml"


async def test_a_person_is_led_from_a_token_to_a_file(target: Path) -> None:
    async with BotApi() as telegram, MessagesApi() as claude:
        telegram.private_chat(42, "Ada")
        telegram.private_chat(66, "Eve")
        telegram.group(-5, "Everybody", [42, 66])
        servers = {
            "MERK_TELEGRAM__BASE_URL": telegram.base_url,
            "MERK_MODEL__ANTHROPIC__BASE_URL": claude.base_url,
        }
        async with terminal(target, **servers) as person:
            await person.reads("Token")
            await person.types("my token")
            await person.reads("looks like 123456:ABC-DEF")
            await person.types("4242:not-this-one")
            await person.reads("does not know this token")
            telegram.fail("500", "getMe")
            await person.types(telegram.token)
            await person.reads(r"answers with an error \(5\d\d\)")
            await person.types(telegram.token)
            await person.reads("This is @merk_test_bot")
            code = (await person.reads(r"/start [0-9a-f]{8}")).removeprefix("/start ")
            telegram.say(66, "/start 00000000")
            telegram.say(-5, f"/start {code}", user=66)
            telegram.say(42, f"/start {code}")
            await person.reads("Hello Ada, you are the owner")
            await person.passes_matrix()
            await person.reads("Claude key")
            await person.types("wrong")
            await person.reads("does not accept this key")
            await person.types(claude.key)
            await person.reads("The key works")
            await person.reads("Written to")
            assert await person.leaves() == 0
        assert claude.requests == [], "checking a key costs nothing"
        assert len(telegram.pending()) == 3, "what waits for the bot still waits"
        assert telegram.violations == []
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["config.toml"]
    written = tomllib.loads(target.read_text())
    assert written == {
        "telegram": {"token": telegram.token, "base_url": telegram.base_url},
        "access": {"owners": ["telegram:42"]},
        "model": {"anthropic": {"api_key": claude.key, "base_url": claude.base_url}},
    }


async def test_a_file_that_is_there_is_changed_only_where_one_answers(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = '# mine\n[telegram]\ntoken = "1:a"  # the old bot\n\n[memory]\nwindow = 6\n'
    target.write_text(before, encoding="utf-8")
    async with terminal(target) as person:
        await person.reads("is there already. Change it?")
        await person.types("n")
        assert await person.leaves() == 1
        assert "Nothing was changed." in person.shown
    assert target.read_text(encoding="utf-8") == before
    async with OllamaApi() as ollama:
        async with terminal(target, OLLAMA_HOST=ollama.host) as person:
            await person.reads("Change it?")
            await person.types("y")
            await person.reads("empty: leave it")
            await person.types("")
            await person.passes_matrix()
            await person.reads("Claude key")
            await person.types("")
            await person.reads(r"Ollama answers at http://127.0.0.1:[0-9]+\s+with\s+gemma3:4b,\s+qwen3:8b;")
            assert await person.leaves() == 0
        changed = target.read_text(encoding="utf-8")
        assert changed.startswith(before)
        assert target.with_name("config.toml.old").read_text(encoding="utf-8") == before
        for name in [name for name in os.environ if name.startswith(("MERK_", "ANTHROPIC_"))]:
            monkeypatch.delenv(name)
        settings = load(target)
        assert settings.model.ollama.host == ollama.host
        assert (settings.memory.window, settings.telegram.token is not None) == (6, True)


async def test_with_nothing_to_be_found_the_built_in_model_is_named(target: Path) -> None:
    async with terminal(target) as person:
        await person.reads("Token")
        await person.types("")
        await person.passes_matrix()
        await person.reads("Claude key")
        await person.types("")
        await person.reads("No Ollama answers here; without a key Merk has its small built-in model")
        assert await person.leaves() == 0
    assert load(target).model.provider == "auto"
    assert target.stat().st_mode & 0o777 == 0o600


async def test_an_ollama_without_a_model_is_told_what_to_fetch(target: Path) -> None:
    embedding = OllamaModel("nomic-embed-text:latest", ("embedding",), 2_048, 768)
    async with OllamaApi([embedding]) as ollama, terminal(target, MERK_MODEL__OLLAMA__HOST=ollama.host) as person:
        await person.types("")
        await person.passes_matrix()
        await person.reads("Claude key")
        await person.types("")
        await person.reads("without a model: ollama pull qwen3")
        assert await person.leaves() == 0
    assert load(target).model.ollama.host == ollama.host


async def test_an_account_on_matrix_is_checked_by_a_login_that_is_kept(target: Path) -> None:
    data_dir = target.parent / "data"
    async with HomeserverFake() as server:
        async with terminal(target, MERK_TENANT__DATA_DIR=str(data_dir)) as person:
            await person.types("")
            await person.reads("Homeserver")
            await person.types(NOBODY)
            await person.reads("No homeserver answers there")
            await person.types(server.url)
            await person.reads("Merk's user id")
            await person.types("merk")
            await person.reads("looks like @merk:example.org")
            await person.types(BOT)
            await person.reads("password")
            await person.types("wrong")
            await person.reads("does not accept them")
            await person.types(BOT)
            await person.reads("Its password")
            await person.types(PASSWORD)
            await person.reads(f"Logged in as {BOT}, device DEVICE1")
            assert not data_dir.exists(), "nothing is written before the last answer"
            await person.reads("Your own user id")
            await person.types(BOT)
            await person.reads("That is Merk's")
            await person.types("@ada:example.org")
            await person.reads("Claude key")
            await person.types("")
            assert await person.leaves() == 0
            assert PASSWORD not in person.shown
        device = data_dir / "matrix" / "device.json"
        assert json.loads(device.read_text()) == {"user_id": BOT, "device_id": "DEVICE1", "access_token": "token-1"}
        assert device.stat().st_mode & 0o777 == 0o600
        written = tomllib.loads(target.read_text())
        assert written["matrix"] == {"homeserver": server.url, "user_id": BOT, "password": PASSWORD}
        assert written["access"] == {"owners": ["matrix:@ada:example.org"]}


async def test_p47_set_up_again_matrix_keeps_its_device(target: Path) -> None:
    device = target.parent / "data" / "matrix" / "device.json"
    files.write(device, {"user_id": BOT, "device_id": "OLD", "access_token": "expired"})
    async with (
        HomeserverFake() as server,
        terminal(target, MERK_TENANT__DATA_DIR=str(target.parent / "data")) as person,
    ):
        await person.types("")
        await person.types(server.url)
        await person.reads("Merk's user id")
        await person.types("@other:example.org")
        await person.reads("Its password")
        await person.types(PASSWORD)
        await person.reads(f"holds the keys of {BOT}")
        await person.types(BOT)
        await person.types(PASSWORD)
        await person.reads("device OLD")
        await person.types("@ada:example.org")
        await person.types("")
        assert await person.leaves() == 0
    assert json.loads(device.read_text())["access_token"] == "token-1"


async def test_ctrl_c_leaves_nothing_behind_wherever_it_comes(target: Path) -> None:
    async with BotApi() as telegram:
        async with terminal(target, MERK_TELEGRAM__BASE_URL=telegram.base_url) as person:
            await person.reads("Token")
            await person.is_asked()
            person.interrupts()
            assert await person.leaves() != 0
        telegram.private_chat(42, "Ada")
        async with terminal(target, MERK_TELEGRAM__BASE_URL=telegram.base_url) as person:
            await person.types(telegram.token)
            await person.reads("or open https")
            await telegram.wait_for(lambda: telegram.poll_age() < 1)
            person.interrupts()  # while it waits for the code
            assert await person.leaves() != 0
            assert "Traceback" not in person.shown
            assert telegram.token not in person.shown
    assert list(target.parent.iterdir()) == []


async def test_another_program_that_polls_is_named(target: Path) -> None:
    async with BotApi() as telegram:
        telegram.fail("custom", "getUpdates", times=None, code=409, text="Conflict: terminated by other getUpdates")
        async with terminal(target, MERK_TELEGRAM__BASE_URL=telegram.base_url) as person:
            await person.types(telegram.token)
            assert await person.leaves() == 1
            assert "Another program polls for this bot, or it has a webhook" in " ".join(person.shown.split())
    assert list(target.parent.iterdir()) == []


async def test_without_a_terminal_it_says_what_to_do(target: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bot", "init", "--config", str(target)),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 1
    assert f"run it in a terminal, or write {target} yourself" in said.decode()
