"""`merk grant`: given and taken back beside a running Merk, and every refusal is a sentence."""

import shutil
from pathlib import Path

import pytest

from bot.admin.granting import grant
from bot.admin.keeping import beside
from bot.config import Settings
from bot.errors import CommandError
from memory.scope import VIEW_SENSITIVE
from memory.storage import members, people
from memory.types import Role


@pytest.fixture
async def settings(tmp_path: Path, empty_database: Path) -> Settings:
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(empty_database, folder / "merk.db")
    made = Settings.model_validate({"tenant": {"data_dir": folder}, "embedding": {"provider": "builtin"}})
    async with beside(made) as database, database.write() as connection:
        await people.admit(connection, "telegram:7", "Ada", Role.MEMBER, "en", 1)
        await people.admit(connection, "telegram:8", "Bob", Role.OWNER, "en", 1)
        await people.admit(connection, "telegram:9", "bob", Role.MEMBER, "en", 1)
    return made


async def has(settings: Settings, user_id: int) -> bool:
    async with beside(settings) as database, database.read() as connection:
        return await members.has(connection, user_id, VIEW_SENSITIVE)


async def test_a_grant_is_given_by_name_or_address_and_taken_back(settings: Settings) -> None:
    assert await grant(settings, "ada", VIEW_SENSITIVE) == "Ada has view:sensitive now."
    assert await has(settings, 1)
    assert await grant(settings, "telegram:7", VIEW_SENSITIVE, revoke=True) == "Ada does not have view:sensitive."
    assert not await has(settings, 1)


async def test_what_comes_with_a_role_cannot_be_taken_back(settings: Settings) -> None:
    assert "comes with the role owner" in await grant(settings, "telegram:8", VIEW_SENSITIVE, revoke=True)


@pytest.mark.parametrize(
    ("whom", "name", "said"),
    [
        ("zoe", VIEW_SENSITIVE, "Nobody is known as zoe"),
        ("bob", VIEW_SENSITIVE, "2 people are called bob"),
        ("ada", "view:everything", "There is no grant view:everything. There are: view:sensitive"),
    ],
)
async def test_a_refusal_says_what_to_do(settings: Settings, whom: str, name: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        await grant(settings, whom, name)
