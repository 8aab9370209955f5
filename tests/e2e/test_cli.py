"""The commands of `merk`, as an operator types them: beside a running Merk, and alone."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from tests.e2e.merk_process import Merk, deployment
from tests.fakes.bot_api import BotApi
from tests.fakes.messages_api import MessagesApi, texts

ADA, BEN = 42, 43
COMMANDS = ["chat", "run", "init", "doctor", "approve", "backup", "restore", "reindex", "export", "erase", "bench"]


@pytest.mark.parametrize("command", [[], *[[name] for name in COMMANDS], ["bench", "turn"]])
def test_every_command_says_what_it_is_for(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    if not command:
        assert [name for name in COMMANDS if not re.search(rf"^\W*{name}\s+[A-Z]", result.stdout, re.MULTILINE)] == []


async def say(merk: Merk, who: int, text: str) -> None:
    merk.telegram.say(who, text)
    await merk.telegram.wait_text(who, f"Echo: {re.escape(text)}", timeout=30)


def asked_last(merk: Merk) -> str:
    """What the model was last asked for somebody, as opposed to in the background."""
    return texts([request for request in merk.model.requests if request.body.get("stream")][-1])


async def summarised(merk: Merk, count: int) -> None:
    query = "SELECT 1 FROM summaries WHERE indexed_as IS NOT NULL"
    await merk.telegram.wait_for(lambda: len(merk.rows(query)) >= count, timeout=60)


async def ada_and_ben(merk: Merk) -> None:
    """Two people who told different things; the second was let in from the command line."""
    merk.telegram.private_chat(ADA, "Ada")
    merk.telegram.private_chat(BEN, "Ben")
    await merk.start()
    await say(merk, ADA, "We are planning a trip to Zwirbelwitz.")
    merk.telegram.say(ADA, "/remember My dog is called Brunold")
    await merk.telegram.wait_text(ADA, "Brunold", timeout=20)
    merk.telegram.say(BEN, "Good morning")
    shown = await merk.telegram.wait_text(BEN, r"\b[A-Z0-9]{8}\b", timeout=20)
    found = re.search(r"\b[A-Z0-9]{8}\b", shown.text)
    assert found
    assert await merk.run("approve", found[0].lower()) == (0, "Ben may talk to Merk now.\n")
    await merk.telegram.wait_text(BEN, "Ben", timeout=20)
    await say(merk, BEN, "My boat is called Quietschbert.")
    merk.telegram.say(BEN, "/remember I sail on Fridays")
    await merk.telegram.wait_text(BEN, "I sail on Fridays", timeout=20)


async def test_an_operators_week(tmp_path: Path) -> None:
    """Let in, examine, export, back up beside a running Merk; then stop it, lose the data, restore."""
    async with deployment(tmp_path) as merk:
        await ada_and_ben(merk)
        status, said = await merk.run("approve", "NOSUCHCD")
        assert (status, said) == (1, "Nobody holds the code NOSUCHCD. Codes hold for an hour; ask for a new one.\n")

        status, said = await merk.run("doctor")
        assert (status, said.count("ok    ")) == (0, 9), said
        assert await merk.run("doctor", "--quiet") == (0, "")

        await _exports_what_is_adas(merk, tmp_path / "ada")

        backup = tmp_path / "monday.tar.gz"
        assert await merk.run("backup", str(backup)) == (0, f"Written to {backup}.\n")
        status, said = await merk.run("backup", str(backup))
        assert status == 1
        assert "is there already" in said
        for command in (["restore", str(backup)], ["reindex"], ["erase", "--history", "--yes"]):
            status, said = await merk.run(*command)
            assert status == 1
            assert "is in use by `merk run` (process" in said

        assert await merk.stop() == 0
        shutil.rmtree(merk.data_dir)
        status, said = await merk.run("restore", str(backup))
        assert (status, said) == (0, "Restored. The next start makes the index anew.\n")
        await merk.start()
        await say(merk, ADA, "Where were we?")
        assert "Zwirbelwitz" in asked_last(merk)
        assert "Brunold" in asked_last(merk)
        await summarised(merk, 2)


async def _exports_what_is_adas(merk: Merk, folder: Path) -> None:
    with closing(sqlite3.connect(merk.data_dir / "merk.db")) as opened, opened:
        opened.execute(
            "INSERT INTO messages (session_id, role, speaker, text, is_ephemeral, tool, created_at) "
            "SELECT session_id, 'assistant', 'Merk', 'A preview of hotels', 1, 'hotels', 1 FROM messages "
            "WHERE text LIKE '%Zwirbelwitz%' LIMIT 1"
        )
    status, said = await merk.run("export", "--user", "telegram:42", "--to", str(folder))
    assert status == 0, said
    files = [folder / "merk-export-telegram-42.json", folder / "merk-export-telegram-42.md"]
    assert said.split() == [str(path) for path in files]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600, 0o600]
    everything = json.loads(files[0].read_text(encoding="utf-8"))
    assert everything["identities"] == ["telegram:42"]
    assert [fact["text"] for fact in everything["facts"]] == ["My dog is called Brunold"]
    assert any(each["is_ephemeral"] for session in everything["sessions"] for each in session["messages"])
    for path in files:
        text = path.read_text(encoding="utf-8")
        for mine in ("Zwirbelwitz", "Brunold", "A preview of hotels"):
            assert mine in text
        for other in ("Quietschbert", "Ben", "Fridays", "telegram:43"):
            assert other not in text
    status, said = await merk.run("export", "--user", "telegram:99", "--to", str(folder))
    assert (status, said) == (1, "Nobody is known as telegram:99. It must look like telegram:42 or terminal:local.\n")


async def test_what_is_erased_is_gone_to_the_last_byte(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        await ada_and_ben(merk)
        await summarised(merk, 2)
        assert await merk.stop() == 0

        status, said = await merk.run("reindex")
        assert (status, said.strip().splitlines()[-1]) == (0, "2 summaries indexed.")

        status, said = await merk.run("erase", "--user", "telegram:42")
        assert status == 1, "nobody said yes"
        assert "Erase all of telegram:42 for good?" in said
        assert merk.files_with("Zwirbelwitz") != []
        status, said = await merk.run("erase", "--user", "telegram:99", "--yes")
        assert status == 1
        assert "Nobody is known as telegram:99" in said
        status, said = await merk.run("erase", "--yes")
        assert status == 2
        assert "name either --user or --history" in said

        status, said = await merk.run("erase", "--user", "telegram:42", "--yes")
        assert status == 0, said
        assert "Forgotten, everywhere:" in said
        assert "• 1 fact" in said
        assert re.search(r"• \d messages redacted or deleted", said)
        for word in ("Zwirbelwitz", "Brunold", "telegram:42"):
            assert merk.files_with(word) == []
        assert merk.rows("SELECT name FROM users") == [("Ben",)]
        assert merk.files_with("Quietschbert") != []

        merk.more = {"MERK_EMBEDDING__PROVIDER": "ollama", "MERK_EMBEDDING__URL": "http://127.0.0.1:9"}
        status, said = await merk.run("erase", "--history", "--yes")
        assert status == 0, f"an embedder that is down keeps nothing from being erased: {said}"
        merk.more = {}
        assert merk.rows("SELECT count(*) FROM messages") == [(0,)]
        assert merk.rows("SELECT count(*) FROM summaries") == [(0,)]
        assert merk.rows("SELECT text FROM facts") == [("I sail on Fridays",)]
        assert merk.files_with("Quietschbert") == []
        status, said = await merk.run("erase", "--history", "--yes")
        assert status == 0
        assert "There was nothing left to erase." in said

        await merk.start()
        await say(merk, BEN, "Do you know me?")
        assert "I sail on Fridays" in asked_last(merk)


async def test_what_is_wrong_is_a_sentence_and_an_exit_code(tmp_path: Path) -> None:
    async with BotApi() as telegram, MessagesApi() as claude:
        merk = Merk(telegram, claude, tmp_path / "none")
        for command in (["approve", "X"], ["erase", "--history", "--yes"]):
            status, said = await merk.run(*command)
            assert status == 1
            assert "There is no database" in said
            assert "Traceback" not in said
        status, said = await merk.run("backup", str(tmp_path / "x.tar.gz"))
        assert status == 1
        assert "nothing to back up" in said
        assert not (tmp_path / "none" / "merk.db").exists()
        claude.down()
        await telegram.__aexit__(None, None, None)
        status, said = await merk.run("doctor", "--quiet")
        assert status == 1
        assert re.findall(r"^WRONG (\w+)", said, re.MULTILINE) == ["model", "telegram"]
        assert "→ curl -sSI http://127.0.0.1" in said
        assert telegram.token not in said
        merk.more = {"MERK_MEMORY__WINDOW": "many"}
        status, said = await merk.run("doctor", "--quiet")
        assert status == 2
        assert "WRONG configuration: environment, MERK_MEMORY__WINDOW: memory.window" in said
        status, said = await merk.run("backup", str(tmp_path / "x.tar.gz"))
        assert status == 2
        assert said.startswith("environment, MERK_MEMORY__WINDOW: memory.window")
