"""`merk doctor`: every part that can be wrong is named with what mends it; it changes nothing and never hangs."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
import time
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from bot.checks import data
from bot.config import Settings
from bot.doctor import examine
from bot.lock import own
from bot.pulse import key_of, note_pulse
from memory.instants import SystemClock
from memory.storage import kept
from memory.storage.database import Database
from memory.types import Health
from tests.fakes.bot_api import BotApi
from tests.fakes.canned_http import Canned, CannedServer
from tests.fakes.messages_api import MessagesApi
from tests.fakes.ollama_api import OllamaApi
from tests.fakes.transport import RecordingTransport

NAMES = ["configuration", "database", "index", "embedder", "model", "telegram", "matrix", "clock", "disk"]
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", NOBODY)


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    shutil.copy(empty_database, made / "merk.db")
    return made


def settings_of(folder: Path, **sections: Any) -> Settings:
    """Built-in parts, so that each test asks of what it is about."""
    plain: dict[str, Any] = {"model": {"provider": "builtin"}, "embedding": {"provider": "builtin"}}
    return Settings.model_validate(plain | sections | {"tenant": {"data_dir": folder}})


async def found(folder: Path, name: str, **sections: Any) -> Health:
    """What the doctor finds of one part; the others go along."""
    healths = await examine(settings_of(folder, **sections))
    return next(health for health in healths if health.name == name)


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "merk.db")) as opened, opened:
        for statement in statements:
            opened.execute(statement)


def a_summary(folder: Path, *, indexed_as: str | None, at: float = 1.0) -> None:
    shown = f"'{indexed_as}'" if indexed_as else "NULL"
    change(
        folder,
        "INSERT INTO users (id, name, role, created_at) VALUES (1, 'Ada', 'owner', 1)",
        "INSERT INTO chats (id, transport, external_id, kind, created_at) VALUES (1, 'telegram', '42', 'ai', 1)",
        "INSERT INTO sessions (id, chat_id, thread, user_id, owner, is_current, created_at, last_used_at) "
        "VALUES (1, 1, '', 1, 'u1', 1, 1, 1)",
        "INSERT INTO summaries (session_id, owner, text, generated_by_model, watermark, indexed_as, created_at, "
        f"updated_at) VALUES (1, 'u1', 'Riga', 'none', 1, {shown}, 1, {int(at * 1000)})",
    )


# --- all is well ---------------------------------------------------------------------------------


async def test_without_any_configuration_or_data_all_is_well_and_nothing_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    healths = await examine(Settings.model_validate({"tenant": {"data_dir": folder}}))
    assert [health.name for health in healths] == NAMES
    assert [health for health in healths if not health.ok] == []
    said = {health.name: health.detail for health in healths}
    assert said["configuration"] == "no file: defaults and environment"
    assert "will be made at the first start" in said["database"]
    assert "not there yet" in said["model"], "the model is not fetched just to look"
    assert not (tmp_path / "not").exists()


async def test_with_everything_set_up_all_is_well_and_nothing_is_paid_for(folder: Path) -> None:
    async with BotApi() as telegram, MessagesApi() as claude, OllamaApi() as ollama:
        healths = await examine(
            settings_of(
                folder,
                telegram={"token": telegram.token, "base_url": telegram.base_url},
                model={"anthropic": {"api_key": claude.key, "base_url": claude.base_url}},
                embedding={"url": ollama.host},
            )
        )
        assert [health for health in healths if not health.ok] == []
        said = {health.name: health.detail for health in healths}
        assert said["telegram"] == "@merk_test_bot; Merk is not running (merk run)"
        assert said["model"].startswith("Claude: claude-sonnet-5-5, and claude-haiku-5-5")
        assert said["embedder"] == "ollama/nomic-embed-text@1, 768 dimensions"
        assert said["clock"].startswith("within 60 s of http://127.0.0.1")
        assert claude.requests == []
        assert telegram.violations == []


async def test_a_file_of_secrets_that_others_can_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.touch(mode=0o644)
    settings = settings_of(tmp_path, model={"provider": "builtin", "anthropic": {"api_key": "x"}}).read_from(file)
    assert f"chmod 600 {file}" in (await examine(settings))[0].detail
    file.chmod(0o600)
    assert (await examine(settings))[0].detail == f"{file}, valid"


# --- what is stored ------------------------------------------------------------------------------


async def test_a_damaged_database_is_told_and_the_rest_is_examined(folder: Path) -> None:
    whole = bytearray((folder / "merk.db").read_bytes())
    whole[4096:12288] = b"\xff" * 8192
    (folder / "merk.db").write_bytes(whole)
    health = await found(folder, "database")
    assert "is damaged" in health.detail
    assert health.remedy.startswith("merk restore FILE")
    (folder / "merk.db").write_bytes(b"something else" * 1000)
    healths = await examine(settings_of(folder))
    assert [health.name for health in healths] == NAMES
    assert [health.name for health in healths if not health.ok] == ["database", "index"]


async def test_a_database_of_somebody_else_or_of_a_newer_merk_is_told(folder: Path) -> None:
    change(folder, "UPDATE alembic_version SET version_num = '9999'")
    health = await found(folder, "database")
    assert "written by a newer Merk (schema 9999" in health.detail
    assert "install the newer Merk" in health.remedy
    (folder / "merk.db").unlink()
    change(folder, "CREATE TABLE places (url)")
    health = await found(folder, "database")
    assert "is not a database of Merk" in health.detail
    assert "tenant.data_dir" in health.remedy


async def test_an_index_that_is_gone_or_damaged_is_told(folder: Path) -> None:
    a_summary(folder, indexed_as="use:512")
    health = await found(folder, "index")
    assert (health.ok, health.detail, health.remedy) == (False, "the index's folder is gone", "merk reindex")
    (folder / "chroma").mkdir()
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"something else" * 1000)
    health = await found(folder, "index")
    assert "the index is damaged" in health.detail
    assert health.remedy == "merk reindex"


async def test_the_index_of_another_process_is_left_alone(folder: Path) -> None:
    a_summary(folder, indexed_as="use:512")
    (folder / "chroma").mkdir()
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"something else" * 1000)
    with own(folder, "run"):
        assert (await found(folder, "index")).ok
        shutil.rmtree(folder / "chroma")
        assert (await found(folder, "index")).remedy == "systemctl restart merk"


async def test_a_backlog_is_wrong_only_where_a_running_merk_should_have_done_it(folder: Path) -> None:
    a_summary(folder, indexed_as=None, at=time.time())
    with own(folder, "run"):
        assert (await found(folder, "index")).ok, "it is a second old"
        change(folder, "UPDATE summaries SET updated_at = 1")
        health = await found(folder, "index")
        assert "1 of 1 summaries are not indexed, for minutes now" in health.detail
    health = await found(folder, "index")
    assert health.ok
    assert "the next start does it" in health.detail


async def test_failed_summaries_are_told_with_their_cause(folder: Path) -> None:
    a_summary(folder, indexed_as=None)
    change(
        folder,
        "INSERT INTO learning (kind, session_id, attempts, last_error) VALUES ('summary', 1, 3, 'ModelError')",
    )
    health = await found(folder, "index")
    assert "1 chats could not be summarised yet" in health.detail
    assert "(ModelError: 1)" in health.detail
    assert "merk doctor --verbose" in health.remedy


async def test_a_full_disk_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "LEAST_FREE_BYTES", 10**18)
    health = await found(folder, "disk")
    assert "MB free in" in health.detail
    assert health.remedy.startswith("du -sh")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
async def test_a_directory_that_cannot_be_written_is_told(folder: Path) -> None:
    folder.chmod(0o500)
    health = await found(folder, "disk")
    assert "cannot be written by this user" in health.detail
    assert "chown" in health.remedy


# --- what must answer ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "said", "remedy"),
    [
        ({"provider": "anthropic"}, "model.anthropic.api_key: missing", "merk init"),
        (
            {"provider": "anthropic", "anthropic": {"api_key": "x", "base_url": NOBODY}},
            f"{NOBODY} does not answer (ConnectError)",
            f"curl -sSI {NOBODY}",
        ),
        ({"provider": "ollama"}, "Ollama does not answer, or has no chat model", "merk init"),
        ({"provider": "builtin", "builtin": {"path": "/no/model.gguf"}}, "/no/model.gguf is not there", "merk init"),
        (
            {"provider": "builtin", "builtin": {"path": __file__}},
            "test_doctor.py is not a GGUF file",
            "set model.builtin.path to one, or delete the key",
        ),
    ],
)
async def test_a_model_that_is_not_there_is_told(folder: Path, section: Any, said: str, remedy: str) -> None:
    health = await found(folder, "model", model=section)
    assert not health.ok
    assert said in health.detail
    assert health.remedy == remedy


async def test_what_claude_says_of_key_and_model_is_told(folder: Path) -> None:
    async with MessagesApi() as claude:
        good = {"api_key": claude.key, "base_url": claude.base_url}
        health = await found(folder, "model", model={"anthropic": good | {"api_key": "wrong"}})
        assert (health.detail, health.remedy) == ("the Claude key is not accepted", "merk init")
        health = await found(folder, "model", model={"anthropic": good | {"small": "claude-tiny"}})
        assert f"{claude.base_url} has no model claude-tiny" in health.detail
        assert health.remedy == "set model.anthropic.small to one that it has"
        health = await found(folder, "model", model={"anthropic": good | {"smart": "claude-huge"}})
        assert f"{claude.base_url} has no model claude-huge" in health.detail


async def test_what_ollama_lacks_is_told_with_the_command_that_fetches_it(folder: Path) -> None:
    async with OllamaApi() as ollama:
        section = {"provider": "ollama", "ollama": {"host": ollama.host, "chat": "qwen3:8b", "smart": "huge:70b"}}
        health = await found(folder, "model", model=section)
        assert "huge:70b is not there, qwen3:8b answers instead" in health.detail
        assert health.remedy == "ollama pull huge:70b"
        section = {"provider": "ollama", "ollama": {"host": ollama.host, "chat": "qwen3:8b", "small": "tiny:1b"}}
        health = await found(folder, "model", model=section)
        assert "no_model" in health.detail
        assert health.remedy == "ollama pull tiny:1b"
        embedding = {"provider": "ollama", "url": ollama.host, "model": "bge-m3"}
        health = await found(folder, "embedder", embedding=embedding)
        assert "Ollama does not have bge-m3" in health.detail
        assert health.remedy == "ollama serve; ollama pull bge-m3"
    health = await found(folder, "embedder", embedding={"provider": "ollama", "url": NOBODY})
    assert "cannot be reached" in health.detail


async def test_a_running_merk_without_its_model_is_told(folder: Path) -> None:
    with own(folder, "chat"):
        health = await found(folder, "model")
    assert not health.ok
    assert "systemctl restart merk" in health.remedy


async def test_what_telegram_says_is_told_and_the_token_never(folder: Path) -> None:
    async with BotApi() as telegram:
        good = {"token": telegram.token, "base_url": telegram.base_url}
        health = await found(folder, "telegram", telegram=good | {"token": "4242:another"})
        assert (health.detail, health.remedy) == ("the token is not accepted", "merk init")
        telegram.fail("500", "getMe")
        health = await found(folder, "telegram", telegram=good)
        assert health.detail.startswith(f"{telegram.base_url} answers with an error (5")
    health = await found(folder, "telegram", telegram=good)
    assert "does not answer (ConnectError)" in health.detail
    assert telegram.token not in health.detail + health.remedy


async def test_a_clock_that_is_wrong_is_told(folder: Path) -> None:
    answer = Canned(headers={"Date": formatdate(time.time() - 3600, usegmt=True)})
    async with CannedServer({"/": [answer]}) as server:
        health = await found(folder, "clock", telegram={"token": "1:a", "base_url": server.url})
    assert re.match(r"(3599|360\d) s apart from", health.detail)
    assert health.remedy == "timedatectl set-ntp true"


# --- the pulse of a running Merk -----------------------------------------------------------------


async def pulse_of(folder: Path, telegram: BotApi) -> Health:
    return await found(folder, "telegram", telegram={"token": telegram.token, "base_url": telegram.base_url})


async def test_the_pulse_that_a_running_merk_notes_is_felt(folder: Path) -> None:
    transport = RecordingTransport("telegram")
    database = Database.at(folder / "merk.db")
    async with BotApi() as telegram:
        with own(folder, "chat"):
            assert "Merk is not running" in (await pulse_of(folder, telegram)).detail, "a terminal polls for nobody"
        with own(folder, "run"):
            assert (await pulse_of(folder, telegram)).detail == "@merk_test_bot, starting"
            await note_pulse(database, SystemClock(), [transport])
            assert (await pulse_of(folder, telegram)).ok
    async with database.read() as connection:
        noted = await kept.load(connection, "telegram.last_contact")
    assert set(noted) == {"at", "problem", "ever"}
    await database.close()


@pytest.mark.parametrize(
    ("noted", "noted_ago", "said", "remedy"),
    [
        ({"at": -5, "problem": None}, 2, "@merk_test_bot, heard ", None),
        (
            {"at": -5, "problem": "another program polls for this bot"},
            2,
            "another program polls for this bot",
            "journalctl -u merk",
        ),
        (
            {"at": None, "problem": "Telegram refuses the token"},
            2,
            "Telegram refuses the token",
            "journalctl -u merk",
        ),
        ({"at": -600, "problem": None}, 2, "nothing heard for 10 minutes", "systemctl restart merk"),
        ({"at": None, "problem": None}, 2, "nothing heard for 20 minutes", "systemctl restart merk"),
        ({"at": -600, "problem": None}, 600, "`merk run` (process ", "systemctl restart merk"),
        ({"at": -5000, "problem": "of a former process"}, 5000, "hangs", "systemctl restart merk"),
    ],
)
async def test_p40_health_is_the_age_of_the_last_contact(
    folder: Path, noted: dict[str, Any], noted_ago: float, said: str, remedy: str | None
) -> None:
    now = time.time()
    value = {"at": noted["at"] and now + noted["at"], "problem": noted["problem"]}
    with closing(sqlite3.connect(folder / "merk.db")) as opened, opened:
        opened.execute(
            "INSERT INTO kept_values VALUES (?, ?, ?)",
            (key_of("telegram"), json.dumps(value), int((now - noted_ago) * 1000)),
        )
    async with BotApi() as telegram:
        with own(folder, "run"):
            os.utime(folder / ".lock", (now - 1200, now - 1200))  # it has run for twenty minutes
            health = await pulse_of(folder, telegram)
    assert said in health.detail
    assert health.ok == (remedy is None)
    assert health.remedy == (remedy or "")


# --- it never hangs ------------------------------------------------------------------------------


async def test_what_does_not_answer_is_named_in_time(folder: Path) -> None:
    async with CannedServer({"/bot1:a/getMe": [Canned(hangs=True)]}) as silent:
        settings = settings_of(folder, telegram={"token": "1:a", "base_url": silent.url})
        async with asyncio.timeout(30):
            healths = await examine(settings, seconds=3)
    assert [health.name for health in healths] == NAMES
    wrong = [health for health in healths if not health.ok]
    assert [(health.name, health.detail) for health in wrong] == [("telegram", "no answer within 3 s")]
