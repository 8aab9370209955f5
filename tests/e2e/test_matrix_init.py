"""Matrix from nothing: `merk init`, then the first answer in an encrypted room."""

import asyncio
import sys
import tomllib
from pathlib import Path

import pexpect
import pytest

from tests.e2e.e2ee_client import strict_person
from tests.e2e.matrix_stage import MatrixMerk, answer, device, matrix_deployment
from tests.e2e.merk_process import ROOT
from tests.e2e.synapse import Synapse

pytestmark = [
    pytest.mark.external,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def _init(merk: MatrixMerk, owner: str) -> str:
    """Somebody types what `merk init` asks for; returns what was shown."""
    kept = ("PATH", "HOME", "LANG", "MERK_TENANT__DATA_DIR")
    environment = {key: value for key, value in merk.environment().items() if key in kept}
    child: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "bot", "init", "--config", str(merk.data_dir.parent / "config.toml")],
        env=environment | {"OLLAMA_HOST": "http://127.0.0.1:9", "NO_COLOR": "1", "TERM": "dumb"},  # pyright: ignore[reportArgumentType] - its type forgets mappings of str
        cwd=str(ROOT),
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 160),
    )
    account = merk.account
    for question, typed in (
        ("Token", ""),
        ("Homeserver", merk.synapse.url),
        ("Merk's user id", account.user_id),
        ("Its password", "wrong"),
        ("does not accept them[^@]*Merk's user id", account.user_id),
        ("Its password", account.password),
        ("Your own user id", owner),
        ("Claude key", ""),
    ):
        child.expect(question)
        child.sendline(typed)
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before)


async def test_from_init_to_the_first_encrypted_answer(synapse: Synapse, tmp_path: Path) -> None:
    """The device that `merk init` was given is the one that runs, and it is signed."""
    async with (
        strict_person(synapse, "ada") as ada,
        matrix_deployment(tmp_path, synapse, ada.user_id, encryption="required") as merk,
    ):
        assert "Written to" in await asyncio.to_thread(_init, merk, ada.user_id)
        written = tomllib.loads((tmp_path / "config.toml").read_text())
        assert written["matrix"]["user_id"] == merk.user_id
        assert written["access"] == {"owners": [f"matrix:{ada.user_id}"]}
        given = device(merk)
        await merk.start()
        room = await ada.create_room(invite=[merk.user_id], encrypted=True, direct=True)
        await ada.wait_for(room, lambda view: view.membership(merk.user_id) == "join")
        said = await answer(merk, ada, room, "hello")
        assert (said.body, said.is_encrypted) == ("Echo: hello", True)
        assert await ada.signed_devices(merk.user_id) == {given: True}
        assert "matrix.logged_in" not in merk.log()
