"""`merk run` as a process of its own, between the Bot API emulator and the Messages API stand-in."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.bot_api import BotApi
from tests.fakes.disk import files_under
from tests.fakes.messages_api import MessagesApi

ROOT = Path(__file__).parents[2]


@dataclass
class Merk:
    """One deployment. It may be killed and started again; the servers around it live on."""

    telegram: BotApi
    model: MessagesApi
    data_dir: Path
    more: dict[str, str] = field(default_factory=dict[str, str])
    process: asyncio.subprocess.Process | None = None

    def environment(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("MERK_", "ANTHROPIC_"))}
        return clean | {
            "MERK_TENANT__DATA_DIR": str(self.data_dir),
            "MERK_TELEGRAM__TOKEN": self.telegram.token,
            "MERK_TELEGRAM__BASE_URL": self.telegram.base_url,
            "MERK_MODEL__PROVIDER": "anthropic",
            "MERK_MODEL__ANTHROPIC__API_KEY": "test",
            "MERK_MODEL__ANTHROPIC__BASE_URL": self.model.base_url,
            "MERK_EMBEDDING__PROVIDER": "builtin",
            "MERK_ACCESS__OWNERS": '["telegram:42"]',
            **self.more,
        }

    async def start(self, *, wait: bool = True) -> None:
        log = (self.data_dir.parent / "merk.log").open("ab")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot", "run", cwd=ROOT, env=self.environment(), stdout=log, stderr=log
        )
        log.close()
        if wait:
            await self.telegram.wait_for(lambda: self.telegram.poll_age() < 1, timeout=60)

    async def kill(self) -> None:
        """As a power cut does it."""
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    async def stop(self) -> int:
        """As a supervisor does it. Returns the exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), 30)

    async def settle(self, timeout: float = 60) -> None:
        """Wait until everything that was said is done with and everything that is to be shown is shown."""
        await self.telegram.wait_for(lambda: not self._is_busy(), timeout)

    def _is_busy(self) -> bool:
        inbox = self.rows("SELECT 1 FROM inbox WHERE status <> 'done'")
        outbox = self.rows("SELECT 1 FROM outbox WHERE status NOT IN ('sent', 'unknown', 'failed')")
        return bool(inbox or outbox or self.telegram.pending())

    def log(self) -> str:
        return (self.data_dir.parent / "merk.log").read_text(errors="replace")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Look into the database, also while Merk runs."""
        with closing(sqlite3.connect(self.data_dir / "merk.db")) as opened:
            return opened.execute(query, values).fetchall()

    def files_with(self, words: str) -> list[str]:
        """The files of the data directory that hold these words, byte for byte."""
        needle = words.encode()
        return [str(path) for path, content in files_under(self.data_dir) if needle in content]

    async def run(self, command: str, *arguments: str) -> tuple[int, str]:
        """Run another command beside it: exit code and output."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot",
            command,
            *arguments,
            cwd=ROOT,
            env=self.environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()


@asynccontextmanager
async def deployment(
    folder: Path, *, topics: bool = False, more: dict[str, str] | None = None
) -> AsyncGenerator[Merk, None]:
    """The two servers and a Merk that is not started yet."""
    async with BotApi(topics=topics) as telegram, MessagesApi() as model:
        data_dir = folder / "data"
        data_dir.mkdir()
        merk = Merk(telegram, model, data_dir, more or {})
        try:
            yield merk
        finally:
            await merk.kill()
