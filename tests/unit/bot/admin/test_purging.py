"""`merk observations purge`, as a person types it: counted, asked for, and only what that version noticed."""

import asyncio
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner, Result

from bot.cli import app
from bot.errors import CommandError
from bot.lock import LockedError, own
from memory.kinds.observations.keeping import Wish, keep
from memory.kinds.observations.observation import Content, Trigger, Type
from memory.storage import people
from memory.storage.database import Database
from memory.storage.tables import observations
from memory.types import Role

SAID = ("The oven was repaired", "The dog is called Bruno", "The office is in Ulm")


async def fill(file: Path) -> None:
    """Two of a bad version, one of a good one, and an event of a hook, which is of none."""
    database = Database.at(file)
    async with database.write() as connection:
        user = await people.admit(connection, "telegram:42", "Ada", Role.MEMBER, "en", 0)
        for version, text in zip(("bad", "bad", "good"), SAID, strict=True):
            content = Content(Type.FACT, text, text)
            wish = Wish(content, f"u{user.id}", user.id, Trigger.CHAT, quote=text, prompt_version=version)
            await keep(connection, wish, 1000)
        event = Content(Type.EVENT, "Order 7 completed", "Order 7 completed")
        await keep(connection, Wish(event, "p", None, Trigger.HOOK), 1000)
    await database.close()


async def read(file: Path) -> list[str]:
    database = Database.at(file)
    async with database.read() as connection:
        titles = list((await connection.execute(sa.select(observations.c.title).order_by(observations.c.id))).scalars())
    await database.close()
    return titles


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    shutil.copy(empty_database, made / "merk.db")
    monkeypatch.setenv("MERK_TENANT__DATA_DIR", str(made))
    monkeypatch.setenv("MERK_EMBEDDING__PROVIDER", "builtin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    asyncio.run(fill(made / "merk.db"))
    return made


def purge(version: str, *more: str, answer: str = "") -> Result:
    words = ["observations", "purge", "--prompt-version", version, *more]
    result = CliRunner().invoke(app, words, input=answer)
    if isinstance(result.exception, CommandError):
        raise result.exception
    return result


def titles(folder: Path) -> list[str]:
    return asyncio.run(read(folder / "merk.db"))


def test_it_counts_asks_and_deletes_what_that_version_noticed(folder: Path) -> None:
    result = purge("bad", answer="y\n")
    assert "Delete 2 observations of the version bad for good?" in result.stdout
    assert result.stdout.endswith("2 observations deleted.\n")
    assert titles(folder) == ["The office is in Ulm", "Order 7 completed"]


def test_with_yes_it_does_not_ask(folder: Path) -> None:
    assert purge("good", "--yes").stdout == "1 observations deleted.\n"
    assert "The office is in Ulm" not in titles(folder)


def test_a_no_deletes_nothing(folder: Path) -> None:
    with pytest.raises(CommandError, match=r"Nothing was deleted\."):
        purge("bad", answer="n\n")
    assert len(titles(folder)) == 4


def test_a_version_that_there_is_none_of_is_told_with_those_there_are(folder: Path) -> None:
    with pytest.raises(CommandError, match=r"no observations of the version x\. Versions: bad \(2\), good \(1\)\."):
        purge("x", "--yes")
    assert len(titles(folder)) == 4


def test_beside_a_running_merk_it_refuses(folder: Path) -> None:
    with own(folder, "run"), pytest.raises(LockedError):
        purge("bad", "--yes")
    assert len(titles(folder)) == 4
