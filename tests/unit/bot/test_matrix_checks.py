"""What `merk doctor` says of Matrix, from outside, with the running device's own token."""

from pathlib import Path
from typing import Any

import pytest

from bot.checks import Wrong
from bot.checks.matrix import fingerprint_lines, matrix
from bot.config import ConfigError, Settings
from bot.errors import CommandError
from bot.transports.matrix import files
from tests.fakes.homeserver import HomeserverFake
from tests.fakes.homeserver.server import BOT


def settings_of(folder: Path, homeserver: str, **more: Any) -> Settings:
    section = {"homeserver": homeserver, "user_id": BOT, "password": "x", "encryption": "off", **more}
    return Settings.model_validate({"tenant": {"data_dir": folder}, "matrix": section})


def has_logged_in(folder: Path, token: str) -> None:
    device = {"user_id": BOT, "device_id": "DEVICE1", "access_token": token}
    files.write(folder / "matrix" / files.DEVICE_FILE, device)


async def test_matrix_that_is_not_set_up_is_no_fault(tmp_path: Path) -> None:
    assert await matrix(Settings.model_validate({"tenant": {"data_dir": tmp_path}}), None) == "not set up"
    assert "the first start logs in" in await matrix(settings_of(tmp_path, "http://127.0.0.1:9"), None)


async def test_a_device_that_the_homeserver_knows_is_well(tmp_path: Path) -> None:
    async with HomeserverFake() as server:
        server.tokens["good"] = "DEVICE1"
        has_logged_in(tmp_path, "good")
        said = await matrix(settings_of(tmp_path, server.url), None)
    assert said == f"{BOT}, device DEVICE1; Merk is not running (merk run)"


async def test_p49_a_token_that_is_not_known_any_more_is_told(tmp_path: Path) -> None:
    async with HomeserverFake() as server:
        has_logged_in(tmp_path, "worn out")
        with pytest.raises(Wrong, match="does not know the access token") as caught:
            await matrix(settings_of(tmp_path, server.url), None)
    assert "worn out" not in caught.value.said + caught.value.remedy


async def test_a_homeserver_that_does_not_answer_is_named(tmp_path: Path) -> None:
    has_logged_in(tmp_path, "good")
    with pytest.raises(Wrong, match=r"http://127\.0\.0\.1:9 does not answer"):
        await matrix(settings_of(tmp_path, "http://127.0.0.1:9"), None)


async def test_there_is_nothing_to_verify_before_the_first_start(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="has not logged in"):
        await fingerprint_lines(settings_of(tmp_path, "http://127.0.0.1:9"))
    with pytest.raises(ConfigError, match=r"matrix\.homeserver: missing"):
        await fingerprint_lines(Settings())
