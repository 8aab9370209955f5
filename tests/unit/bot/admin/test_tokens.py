"""`merk token` and `merk retention`, as a person types them, beside a running Merk."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from bot.errors import CommandError
from bot.lock import own


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    shutil.copy(empty_database, made / "merk.db")
    monkeypatch.setenv("MERK_TENANT__DATA_DIR", str(made))
    monkeypatch.setenv("MERK_EMBEDDING__PROVIDER", "builtin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return made


def merk(*words: str) -> tuple[str, str]:
    result = CliRunner().invoke(app, words, catch_exceptions=True)
    if isinstance(result.exception, CommandError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_a_token_is_made_shown_once_listed_and_revoked_beside_a_running_merk(folder: Path) -> None:
    with own(folder, "run"):
        token, said = merk("token", "create", "--grant", "view:telemetry", "--name", "grafana", "--days", "30")
        assert token.startswith("merk_")
        assert "Token 1: view:telemetry, until" in said
        (listed, _) = merk("token", "list")
        assert listed.startswith("1 (grafana): view:telemetry; made ")
        assert listed.rstrip().endswith("never used")
        assert token.strip() not in listed
        assert merk("token", "revoke", "1")[0] == "Token 1 opens nothing any more.\n"
        assert ", revoked " in merk("token", "list")[0]
        with pytest.raises(CommandError, match="no token 1 that could be revoked"):
            merk("token", "revoke", "1")


def test_a_token_for_good_says_so(folder: Path) -> None:
    del folder
    _, said = merk("token", "create", "--grant", "view:telemetry", "--grant", "manage:users")
    assert "manage:users, view:telemetry, until it is revoked" in said
    assert "until revoked" in merk("token", "list")[0]


def test_a_grant_that_there_is_none_of_is_said_with_those_there_are(folder: Path) -> None:
    del folder
    with pytest.raises(CommandError, match=r"no grant view:all\. There are: .*view:telemetry"):
        merk("token", "create", "--grant", "view:all")
    assert merk("token", "list")[0] == "There are no tokens.\n"


def test_a_dry_run_of_retention_counts_beside_a_running_merk(folder: Path) -> None:
    with own(folder, "run"):
        told, _ = merk("retention", "--dry-run")
    assert told.startswith("Would go now:\n")
    assert {line.split()[0] for line in told.splitlines()[1:]} >= {"telemetry", "messages", "inbox", "backups"}


def test_a_run_of_retention_needs_the_data_directory_and_tells_what_went(folder: Path) -> None:
    with own(folder, "run"), pytest.raises(CommandError):
        merk("retention")
    assert "\nGone:\n" in "\n" + merk("retention")[0]
