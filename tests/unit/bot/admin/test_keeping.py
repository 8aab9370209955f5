"""What an owner does with people's data, where it meets the state of the data directory."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bot.admin import keeping
from bot.config import Settings
from bot.errors import CommandError
from bot.lock import own
from memory.types import Receipt


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    shutil.copy(empty_database, made / "merk.db")
    return made


@pytest.fixture
def settings(folder: Path) -> Settings:
    return Settings.model_validate({"tenant": {"data_dir": folder}, "embedding": {"provider": "builtin"}})


async def test_beside_a_merk_of_another_version_nothing_is_changed(settings: Settings, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "merk.db")) as opened, opened:
        opened.execute("UPDATE alembic_version SET version_num = '0000'")
    before = (folder / "merk.db").read_bytes()
    with own(folder, "run"), pytest.raises(CommandError, match="another version of Merk than this command: restart it"):
        await keeping.approve(settings, "ABCDEFGH")
    assert (folder / "merk.db").read_bytes() == before


async def test_a_database_that_cannot_be_read_is_a_sentence(settings: Settings, folder: Path) -> None:
    (folder / "merk.db").write_bytes(b"something else" * 1000)
    with pytest.raises(CommandError, match=r"merk.db cannot be read .* See `merk doctor`"):
        await keeping.approve(settings, "ABCDEFGH")


async def test_nobody_is_asked_about_a_person_who_is_not_there(settings: Settings) -> None:
    def agree(asked: str) -> bool:
        raise AssertionError(asked)

    with pytest.raises(CommandError, match="Nobody is known as telegram:7"):
        await keeping.erase(settings, "telegram:7", agree)


async def test_a_no_erases_nothing_and_lets_go_of_the_directory(settings: Settings, folder: Path) -> None:
    with pytest.raises(CommandError, match=r"Nothing was erased\."):
        await keeping.erase(settings, None, lambda _asked: False)
    with own(folder, "chat"):
        pass


def test_receipts_of_many_are_one() -> None:
    one = Receipt(messages_redacted=2, vectors=1, backups=("a.db (2026-03-08)",), unfinished=("index",))
    other = Receipt(messages_redacted=3, summaries=1, backups=("a.db (2026-03-08)",))
    whole = keeping.sum_up([one, other])
    assert (whole.messages_redacted, whole.summaries, whole.vectors) == (5, 1, 1)
    assert whole.backups == ("a.db (2026-03-08)",)
    assert whole.unfinished == ("index",)


def test_a_chat_is_readable_and_says_what_was_working_output() -> None:
    def message(text: str, **more: Any) -> dict[str, Any]:
        return {"speaker": "Ada", "created_at": "2026-03-01", "text": text, "is_ephemeral": False} | more

    session = {
        "title": "",
        "created_at": "2026-03-01",
        "summary": {"text": "About Riga."},
        "messages": [message("Hello"), message("A draft", is_ephemeral=True)],
    }
    facts = [{"text": "I live in Berlin", "valid_to": "2026-02-01"}, {"text": "I live in Kiel", "valid_to": None}]
    text = keeping.to_markdown(
        {"user": {"name": "Ada"}, "identities": ["telegram:42"], "facts": facts, "sessions": [session]}
    )
    assert text == (
        "# Ada\n\ntelegram:42\n\n## Facts\n\n- I live in Berlin (until 2026-02-01)\n- I live in Kiel\n\n"
        "## Chat (2026-03-01)\n\n> About Riga.\n\n**Ada** · 2026-03-01\n\nHello\n\n"
        "**Ada** · 2026-03-01 · working output\n\nA draft\n"
    )
